"""Decides which of the leader's transactions are left out because they touch a parked table
(``consumer.on_refused = "park"``). Pure.

The topic itself keeps what is left out: nothing but the names of the tables is stored on the follower.

- A transaction that the follower has refused is left out as a whole, and all tables that it touches are parked.
- A later transaction that touches a parked table is left out as a whole, and parks the other tables that it touches.
- A table whose rows foreign keys of the follower change together with those of a parked table is parked, too, since
  such changes are in the binlog of MySQL before 9.6 only as changes of the parked table.
- From the first chunk of a copy of a parked table on, the changes of that table are applied, even if the other tables
  of a transaction are parked: else tables that always change together could never come back, since their copies end
  one after the other.
- When all parked tables are copied, the set is empty again.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from cdc.config.table_globs import named
from cdc.consumer.errors import Unapplicable
from cdc.consumer.plan.planner import ALL_LOGGED
from cdc.consumer.source.statement_check import names_in
from cdc.consumer.state.parked import COPIED, COPYING, PARKED, PARTIAL, Name, ParkedTable
from cdc.model.record import Record, Uri
from cdc.sql.effects import MAINTAIN

__all__ = ["GONE", "LeftOutLate", "ParkedTables", "is_gone", "may_park", "tables_touched"]

GONE = "the leader drops a table that the follower does not have"  # the reason for which nothing is parked
_UNKNOWN_TABLE = 1051

_OF_TABLES = ("Table", "Index")
_DROPS = ("DropTable", "DropDatabase")
# Errors that no server has reported, but which are about the follower's data or definitions, or about a value.
_OF_DATA = frozenset({
    "CDC-CONFLICT", "CDC-COPY-CASCADES", "CDC-COPY-KEY-ORDER", "CDC-COPY-MISPLACED-ROWS", "CDC-COPY-OTHER-COLUMNS",
    "CDC-COPY-UNIQUE-KEY", "CDC-FOLLOWER-NUMBERING", "CDC-STATEMENT-OWN-TYPE", "CDC-VALUE-NOT-APPLICABLE",
})  # fmt: skip
# Errors of settings and grants: the next record of any table might be refused for the same reason.
_OF_SERVER = frozenset({1038, 1044, 1142, 1143, 1153, 1197, 1227, 1290, 1370, 1449, 1598, 1705, 3098, 3100, 3101})


def is_gone(error: Unapplicable) -> bool:
    """Whether the refused record only drops one table, which the follower does not have."""
    drops = [affect["action"] for affect in error.record.affects] == ["DropTable"]
    return drops and error.refused is not None and error.refused.code == _UNKNOWN_TABLE


class LeftOutLate(Exception):
    """A later part of a large transaction touches a parked table, and earlier parts are executed but not committed."""


def tables_touched(record: Record, *, former: Callable[[str], str]) -> frozenset[Name]:
    """Returns the leader's names of the tables that a record changes; empty for a statement that does not only affect
    tables. ``former`` returns the leader's name of a database.
    """
    if record.operation != "Query":
        table = record.uri.table
        return frozenset() if table is None else frozenset({(former(record.uri.database), table)})
    if not all(affect["action"].endswith(_OF_TABLES) for affect in record.affects):
        return frozenset()
    # In a statement, names are still the leader's names.
    uris = [Uri.parse(affect[end]) for affect in record.affects for end in ("uri", "to") if end in affect]
    return frozenset((uri.database, uri.table) for uri in uris if uri.table is not None)


def may_park(error: Unapplicable) -> bool:
    """Whether the record is refused because of the follower's data or definitions, and not because of a setting or a
    grant, and changes only tables.
    """
    refused = error.refused
    of_data = error.code in _OF_DATA if refused is None else refused.code not in _OF_SERVER
    return of_data and bool(tables_touched(error.record, former=str))


class ParkedTables:
    """The parked tables while transactions pass, one after the other. ``tables`` are those on the follower.

    ``refused`` maps each transaction that is left out from its first record on to the follower's reason; the reason is
    empty if only a later part of the transaction touches a parked table. ``former`` returns the leader's name
    of a database. ``dependants`` returns the tables whose rows foreign keys of the follower change or delete when rows
    of a table change.
    """

    def __init__(
        self,
        tables: Mapping[Name, ParkedTable],
        *,
        refused: Mapping[str, str],
        former: Callable[[str], str],
        dependants: Callable[[Name], Iterable[Name]],
    ) -> None:
        self.tables = dict(tables)
        self._refused = refused
        self._former = former
        self._dependants = dependants
        # The present transaction: whether it is left out, and the tables of which earlier parts are executed.
        self._current = ""
        self._leaves = False
        self._executed: set[Name] = set()

    @property
    def holds(self) -> bool:
        """Whether a table is parked, or a transaction is left out."""
        return bool(self.tables or self._refused)

    def concerns(self, record: Record) -> bool:
        """Whether the record may be left out, or change the set."""
        return self.holds and (
            record.transaction in self._refused
            or record.transaction == self._current
            or record.operation == "Query"
            or not self.tables.keys().isdisjoint(tables_touched(record, former=self._former))
        )

    def take(self, records: Sequence[Record]) -> list[Record]:
        """Returns those of the row records of one transaction, or of a part of it, that are to be applied.

        Raises LeftOutLate.
        """
        first = records[0]
        self._enter(first)
        if first.range is not None:
            return list(records) if self._takes_chunk(first) else []
        touched = {name for record in records for name in self._touched(record)}
        stopped = {
            name
            for record in records
            for name in self._touched(record)
            if not record.copying and self._state(name) == COPYING  # the producer no longer copies the table
        }
        waits = {name for name in touched if name in self.tables and self.tables[name].waits}
        reason = self._refused.get(first.transaction)
        if reason is None and not (self._leaves or waits or stopped):
            self._executed |= touched - self.tables.keys()
            return list(records)
        if self._executed:
            raise LeftOutLate(first.transaction)
        self._leaves = True
        kept = set() if reason else {name for name in touched if self._state(name) in (COPYING, COPIED)} - stopped
        unlogged = not all(record.flags & ALL_LOGGED for record in records)
        self._park(touched - kept, first.sequence, reason or _together(waits | stopped), unlogged=unlogged)
        return [record for record in records if self._touched(record) <= kept]

    def against(self, record: Record) -> str | None:
        """Returns the reason why a statement is left out; None if it is not.

        Raises Unapplicable for a statement that may read the definition of a parked table.
        """
        if (reason := self._refused.get(record.transaction)) is not None:
            return reason
        actions = [affect["action"] for affect in record.affects]
        waiting = [name for name, table in self.tables.items() if table.waits]
        if not waiting or all(action in (*_DROPS, MAINTAIN) for action in actions):
            return None
        touched = tables_touched(record, former=self._former)
        found = [name for name in waiting if name in touched or self._is_read(record, name, touched)]
        if found and not touched:
            raise _unclear(record, found[0])
        return _together(found) if found else None

    def settle(self, statement: Record) -> bool:
        """Notes that a statement is executed, or left out (``against``); returns whether it is left out."""
        self._enter(statement)
        touched = self._touched(statement)
        if touched and (reason := self.against(statement)) is not None:
            self._leaves = True
            if reason == GONE:
                for name in touched:
                    self.tables.pop(name, None)
                self._end()
            else:
                # A statement does not show whether its leader logs what foreign keys change.
                new = {name for name in touched if name not in self.tables or not self.tables[name].waits}
                self._park(new, statement.sequence, reason, unlogged=True)
            return True
        for affect in statement.affects:
            uri = Uri.parse(affect["uri"])
            if affect["action"] in _DROPS:
                for name in [name for name in self.tables if _is_in(name, uri)]:
                    del self.tables[name]
                self._end()
        return False

    def _enter(self, record: Record) -> None:
        if record.transaction != self._current:
            self._current, self._leaves, self._executed = record.transaction, False, set()

    def _touched(self, record: Record) -> frozenset[Name]:
        return tables_touched(record, former=self._former)

    def _state(self, name: Name) -> str:
        table = self.tables.get(name)
        return "" if table is None else table.state

    def _is_read(self, record: Record, name: Name, touched: Collection[Name]) -> bool:
        """Whether the statement may copy the definition of the table ``name`` or refer to it by a foreign key: for a
        view, or a statement with LIKE or REFERENCES, a word of this name is enough.
        """
        if not touched and not any(affect["action"].endswith("View") for affect in record.affects):
            return False
        try:
            words = names_in(record)
        except ValueError:
            return False  # whoever executes the statement refuses it for the same reason
        return name[1].casefold() in words and (not touched or not words.isdisjoint({"like", "references"}))

    def _takes_chunk(self, chunk: Record) -> bool:
        (name,) = self._touched(chunk)
        table, reason = self.tables.get(name), self._refused.get(chunk.transaction)
        if reason is not None:
            self._park({name}, chunk.sequence, reason, unlogged=True)
            self.tables[name] = replace(self.tables[name], changed=chunk.sequence, reason=reason)
            return False
        if table is None:
            return True
        assert chunk.range is not None
        if chunk.range.keys is not None:
            return not table.waits
        begins, ends = chunk.range.after is None, chunk.range.through is None
        if begins and table.waits and not self._depends(name):
            table = self.tables[name] = replace(table, state=COPYING, changed=chunk.sequence)
        if table.waits:
            if begins or ends:
                # The leader's stream has the beginning or the end of a copy here that this follower leaves out.
                self.tables[name] = replace(table, changed=chunk.sequence)
            return False
        if ends and table.state == COPYING:
            self.tables[name] = replace(table, state=COPIED, changed=chunk.sequence)
            self._end()
        return True

    def _depends(self, name: Name) -> bool:
        """Whether foreign keys change rows of the table together with those of another one that waits."""
        waiting = {each for each, table in self.tables.items() if table.waits and each != name}
        return name in self._with_dependants(waiting) - waiting

    def _end(self) -> None:
        if all(table.state == COPIED for table in self.tables.values()):
            self.tables.clear()

    def _park(self, names: Collection[Name], sequence: int, reason: str, *, unlogged: bool) -> None:
        for name in sorted(names):
            self._park_one(name, sequence, reason)
        if unlogged:
            more = self._with_dependants(set(names)) - set(names)
            shown = _listed(names)
            for name in sorted(more):
                self._park_one(name, sequence, f"foreign keys change its rows together with those of {shown}")

    def _park_one(self, name: Name, sequence: int, reason: str) -> None:
        table = self.tables.get(name)
        if table is None or table.state == COPIED:
            self.tables[name] = ParkedTable(sequence, sequence, PARKED, reason)
        elif table.state == COPYING:
            self.tables[name] = replace(table, changed=sequence, state=PARTIAL, reason=reason)

    def _with_dependants(self, names: set[Name]) -> set[Name]:
        found, waiting = set(names), list(names)
        while waiting:
            new = set(self._dependants(waiting.pop())) - found
            found |= new
            waiting += new
        return found


def _is_in(name: Name, uri: Uri) -> bool:
    return name[0] == uri.database and uri.table in (None, name[1])


def _listed(names: Collection[Name]) -> str:
    shown = [named(*name) for name in sorted(names)[:3]]
    return ", ".join(shown) + (", …" if len(names) > len(shown) else "")


def _together(names: Collection[Name]) -> str:
    return f"changed together with {_listed(names)}, which is parked" if names else "changed with a parked table"


def _unclear(record: Record, name: Name) -> Unapplicable:
    shown = named(*name)
    return Unapplicable(
        f"a view may use table {shown}, which is parked, so its definition may not be the leader's",
        code="CDC-PARKED-STATEMENT",
        record=record,
        hint=f"when {shown} is as on the leader again, create the view on the follower by hand",
    )
