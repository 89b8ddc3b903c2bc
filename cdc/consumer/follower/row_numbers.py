"""Decides whether a statement that numbers the rows of a table assigns the same numbers on the follower as on the
leader.

The text of the statement shows which column is numbered (cdc.sql.effects). Everything else depends on the table,
whose definition is read on the follower. The follower's table must have the leader's primary key. This is not checked,
since the stream does not contain that key.
"""

from cdc.consumer.errors import Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted
from cdc.sql.effects import Effect

__all__ = ["key_columns", "other_numbers"]

_UNKNOWN = frozenset({1049, 1054, 1146})  # the database, column or table does not exist, so the statement will fail
_INNODB = "InnoDB"


def other_numbers(session: Session, effect: Effect, *, same_engine: bool) -> str:
    """Returns the reason why a statement with this ``effect`` may assign other numbers to the follower's rows than to
    the leader's; empty if the numbers are certainly equal.

    ``same_engine`` is true if the follower's table has the leader's engine. Must be called without an open transaction.
    """
    if effect.any_order and _has_rows(session, effect, "TRUE LIMIT 1, 1"):
        return "the table has rows, and each server numbers them in an order of its own"
    if effect.any_order and not _has_rows(session, effect, "TRUE LIMIT 1"):
        return ""
    where = _where(effect)
    found = session.rows(
        f"SELECT COLUMN_NAME FROM information_schema.COLUMNS {where} AND EXTRA LIKE '%auto_increment%'"
    )
    counters = {str(name).casefold() for (name,) in found}
    if effect.filled and (effect.filled.casefold() in counters or not _has_rows_to_number(session, effect)):
        return ""  # if the column was AUTO_INCREMENT before, the server does not number its zeros
    if counters - {name.casefold() for name in effect.dropped}:
        return "its numbers go on from a counter that only the leader knows"
    if effect.any_order:
        return ""
    engines = session.rows(f"SELECT ENGINE FROM information_schema.TABLES {where}")
    parts = session.rows(f"SELECT 1 FROM information_schema.PARTITIONS {where} AND PARTITION_NAME IS NOT NULL LIMIT 1")
    if engines and (engines != [(_INNODB,)] or (effect.filled and not same_engine)):
        return "the table may be of another engine than InnoDB there or here"
    if parts and effect.numbered:
        return "the table has partitions"
    if engines and not key_columns(session, effect):
        return "the table has no primary key, in the order of which the leader would have numbered the rows"
    return ""


def key_columns(session: Session, effect: Effect) -> list[str]:
    """Returns the columns of the primary key of the follower's table, in their order."""
    found = session.rows(
        f"SELECT COLUMN_NAME FROM information_schema.STATISTICS {_where(effect)} AND INDEX_NAME = 'PRIMARY' "
        "ORDER BY SEQ_IN_INDEX"
    )
    return [str(column) for (column,) in found]


def _has_rows_to_number(session: Session, effect: Effect) -> bool:
    """Whether the statement may number a row. It numbers a row if the row's value in the column is 0 or NULL, or
    becomes 0 in the column's new type.
    """
    return _has_rows(session, effect, f"COALESCE({identifier(effect.filled)} + 0 < 1, TRUE) LIMIT 1")


def _has_rows(session: Session, effect: Effect, condition: str) -> bool:
    """Whether the table exists, and has rows that fulfil ``condition``, which may end with a LIMIT."""
    table = f"{identifier(effect.database)}.{identifier(effect.name or '')}"
    try:
        return bool(session.rows(f"SELECT 1 FROM {table} WHERE {condition}"))
    except Refused as error:
        return error.code not in _UNKNOWN
    finally:
        # releases the lock on the table's definition, since another connection will execute the statement
        session.run([b"COMMIT"])


def _where(effect: Effect) -> str:
    return f"WHERE TABLE_SCHEMA = {quoted(effect.database)} AND TABLE_NAME = {quoted(effect.name or '')}"
