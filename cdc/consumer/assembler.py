"""Records to whole leader transactions, and transactions to batches. Pure.

Here a gap, a repeat and a torn transaction are told apart. A transaction is held in memory whole, whatever its size.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cdc.consumer.checkpoint import Partition
from cdc.errors import CdcError, PromiseError, UserError
from cdc.record import Record

__all__ = ["Batch", "Located", "assemble", "batches"]


class Located(NamedTuple):
    """A record and its place in its topic."""

    partition: Partition
    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole leader transactions for one follower commit, and the offsets that follow them in their partitions.

    ``statement`` is the Query record of a batch that is a single transaction with one; ``records`` holds the others.
    """

    records: list[Record]
    last: Record
    offsets: dict[Partition, int]
    statement: Record | None = None

    @property
    def rows(self) -> int:
        return sum(len(record.rows) for record in self.records)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One leader transaction: its records in order and the offsets that follow them in their partitions."""

    records: list[Record]
    offsets: dict[Partition, int]


def assemble(located: Iterable[Located | None], *, resource: str, next_sequence: int) -> Iterator[Transaction | None]:
    """The leader transactions of ``located``, from record ``next_sequence`` on; None ("drained") passes through.

    Records before ``next_sequence`` have been applied and are passed over. Raises PromiseError for a gap or a torn
    transaction, UserError for records of another leader.
    """
    open_records: list[Record] = []
    offsets: dict[Partition, int] = {}
    for item in located:
        if item is None:
            yield None
            continue
        record = item.record
        if record.uri.resource != resource:
            raise _foreign(item, resource)
        if record.sequence < next_sequence:
            continue
        if record.sequence > next_sequence:
            raise _broken(f"a gap: sequence {next_sequence} is missing, {record.sequence} follows", item)
        _check_continues(open_records, item)
        next_sequence += 1
        open_records.append(record)
        offsets[item.partition] = item.offset + 1
        if record.last:
            yield Transaction(open_records, offsets)
            open_records, offsets = [], {}


def batches(transactions: Iterable[Transaction | None], *, rows: int) -> Iterator[Batch | None]:
    """Transactions joined until about ``rows`` rows are together or the source is drained; never a part of one.

    A transaction with a statement is a batch of its own. None where the source is drained and every whole transaction
    has been in a batch.
    """
    waiting: list[Transaction] = []
    count = 0
    for transaction in transactions:
        if transaction is not None and not _has_statement(transaction):
            waiting.append(transaction)
            count += sum(len(record.rows) for record in transaction.records)
            if count < rows:
                continue
        if waiting:
            yield _joined(waiting)
            waiting, count = [], 0
        if transaction is None:
            yield None
        elif _has_statement(transaction):
            yield _with_statement(transaction)
    if waiting:
        yield _joined(waiting)


def _has_statement(transaction: Transaction) -> bool:
    return any(record.operation == "Query" for record in transaction.records)


def _joined(transactions: list[Transaction]) -> Batch:
    records = [record for transaction in transactions for record in transaction.records]
    offsets = {place: offset for transaction in transactions for place, offset in transaction.offsets.items()}
    return Batch(records, records[-1], offsets)


def _with_statement(transaction: Transaction) -> Batch:
    statement, *rows = transaction.records
    if statement.operation != "Query" or any(record.operation == "Query" for record in rows):
        raise PromiseError(
            "a leader transaction mixes statements and rows in a way that cannot be applied as one",
            where=f"sequence {statement.sequence}, leader position {statement.position}",
            hint="only CREATE TABLE … SELECT puts a statement and rows into one transaction",
        )
    return Batch(rows, transaction.records[-1], transaction.offsets, statement)


def _check_continues(open_records: list[Record], item: Located) -> None:
    record = item.record
    if not open_records:
        if record.index != 0:
            raise _broken(f"a torn transaction: {record.transaction} begins with its record {record.index}", item)
        return
    previous = open_records[-1]
    if record.transaction != previous.transaction:
        raise _broken(
            f"a torn transaction: {previous.transaction} has no last record, {record.transaction} follows", item
        )
    if record.index != previous.index + 1:
        raise _broken(
            f"a torn transaction: record {record.index} of {record.transaction} follows {previous.index}", item
        )


def _place(item: Located) -> str:
    return f"{item.partition.topic}/{item.partition.number}/{item.offset}"


def _broken(what: str, item: Located) -> CdcError:
    return PromiseError(
        what,
        where=f"{_place(item)}, sequence {item.record.sequence}, leader position {item.record.position}",
        hint="something else writes to the topic or has deleted from it; a new topic and a fresh copy mend it",
    )


def _foreign(item: Located, resource: str) -> CdcError:
    return UserError(
        f"the topic holds records of leader {item.record.uri.resource!r}, not of {resource!r}",
        where=_place(item),
        hint="set mysql_resource_name or kafka.topic in the profile to the producer's",
    )
