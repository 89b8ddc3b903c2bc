"""The state of the copies: the tables that are left, and how far the current one is. Statements and chunks change it.

The commit log's entries have it as JSON. Pure.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

from cdc.sql.effects import Effect
from cdc.sql.maintenance import MAINTAIN

__all__ = ["Pending", "RecordState", "Table", "concerns"]

Table = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pending:
    """The tables that are left to copy, in order (first ``fresh``, then ``again``), and the progress of the first.

    ``structure``: the stream has not begun; its first statements create the leader's objects. ``fresh``: tables that
    were not in the stream before, and the one whose copy was under way when they came in. ``again``: tables whose
    changes the stream already has; a table requested during its copy is listed twice. ``after``: the key up to which
    the first table is copied, as the JSON text of its values; None before the first chunk, or if the copy must start
    over; ``()`` for a table that is copied in one snapshot, once its first piece made followers delete their rows.
    ``written`` counts the chunks and statements of all copies, ``rows`` the rows of the first table since its copy
    began. ``requests``: the offset behind the newest processed request, ``requests_topic`` the id of its topic.
    ``repairs`` counts the chunks of chosen keys.
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

    @classmethod
    def from_json(cls, body: dict[str, Any] | None) -> Self:
        """The state that ``to_json`` has written; None for that of a stream without any copy.

        Raises TypeError, ValueError or KeyError for anything else.
        """
        if body is None:
            return cls()
        tables = {name: tuple((str(database), str(table)) for database, table in body[name]) for name in _LISTS}
        after = body["after"] if body["after"] is None else tuple(map(str, body["after"]))
        return cls(**(body | tables | {"after": after}))

    def to_json(self) -> dict[str, Any] | None:
        """The state as JSON; None where nothing was ever copied, nor is to be."""
        body = {name: value for name, value in asdict(self).items() if value or name not in _LEFT_OUT}
        return None if self == Pending() else body

    @property
    def active(self) -> bool:
        """Whether there is anything to copy."""
        return self.structure or self.current is not None

    @property
    def current(self) -> Table | None:
        """The table that is copied now."""
        return next(iter(self.tables), None)

    @property
    def incomplete(self) -> frozenset[Table]:
        """The tables whose rows need not be on a follower yet, or are others there: the copy puts them right."""
        return frozenset(self.tables)

    def asked(self, tables: Iterable[Table], *, requests: int, topic: str = "") -> "Pending":
        """With ``tables`` that are to be copied again, by a request before the offset ``requests`` of that topic.

        One that is copied now is copied once more after that: who asks wants what was written already put right, too.
        """
        waiting = self.tables if self.after is None else self.tables[1:]
        new = [table for table in dict.fromkeys(tables) if table not in waiting]
        return replace(self, again=(*self.again, *new), requests=requests, requests_topic=topic)

    def stopped(self, tables: Iterable[Table], *, requests: int, topic: str = "") -> "Pending":
        """Without ``tables`` among those that are copied again, by such a request.

        What of one was written stays true, and the stream has no end of its copy: it is incomplete until another one.
        One of whose rows followers have removed all is not stopped: they would lack what was not written yet.
        """
        gone = set(tables)
        again = tuple(table for table in self.again if table not in gone)
        ends = not self.fresh and self.current in gone
        if ends and self.is_emptied:
            again, ends = (self.again[0], *again), False
        left = self if not ends else self.begun_again()
        return replace(left, again=again, requests=requests, requests_topic=topic)

    def taken_up(self, requests: int, topic: str = "") -> "Pending":
        """With such a request done, or left out."""
        return replace(self, requests=requests, requests_topic=topic)

    def repaired(self) -> "Pending":
        """After a chunk of keys."""
        return replace(self, written=self.written + 1, repairs=self.repairs + 1)

    def begun_with(self, tables: Iterable[Table], statements: int) -> "Pending":
        """After ``statements``, which create ``tables``, at the stream's beginning."""
        again = tuple(table for table in self.again if table not in tables)
        return replace(self, structure=False, fresh=tuple(tables), again=again, written=self.written + statements)

    def let_in(self, tables: Iterable[Table], statements: int) -> "Pending":
        """After ``statements``, which create ``tables`` that the filters let in now. What is under way stays first."""
        under_way = self.again[:1] if self.after is not None and not self.fresh else ()
        fresh = tuple(dict.fromkeys((*self.fresh, *under_way, *tables)))
        again = tuple(table for table in self.again if table not in fresh)
        return replace(self, fresh=fresh, again=again, written=self.written + statements)

    def chunk_written(self, upto: tuple[str, ...] | None, rows: int) -> "Pending":
        """After a chunk of the current table with ``rows``, up to that key, or to the table's end."""
        if upto is not None:
            return replace(self, after=upto, written=self.written + 1, rows=self.rows + rows)
        return replace(self._without_first(), written=self.written + 1)

    def begun_again(self) -> "Pending":
        """With nothing of the current table copied."""
        return replace(self, after=None, rows=0)

    @property
    def is_emptied(self) -> bool:
        """Whether followers have removed all rows of the current table, which is copied as a whole."""
        return self.after == ()

    def without_pieces(self) -> "Pending":
        """With no rows of a table that is copied as a whole: the rest can't be read as of the same moment any more."""
        return replace(self, rows=0) if self.is_emptied else self

    def _without_first(self) -> "Pending":
        fresh, again = (self.fresh[1:], self.again) if self.fresh else ((), self.again[1:])
        return replace(self, fresh=fresh, again=again, after=None, rows=0)

    def is_changed_by(self, effects: Sequence[Effect]) -> bool:
        """Whether what is read now may be another after a statement with these ``effects``, or not wanted any more."""
        return any(concerns(effect, table) for effect in self._effective(effects) for table in self.tables)

    def _effective(self, effects: Sequence[Effect]) -> list[Effect]:
        """Without CREATE TABLE IF NOT EXISTS of a table of which a part is copied: it exists, and stays as it is."""
        made = "CreateTable", self.current
        return [each for each in effects if self.after is None or (each.action, (each.database, each.name)) != made]

    def after_statement(self, effects: Sequence[Effect]) -> "Pending":
        """After a statement with these ``effects``: tables may be gone, have other names, or begin again."""
        current, effects = self.current, self._effective(effects)
        if current is None or not any(concerns(effect, table) for effect in effects for table in self.tables):
            return self
        if any(concerns(effect, current) for effect in effects):
            changed = replace(self, fresh=_all_now(self.fresh, effects), again=_all_now(self.again, effects))
            is_emptied = self.is_emptied and bool(_now(current, effects))
            return replace(changed, after=() if is_emptied else None, rows=0)
        # It goes on, and may be among the others once more.
        first = (current,)
        if self.fresh:
            return replace(self, fresh=first + _all_now(self.fresh[1:], effects), again=_all_now(self.again, effects))
        return replace(self, again=first + _all_now(self.again[1:], effects))

    @property
    def tables(self) -> tuple[Table, ...]:
        """All that are to be copied, in this order."""
        return self.fresh + self.again

    def wanted(self, wants_table: Callable[[str, str], bool]) -> "Pending":
        """Without the tables that the filters leave out now."""
        pending = self
        for table in self.tables:
            if not wants_table(*table):
                pending = pending.without(table)
        return pending

    def without(self, table: Table) -> "Pending":
        """Without a table that does not exist any more, or is not wanted."""
        fresh, again = (tuple(each for each in tables if each != table) for tables in (self.fresh, self.again))
        left = self if table != self.current else self.begun_again()
        return replace(left, fresh=fresh, again=again)


_LISTS = ("fresh", "again")
_LEFT_OUT = ("requests_topic", "repairs")  # where they are empty, since older versions do not know them


def concerns(effect: Effect, table: Table) -> bool:
    """Whether the statement may have changed or moved the table, or put another one in its place."""
    if effect.action == "DropDatabase":
        return effect.database == table[0]
    if effect.action == MAINTAIN:
        return False  # all rows are there as before
    return effect.action.endswith(("Table", "Index")) and table in ((effect.database, effect.name), effect.to)


def _all_now(tables: Iterable[Table], effects: Sequence[Effect]) -> tuple[Table, ...]:
    return tuple(dict.fromkeys(name for table in tables for name in _now(table, effects)))


def _now(table: Table, effects: Iterable[Effect]) -> list[Table]:
    """What is to be copied in the place of ``table``: the table by its name of now, one that has taken its name, and
    one with which it has exchanged a partition, since that gives rows to it which may not be on a follower yet."""
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
    """The other table of ALTER TABLE … EXCHANGE PARTITION, the only statement that alters two."""
    altered = [(effect.database, effect.name or "") for effect in effects if effect.action == "AlterTable"]
    return [other for other in altered if other != table] if table in altered else []


class RecordState(NamedTuple):
    """The state of the copies after a record, in a header of it, for a run that goes on after a crash.

    ``pending`` is left after the record. Where other ``filters`` (listed) hold from there on, the stream had
    ``executed`` these transactions by then.
    """

    pending: Pending
    filters: dict[str, list[str]] | None = None
    executed: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """The state that ``text`` was made of. Raises TypeError, ValueError or KeyError for anything else."""
        body = json.loads(text)
        filters, executed = (body.pop(_FILTERS, None), body.pop(_EXECUTED, "")) if body else (None, "")
        return cls(Pending.from_json(body or None), filters, executed)

    def text(self) -> str:
        """The state as JSON."""
        if self.filters is None:
            return json.dumps(self.pending.to_json())
        return json.dumps((self.pending.to_json() or {}) | {_FILTERS: self.filters, _EXECUTED: self.executed})


_FILTERS, _EXECUTED = "filters", "executed"
