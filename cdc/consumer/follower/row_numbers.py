"""Decides whether a statement that numbers the rows of a table assigns the same numbers on the follower as on the
leader.

The statement's text shows what it numbers (cdc.sql.numbering). The rest depends on the table, which is read on the
follower: it must have the leader's primary key, which the stream does not contain.
"""

from cdc.consumer.errors import Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted
from cdc.sql.effects import Effect

__all__ = ["key_columns", "other_numbers"]

_UNKNOWN = frozenset({1049, 1054, 1146})  # no such database, column or table: the statement fails, too
_INNODB = "InnoDB"


def other_numbers(session: Session, effect: Effect, *, same_engine: bool) -> str:
    """The reason why the follower may assign other numbers to the rows than the leader, according to ``effect``; empty
    if it can't.

    ``same_engine`` is true if the table has the leader's engine. No transaction may be open when this is called.
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
        return ""  # the server keeps the zeros of a column that had numbers before
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
    """The columns of the primary key of the follower's table."""
    found = session.rows(
        f"SELECT COLUMN_NAME FROM information_schema.STATISTICS {_where(effect)} AND INDEX_NAME = 'PRIMARY' "
        "ORDER BY SEQ_IN_INDEX"
    )
    return [str(column) for (column,) in found]


def _has_rows_to_number(session: Session, effect: Effect) -> bool:
    """Whether a row may have no number yet: its value is 0 or NULL, or becomes 0 in the column's new type."""
    return _has_rows(session, effect, f"COALESCE({identifier(effect.filled)} + 0 < 1, TRUE) LIMIT 1")


def _has_rows(session: Session, effect: Effect, condition: str) -> bool:
    """Whether the table has rows that fulfil ``condition``, which may end in a limit; False if the table does not
    exist.
    """
    table = f"{identifier(effect.database)}.{identifier(effect.name or '')}"
    try:
        return bool(session.rows(f"SELECT 1 FROM {table} WHERE {condition}"))
    except Refused as error:
        return error.code not in _UNKNOWN
    finally:
        session.run([b"COMMIT"])  # the table's definition was locked, and the statement runs on another connection


def _where(effect: Effect) -> str:
    return f"WHERE TABLE_SCHEMA = {quoted(effect.database)} AND TABLE_NAME = {quoted(effect.name or '')}"
