"""Represents the state of table copies: the tables that are left, and the progress of the current table. Pure.

Statements and chunks change the state. The commit log's entries contain it as JSON.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

from cdc.sql.effects import MAINTAIN, Effect

__all__ = ["Pending", "RecordState", "Table", "concerns"]

Table = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pending:
    """The tables that are left to copy, in order (first ``fresh``, then ``again``), and the progress of the first
    table.

    ``structure`` is true if the stream has not begun: its first statements create the leader's objects. ``fresh`` are
    tables that were not in the stream before, and the table whose copy was under way when they were added. ``again``
    are tables whose changes the stream already contains; a table requested during its copy is listed twice. ``after``
    is the key up to which the first table is copied, as the JSON text of its values; None before the first chunk, or if
    the copy must start over. For a table that is copied from one snapshot, ``after`` is ``()`` once the first chunk is
    written; this chunk makes followers delete their rows. ``written`` counts the chunks and statements of all copies.
    ``rows`` counts the rows of the first table since its copy began. ``requests`` is the offset after the newest
    processed request, ``requests_topic`` is the id of its topic. ``repairs`` counts the chunks of chosen keys.
    ``unreadable`` are tables whose copy has not begun and of which the stream lacks rows, because these rows can't be
    read; each is listed with the first transaction in which such rows came.
    """

    structure: bool = False
    fresh: tuple[Table, ...] = ()
    again: tuple[Table, ...] = ()
    after: tuple[str, ...] | None = None
    written: int = 0
    rows: int = 0
    requests: int = 0
    requests_topic: str = ""
    repairs: int = 0
    unreadable: tuple[tuple[Table, str], ...] = ()

    def __post_init__(self) -> None:
        # A table is no longer listed once its copy begins or is given up, whatever the reason is.
        if self.unreadable:
            listed = tuple(each for each in self.unreadable if each[0] in self.waiting)
            object.__setattr__(self, "unreadable", listed)

    @classmethod
    def from_json(cls, body: dict[str, Any] | None) -> Self:
        """Parses the state that ``to_json`` has written; None is the state of a stream without copies.

        Raises TypeError, ValueError or KeyError for anything else.
        """
        if body is None:
            return cls()
        tables = {name: tuple((str(database), str(table)) for database, table in body[name]) for name in _LISTS}
        after = body["after"] if body["after"] is None else tuple(map(str, body["after"]))
        listed = [((str(database), str(table)), str(first)) for (database, table), first in body.get("unreadable", ())]
        return cls(**(body | tables | {"after": after, "unreadable": tuple(listed)}))

    def to_json(self) -> dict[str, Any] | None:
        """Returns the state as JSON; None if no table was or is to be copied."""
        body = {name: value for name, value in asdict(self).items() if value or name not in _LEFT_OUT}
        return None if self == Pending() else body

    @property
    def active(self) -> bool:
        """Whether anything is left to copy."""
        return self.structure or self.current is not None

    @property
    def current(self) -> Table | None:
        """The table that is being copied."""
        return next(iter(self.tables), None)

    @property
    def incomplete(self) -> frozenset[Table]:
        """The tables whose rows may be missing or different on a follower until they are copied."""
        return frozenset(self.tables)

    def asked(self, tables: Iterable[Table], *, requests: int, topic: str = "") -> "Pending":
        """Returns the state after a request for a copy of ``tables``; ``requests`` is the offset after this request in
        ``topic``.

        If the table that is copied now is requested, it is copied once more afterwards, since the rows written before
        the request may need repair, too.
        """
        return replace(self.also(tables), requests=requests, requests_topic=topic)

    def also(self, tables: Iterable[Table]) -> "Pending":
        """Returns the state in which ``tables`` are to be copied, too; see ``asked``."""
        new = [table for table in dict.fromkeys(tables) if table not in self.waiting]
        return replace(self, again=(*self.again, *new))

    @property
    def waiting(self) -> tuple[Table, ...]:
        """The tables of which a copy is still to begin."""
        return self.tables if self.after is None else self.tables[1:]

    def lacks_rows(self, table: Table, transaction: str) -> bool:
        """Whether a record before ``transaction`` states already that the stream lacks rows of ``table``, and the copy
        that replaces these rows has not begun.
        """
        return any(listed == table and first != transaction for listed, first in self.unreadable)

    def lacking(self, tables: Iterable[Table], transaction: str) -> "Pending":
        """Returns the state after rows of ``tables`` in ``transaction`` could not be read: the tables are copied."""
        known = {table for table, _ in self.unreadable}
        new = tuple((table, transaction) for table in dict.fromkeys(tables) if table not in known)
        return replace(self.also(tables), unreadable=(*self.unreadable, *new))

    def stopped(self, tables: Iterable[Table], *, requests: int, topic: str = "") -> "Pending":
        """Returns the state after a request to stop copying ``tables``. Tables that are copied for the first time are
        copied nevertheless.

        The chunks of a stopped table stay valid, but its copy never ends in the stream: the table is incomplete until
        it is copied again. A copy continues if followers have deleted all rows of the table: they would lack the rows
        that are not written yet.
        """
        gone = set(tables)
        again = tuple(table for table in self.again if table not in gone)
        ends = not self.fresh and self.current in gone
        if ends and self.is_emptied:
            again, ends = (self.again[0], *again), False
        left = self if not ends else self.begun_again()
        return replace(left, again=again, requests=requests, requests_topic=topic)

    def taken_up(self, requests: int, topic: str = "") -> "Pending":
        """Returns the state after a request was processed or dropped. ``requests`` is the offset after this request in
        the topic with the id ``topic``.
        """
        return replace(self, requests=requests, requests_topic=topic)

    def repaired(self) -> "Pending":
        """Returns the state after a chunk with the rows of requested keys."""
        return replace(self, written=self.written + 1, repairs=self.repairs + 1)

    def begun_with(self, tables: Iterable[Table], statements: int) -> "Pending":
        """Returns the state after the stream's first statements, which create ``tables``; ``statements`` is their
        number.
        """
        again = tuple(table for table in self.again if table not in tables)
        return replace(self, structure=False, fresh=tuple(tables), again=again, written=self.written + statements)

    def let_in(self, tables: Sequence[Table], statements: int) -> "Pending":
        """Returns the state after statements that create ``tables``, which the new filters include; ``statements`` is
        the number of these statements. The copy under way stays first. It begins again if it is of one of ``tables``,
        since other rows of that table pass from here on.
        """
        under_way = self.again[:1] if self.after is not None and not self.fresh else ()
        fresh = tuple(dict.fromkeys((*self.fresh, *under_way, *tables)))
        again = tuple(table for table in self.again if table not in fresh)
        left = self.begun_again() if self.current in tables and not self.is_emptied else self
        return replace(left, fresh=fresh, again=again, written=self.written + statements)

    def chunk_written(self, upto: tuple[str, ...] | None, rows: int) -> "Pending":
        """Returns the state after a chunk of the current table with ``rows``, up to the key ``upto``, or to the table's
        end.
        """
        if upto is not None:
            return replace(self, after=upto, written=self.written + 1, rows=self.rows + rows)
        return replace(self._without_first(), written=self.written + 1)

    def begun_again(self) -> "Pending":
        """Returns the state in which the copy of the current table starts again from the table's beginning."""
        return replace(self, after=None, rows=0)

    @property
    def is_emptied(self) -> bool:
        """Whether the current table is copied without ranges of keys, and its first chunk was written: with this chunk,
        followers delete all rows of the table."""
        return self.after == ()

    def without_pieces(self) -> "Pending":
        """Returns the state in which the copy of the current table starts again if the table is copied from one
        snapshot: the rest of its rows can no longer be read from that snapshot.
        """
        return replace(self, rows=0) if self.is_emptied else self

    def _without_first(self) -> "Pending":
        fresh, again = (self.fresh[1:], self.again) if self.fresh else ((), self.again[1:])
        return replace(self, fresh=fresh, again=again, after=None, rows=0)

    def is_changed_by(self, effects: Sequence[Effect]) -> bool:
        """Whether a statement with these ``effects`` may have changed or removed a table that is to be copied."""
        return any(concerns(effect, table) for effect in self._effective(effects) for table in self.tables)

    def _effective(self, effects: Sequence[Effect]) -> list[Effect]:
        """Returns the effects without CREATE TABLE IF NOT EXISTS of a partly copied table: the table exists, and stays
        as it is.
        """
        made = "CreateTable", self.current
        return [each for each in effects if self.after is None or (each.action, (each.database, each.name)) != made]

    def after_statement(self, effects: Sequence[Effect]) -> "Pending":
        """Returns the state after a statement with these ``effects``: tables may be dropped, renamed, or copied from
        the beginning."""
        current, effects = self.current, self._effective(effects)
        if current is None or not any(concerns(effect, table) for effect in effects for table in self.tables):
            return self
        if any(concerns(effect, current) for effect in effects):
            changed = replace(self, fresh=_all_now(self.fresh, effects), again=_all_now(self.again, effects))
            is_emptied = self.is_emptied and bool(_now(current, effects))
            return replace(changed, after=() if is_emptied else None, rows=0)
        # The copy of the current table continues, and the table may be in the list once more.
        first = (current,)
        if self.fresh:
            return replace(self, fresh=first + _all_now(self.fresh[1:], effects), again=_all_now(self.again, effects))
        return replace(self, again=first + _all_now(self.again[1:], effects))

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables that are to be copied, in this order."""
        return self.fresh + self.again

    def wanted(self, wants_table: Callable[[str, str], bool]) -> "Pending":
        """Returns the state without the tables that the filters leave out."""
        pending = self
        for table in self.tables:
            if not wants_table(*table):
                pending = pending.without(table)
        return pending

    def without(self, table: Table) -> "Pending":
        """Returns the state without a table that no longer exists, or is not wanted."""
        fresh, again = (tuple(each for each in tables if each != table) for tables in (self.fresh, self.again))
        left = self if table != self.current else self.begun_again()
        return replace(left, fresh=fresh, again=again)


_LISTS = ("fresh", "again")
# These fields are left out if they are empty, since earlier versions of cdc do not know them.
_LEFT_OUT = ("requests_topic", "repairs", "unreadable")


def concerns(effect: Effect, table: Table) -> bool:
    """Whether the statement may have changed or moved the table, or replaced it by another table."""
    if effect.action == "DropDatabase":
        return effect.database == table[0]
    if effect.action == MAINTAIN:
        return False  # such a statement changes no rows
    return effect.action.endswith(("Table", "Index")) and table in ((effect.database, effect.name), effect.to)


def _all_now(tables: Iterable[Table], effects: Sequence[Effect]) -> tuple[Table, ...]:
    return tuple(dict.fromkeys(name for table in tables for name in _now(table, effects)))


def _now(table: Table, effects: Iterable[Effect]) -> list[Table]:
    """Returns the tables to copy in place of ``table`` after a statement: the table under its new name, a table that
    took the old name, and a table with which ``table`` exchanged a partition, so that it may contain rows that no
    follower has yet.
    """
    now: Table | None = table
    for effect in effects:
        if now is None or not concerns(effect, now):
            continue
        if effect.action.startswith("Drop") and not effect.action.endswith("Index"):
            now = None
        elif effect.action == "RenameTable" and now == (effect.database, effect.name):
            now = effect.to
    successor = [table] if any(effect.to == table for effect in effects) and now != table else []
    return ([now] if now else []) + successor + _exchanged(table, effects)


def _exchanged(table: Table, effects: Iterable[Effect]) -> list[Table]:
    """Returns the other table that ALTER TABLE … EXCHANGE PARTITION alters; no other statement alters two tables."""
    altered = [(effect.database, effect.name or "") for effect in effects if effect.action == "AlterTable"]
    return [other for other in altered if other != table] if table in altered else []


class RecordState(NamedTuple):
    """The state of the copies after a record. A header of the record contains it, so that a later run can continue
    after a crash.

    ``pending`` is the state of the table copies. If other ``filters`` (in the form of ``Filters.listed``) hold from
    this record on, ``executed`` is the GTID set of the transactions in the stream before it.
    """

    pending: Pending
    filters: dict[str, list[str]] | None = None
    executed: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses a text that the method ``text`` returned. Raises TypeError, ValueError or KeyError for anything
        else."""
        body = json.loads(text)
        filters, executed = (body.pop(_FILTERS, None), body.pop(_EXECUTED, "")) if body else (None, "")
        return cls(Pending.from_json(body or None), filters, executed)

    def text(self) -> str:
        """Returns the state as JSON."""
        if self.filters is None:
            return json.dumps(self.pending.to_json())
        return json.dumps((self.pending.to_json() or {}) | {_FILTERS: self.filters, _EXECUTED: self.executed})


_FILTERS, _EXECUTED = "filters", "executed"
