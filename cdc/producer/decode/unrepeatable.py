"""Decides which statements followers may execute although their rows differ afterwards, because their tables are copied
again (``producer.on_unrepeatable = "copy"``). Pure.

The record of such a statement and the request for the copy are one: the record is marked as one of a table under copy,
and the table is in the state of the copies that commits with the record, or before it. So no crash separates them.
"""

from dataclasses import replace

from cdc.producer.decode.changes import Table
from cdc.producer.decode.query_event import LoggedStatement
from cdc.sql.effects import COPIED_AGAIN, IMPORTED, Effect

__all__ = ["with_copies"]

_ANY_ORDER = "each server numbers the rows in an order of its own"


def with_copies(statement: LoggedStatement) -> LoggedStatement:
    """Returns the statement with the tables to copy after it. It is unchanged if followers get the same rows, or if a
    copy of the table is not enough.

    Only tables of InnoDB can be copied. Where a tablespace is discarded or imported, followers empty the table instead:
    they have no file to import, and a table whose tablespace is discarded takes no rows.
    """
    effects = statement.effects
    doubts = {effect.unfaithful for effect in effects if effect.unfaithful}
    if not statement.in_innodb or statement.unreadable or not doubts <= COPIED_AGAIN:
        return statement
    if [effect.action for effect in effects] == ["AlterTable", "TruncateTable"]:
        return _emptying(statement)
    if not doubts and not any(effect.any_order for effect in effects):
        return statement
    marked = replace(statement, copies=_tables(effects), unlike=next(iter(doubts), _ANY_ORDER))
    if IMPORTED in doubts:
        return _emptying(marked)
    return replace(marked, effects=tuple(effect._replace(unfaithful="") for effect in effects))


def _tables(effects: tuple[Effect, ...]) -> tuple[Table, ...]:
    """Returns the altered table, under the name that the statement gives to it."""
    new = {(effect.database, effect.name or ""): effect.to for effect in effects if effect.to}
    names = [(effect.database, effect.name or "") for effect in effects if effect.action == "AlterTable"]
    return tuple(new.get(name) or name for name in names)


def _emptying(statement: LoggedStatement) -> LoggedStatement:
    """Returns the statement as one that empties its table."""
    (effect,) = {each._replace(action="TruncateTable", unfaithful="") for each in statement.effects}
    name = ".".join(f"`{part.replace('`', '``')}`" for part in (effect.database, effect.name or ""))
    context = statement.context | {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}
    return replace(statement, text=f"TRUNCATE TABLE {name}", effects=(effect,), context=context, exact=None)
