"""Reads the definitions of a server's tables, so that both servers can be compared. If the follower refuses a row,
reads the definition of the column that is the cause.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymysql

from cdc.config.profile import Database
from cdc.consumer.errors import Interrupted, Refused, Unapplicable
from cdc.consumer.follower.session import Session, translated
from cdc.consumer.literals.values import identifier, quoted, table_name
from cdc.errors import UserError
from cdc.model.record import Record
from cdc.service.mysql_connection import connected

__all__ = ["Definitions", "define", "table_definitions"]

_GONE = frozenset({1049, 1146})
_ANSWER_SECONDS = 30
# With these variables, SHOW CREATE TABLE returns the same text for the same definition on both servers.
_SESSION = "SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1, lock_wait_timeout = 5"
_TABLES = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE'"


class Definitions(NamedTuple):
    """Maps each (database, table) to the output of SHOW CREATE TABLE. ``is_mysql`` is false for a MariaDB server, whose
    output for the same definition is another text.
    """

    tables: dict[tuple[str, str], str]
    is_mysql: bool


def table_definitions(database: Database, *, wants: Callable[[str, str], bool]) -> Definitions:
    """Reads the definitions of the tables for which ``wants(database, table)`` is true. Raises UserError if the server
    does not answer, or refuses the user.
    """
    with _cursor(database) as cursor:
        cursor.execute(_SESSION)
        cursor.execute("SELECT VERSION()")
        is_mysql = "mariadb" not in str(cursor.fetchone()[0]).lower()
        cursor.execute(_TABLES)
        found = [(str(row[0]), str(row[1])) for row in cursor.fetchall()]
        shown = {table: _shown(cursor, *table) for table in sorted(found) if wants(*table)}
    return Definitions({table: text for table, text in shown.items() if text is not None}, is_mysql)


def _shown(cursor: Any, database: str, table: str) -> str | None:
    try:
        cursor.execute(f"SHOW CREATE TABLE {identifier(database)}.{identifier(table)}")
    except pymysql.MySQLError as error:
        if error.args[0] in _GONE:  # the table was dropped in the meantime
            return None
        raise
    return str(cursor.fetchone()[1])


@contextmanager
def _cursor(database: Database) -> Iterator[Any]:
    limits = {"read_timeout": _ANSWER_SECONDS, "write_timeout": _ANSWER_SECONDS}
    try:
        with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
            yield cursor
    except (pymysql.MySQLError, OSError) as error:
        raise UserError(
            f"the tables' definitions can't be read: {translated(error)}",
            code="CDC-CHECK-DEFINITIONS",
            where=str(database),
            hint="start the server, or correct the address, user or password; our user needs SELECT on the tables",
        ) from None


# Finds the column that makes the follower refuse a row, its definition on the follower, and the statement that gives it
# the leader's definition.

# Finds the column in the server's errors about a value, a missing column, or a column without a default.
_COLUMN = re.compile(r"(?:column|field) '([^']+)'", re.I)
_NO_SUCH_TABLE = 1146


def define(error: Unapplicable, session: Session, types: Mapping[str, str]) -> None:
    """Extends the error for a refused row by the column's definitions on both servers, and by the statement that
    corrects the follower's column.

    ``types`` are the types of the leader's columns, if known. Nothing is added if the follower's definition can't be
    read.
    """
    record, found = error.record, _COLUMN.search(error.refused.text) if error.refused else None
    if error.refused is None or record.operation == "Query" or not session.connected or session.busy:
        return
    if error.refused.code == _NO_SUCH_TABLE:
        error.mend(f"create the table as on the leader (SHOW CREATE TABLE {_table_of(record)} there)")
    elif found:
        try:
            session.reset()
            here = _defined(session, record, found[1])
        except (Interrupted, Refused):
            return
        _compare(error, found[1], here=here, there=types.get(found[1], ""))


def _defined(session: Session, record: Record, column: str) -> str:
    """Returns the follower's definition of the column; empty if the follower's table lacks the column."""
    where = f"TABLE_SCHEMA={quoted(record.uri.database)} AND TABLE_NAME={quoted(record.uri.table or '')}"
    rows = session.rows(
        "SELECT CONCAT(COLUMN_TYPE, IFNULL(CONCAT(' character set ', CHARACTER_SET_NAME), ''), "
        "IF(IS_NULLABLE = 'NO', ' NOT NULL', '')) FROM information_schema.COLUMNS "
        f"WHERE {where} AND COLUMN_NAME={quoted(column)}"
    )
    return str(rows[0][0]) if rows else ""


def _compare(error: Unapplicable, column: str, *, here: str, there: str) -> None:
    table, name, whole = table_name(error.record.uri), identifier(column), _table_of(error.record)
    leader = there or f"as SHOW CREATE TABLE {whole} there says"
    if column not in error.record.columns:
        error.mend(
            f"on the follower: ALTER TABLE {table} DROP COLUMN {name}, or MODIFY it with a DEFAULT",
            defined=f"column {column} is {here} here, and the leader has none",
        )
    elif not here:
        error.mend(f"on the follower: ALTER TABLE {table} ADD COLUMN {name} {there or '…'}, as on the leader",
                   defined=f"there is no column {column} here; on the leader it is {leader}")  # fmt: skip
    else:
        kept = " NOT NULL" if there and here.endswith(" NOT NULL") else ""
        error.mend(
            f"on the follower: ALTER TABLE {table} MODIFY {name} {there or '…'}{kept}, with the leader's DEFAULT",
            defined=f"column {column} is {here} here; on the leader it is {leader}",
        )


def _table_of(record: Record) -> str:
    return f"{record.uri.database}.{record.uri.table}"
