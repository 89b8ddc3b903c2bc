"""Decides which of the leader's records that were left out of parked tables are applied later
(``cdc-consumer --retry-parked``). Pure.

A parked table is as before the record ``sequence``, but for writes of other clients; all its later changes are left out
(``parked_tables``). So the records to apply are those of the table from ``sequence`` on, whatever other tables their
transactions touch: the others have a ``sequence`` of their own, are not parked, or are being copied.

Statements, copies, and tables whose rows foreign keys change without a record are not repeated but refused: the tables
then stay parked.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from cdc.config.table_globs import copy_command, named
from cdc.consumer.errors import position_of
from cdc.consumer.plan.planner import ALL_LOGGED, NO_FOREIGN_KEY_CHECKS
from cdc.consumer.source.assembler import Located, Transaction
from cdc.consumer.source.parked_tables import tables_touched
from cdc.consumer.state.parked import PARKED, PARTIAL, Name, ParkedTable
from cdc.errors import UserError
from cdc.model.record import Record
from cdc.sql.effects import MAINTAIN

__all__ = ["ParkedReplay", "from_within"]

_UNLOGGED = "foreign keys change its rows, or others together with them, and the leader does not log that"


class ParkedReplay:
    """The parked ``tables`` while the records up to ``through`` that were left out are applied.

    ``keys`` are pairs of tables (child, parent) with a foreign key of the follower that changes or deletes rows of the
    child. ``former`` returns the leader's name of a database. Raises UserError for a table of which a copy has begun.

    ``complete`` is true once ``wanted`` has seen all records.
    """

    def __init__(
        self,
        tables: Mapping[Name, ParkedTable],
        *,
        through: int,
        former: Callable[[str], str],
        keys: Collection[tuple[Name, Name]] = (),
    ) -> None:
        if partial := sorted(name for name, table in tables.items() if table.state == PARTIAL):
            raise _refusal(partial[0], "a copy of it has begun and was not completed", where="cdc.parked")
        self.through = through
        self.tables = dict(tables)
        self.complete = False
        self._former = former
        self._waiting = {name: table for name, table in tables.items() if table.state == PARKED}
        self._related = _related(self._waiting, keys)

    @property
    def begin(self) -> int:
        """The sequence of the first record that may have to be applied; ``through`` + 1 if there is none."""
        return min((table.sequence for table in self._waiting.values()), default=self.through + 1)

    def wanted(self, transactions: Iterable[Transaction | None]) -> Iterator[Transaction | None]:
        """Yields the transactions with records to apply, and also each None; their other records have no effect. Ends
        with the transaction that ends at ``through``.

        Raises UserError for a record that can't be repeated.
        """
        for transaction in transactions:
            if transaction is None:
                yield None
                continue
            kept = {record.sequence for record in transaction.records if self._takes(record)}
            # All parts of a large transaction are yielded: only its last part commits, whichever has the records.
            if kept or not (transaction.begins and transaction.ends):
                # The records without effect stay, since a batch ends with the last record of a transaction. The types
                # of columns are noted on the follower already, and newer ones, too.
                records = [
                    replace(each, types=()) if each.sequence in kept else _without_effect(each)
                    for each in transaction.records
                ]
                rows = sum(len(record.rows) for record in records)
                yield transaction._replace(records=records, rows=rows, statement=False)
            if transaction.ends and transaction.records[-1].sequence >= self.through:
                self.complete = True
                return

    def passed(self, last: int) -> int:
        """Notes that all records up to ``last`` are applied. Returns the number of tables whose ``sequence`` moves."""
        moved = {
            name: replace(table, sequence=last + 1) for name, table in self._waiting.items() if table.sequence <= last
        }
        self._waiting |= moved
        self.tables |= moved
        return len(moved)

    def _takes(self, record: Record) -> bool:
        """Whether the record is to be applied. Raises UserError if it can't be repeated."""
        is_statement = record.operation == "Query"
        if not (is_statement or len(record.rows) or record.range is not None):
            return False
        touched = tables_touched(record, former=self._former)
        if not is_statement and not record.flags & (ALL_LOGGED | NO_FOREIGN_KEY_CHECKS):
            concerned = [self._related[name] for name in touched if name in self._related]
            if concerned and record.sequence >= self.begin:
                raise _refusal(concerned[0], _UNLOGGED, where=position_of(record))
        found = [
            name for name in sorted(touched)
            if name in self._waiting and record.sequence >= self._waiting[name].sequence
        ]  # fmt: skip
        if not found or (is_statement and all(affect["action"] == MAINTAIN for affect in record.affects)):
            return False
        if is_statement:
            raise _refusal(found[0], "a statement on it was left out", where=position_of(record))
        if record.range is not None or record.copying:
            raise _refusal(found[0], "a copy of it was left out", where=position_of(record))
        return True


def from_within(located: Iterable[Located | None], begin: int) -> Iterator[Located | None]:
    """Yields ``located``; if the record ``begin`` is not the first one of its transaction, it is made the first one.

    A table is parked from the first record of a transaction on that passes the filters.
    """
    transaction, shift = "", 0
    for item in located:
        if item is not None and item.record.sequence >= begin:
            record = item.record
            if not transaction:
                transaction, shift = record.transaction, record.index
            if shift and record.transaction == transaction:
                item = item._replace(record=replace(record, index=record.index - shift))
        yield item


def _without_effect(record: Record) -> Record:
    return replace(record, operation="Add", rows=(), range=None, types=(), query="", affects=())


def _related(tables: Iterable[Name], keys: Collection[tuple[Name, Name]]) -> dict[Name, Name]:
    """Maps each table that foreign keys connect with one of ``tables``, also over other tables, to one of those."""
    found: dict[Name, Name] = {}
    ends = {end for pair in keys for end in pair}
    waiting = [(name, name) for name in tables if name in ends]
    while waiting:
        name, of = waiting.pop()
        if name not in found:
            found[name] = of
            waiting += [(end, of) for pair in keys if name in pair for end in pair]
    return found


def _refusal(name: Name, why: str, *, where: str) -> UserError:
    return UserError(
        f"what was left out of {named(*name)} can't be applied from the topic: {why}",
        code="CDC-PARKED-NOT-REPEATABLE",
        where=where,
        hint="nothing is lost, the table stays parked: define it on the follower as on the leader, and have it copied: "
        f"{copy_command(name)}; then --retry-parked applies what was left out of other tables",
    )
