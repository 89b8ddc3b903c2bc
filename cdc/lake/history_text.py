"""Writes the schema history of a stream as JSON and reads it, so that a later run needs to read only new records.
Pure."""

from dataclasses import asdict, replace
from typing import Any

from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act
from cdc.spark.frames.schema_history import History, Statement, Told

__all__ = ["NOTHING", "from_tree", "to_tree", "upto", "with_more", "without_copies"]

NOTHING = History((), {}, (), False)


def to_tree(history: History) -> dict[str, Any]:
    """Converts the history to a tree of dictionaries and lists for ``json.dumps``."""
    return {
        "acts": [asdict(act) for act in history.acts],
        "statements": {
            str(sequence): {**asdict(each), "sql_mode": sorted(each.sql_mode)}
            for sequence, each in history.statements.items()
        },
        "told": [asdict(each) for each in history.told],
        "silent": history.silent_cascades,
    }


def from_tree(tree: dict[str, Any]) -> History:
    """Converts a tree from ``to_tree`` to a history. Raises KeyError, TypeError or ValueError for any other tree."""
    statements = {
        int(sequence): Statement(**{**each, "sql_mode": frozenset(each["sql_mode"])})
        for sequence, each in tree["statements"].items()
    }
    return History(
        tuple(Act(**each) for each in tree["acts"]),
        statements,
        tuple(_told(each) for each in tree["told"]),
        # Earlier versions wrote another key, which a repair could set wrongly.
        bool(tree.get("silent")),
    )


def with_more(history: History, more: History) -> History:
    """Joins ``history`` with ``more``, the history of the records that follow."""
    return History(
        (*history.acts, *more.acts),
        {**history.statements, **more.statements},
        (*history.told, *more.told),
        history.silent_cascades or more.silent_cascades,
    )


def without_copies(history: History, *, upto: int) -> History:
    """Returns the history without copies of tables that began up to ``upto``: records of them, or of later changes, are
    missing.
    """
    acts = tuple(act for act in history.acts if act.sequence > upto or act.action not in (BEGINS_COPY, ENDS_COPY))
    return replace(history, acts=acts) if upto >= 0 else history


def upto(history: History, sequence: int) -> History:
    """Returns the history of the records up to and including ``sequence``."""
    statements = {number: each for number, each in history.statements.items() if number <= sequence}
    told = tuple(each for each in history.told if each.sequence <= sequence)
    return History(tuple(history.upto(sequence)), statements, told, history.silent_cascades)


def _told(tree: dict[str, Any]) -> Told:
    database, table = tree["name"]
    columns = tuple((name, kind) for name, kind in tree["columns"])
    key = None if tree["key"] is None else tuple(tree["key"])
    return Told((database, table), int(tree["sequence"]), columns, key)
