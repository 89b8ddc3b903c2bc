"""Finds the column that makes the follower refuse a row, its definition on the follower, and the statement that gives
it the leader's definition.
"""

import re
from collections.abc import Mapping

from cdc.consumer.errors import Interrupted, Refused, Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted, table_name
from cdc.model.record import Record

__all__ = ["define"]

# Finds the column in the server's errors about a value, a missing column, or a column without a default.
_COLUMN = re.compile(r"(?:column|field) '([^']+)'", re.I)
_NO_SUCH_TABLE = 1146


def define(error: Unapplicable, session: Session, types: Mapping[str, str]) -> None:
    """Adds to the error for a row the column's definitions on both servers, and the statement that corrects the
    follower's column.

    ``types`` are the types of the leader's columns, if known. Nothing is added if the follower's definition can't be
    read.
    """
    record, found = error.record, _COLUMN.search(error.refused.text) if error.refused else None
    if error.refused is None or record.operation == "Query" or not session.connected or session.busy:
        return
    if error.refused.code == _NO_SUCH_TABLE:
        error.mend(f"create the table as on the leader (SHOW CREATE TABLE {_shown(record)} there)")
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
    table, name, whole = table_name(error.record.uri), identifier(column), _shown(error.record)
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


def _shown(record: Record) -> str:
    return f"{record.uri.database}.{record.uri.table}"
