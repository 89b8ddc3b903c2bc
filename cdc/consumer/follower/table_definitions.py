"""Reads the definitions of a server's tables, so that the leader's and the follower's definitions can be compared."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymysql

from cdc.config.profile import Database
from cdc.consumer.follower.session import translated
from cdc.consumer.literals.values import identifier
from cdc.errors import UserError
from cdc.service.mysql_connection import connected

__all__ = ["Definitions", "table_definitions"]

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
