"""Decides which statements followers may execute although they get other rows than the leader, because the tables are
then copied again (``producer.on_unrepeatable = "copy"``). Pure.

A crash can't separate the record of such a statement from the request for the copy: the record is marked as the record
of a table that is being copied, and the state of the copies, which lists the table, is committed with the record or
before it.
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

    Only tables of InnoDB can be copied. If the statement discards or imports a tablespace, followers empty the table
    instead: they have no file to import, and a table without its tablespace accepts no rows.
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
    """Returns the tables that the statement alters, under the names that they have after the statement."""
    new = {(effect.database, effect.name or ""): effect.to for effect in effects if effect.to}
    names = [(effect.database, effect.name or "") for effect in effects if effect.action == "AlterTable"]
    return tuple(new.get(name) or name for name in names)


def _emptying(statement: LoggedStatement) -> LoggedStatement:
    """Returns a TRUNCATE TABLE of the statement's table in place of the statement."""
    (effect,) = {each._replace(action="TruncateTable", unfaithful="") for each in statement.effects}
    name = ".".join(f"`{part.replace('`', '``')}`" for part in (effect.database, effect.name or ""))
    context = statement.context | {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}
    return replace(statement, text=f"TRUNCATE TABLE {name}", effects=(effect,), context=context, exact=None)
