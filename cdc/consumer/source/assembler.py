"""Records to leader transactions, and transactions to batches. Pure.

Here a gap, a repeat and a torn transaction are told apart. A transaction that is too large to be held in memory whole
comes in parts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cdc.consumer.state.checkpoint import Partition
from cdc.errors import CdcError, PromiseError, UserError
from cdc.model.record import SKIPPED, Record

__all__ = ["MOST_BYTES", "Batch", "Located", "assemble", "batches"]

MOST_BYTES = 2_000_000  # of JSON; parsed it takes up to fifteen times as much memory, and four batches are under way


class Located(NamedTuple):
    """A record, its place in its topic and its size there in bytes."""

    partition: Partition
    offset: int
    record: Record
    size: int = 0


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole leader transactions for one follower commit, and the offsets that follow them in their partitions.

    ``statement`` is the Query record of a batch that is a single transaction with one; ``records`` holds the others.
    ``left_out`` are the records of events that the producer was told to do without.
    A large transaction is many batches for one commit: the first ``begins`` it, the last ``ends`` it. ``full`` is one
    that was joined until no more was to be in it, and is not too large for more of them to be under way.
    """

    records: list[Record]
    last: Record
    offsets: dict[Partition, int]
    statement: Record | None = None
    begins: bool = True
    ends: bool = True
    full: bool = False
    left_out: tuple[Record, ...] = ()

    @property
    def rows(self) -> int:
        return sum(len(record.rows) for record in self.records)


class Transaction(NamedTuple):
    """One leader transaction, or a part of it: its records in order and the offsets that follow what there was of it.

    ``rows`` counts those of the records, ``statement`` says whether any holds something else, ``size`` is that of
    the records in their topics, in bytes.
    """

    records: list[Record]
    offsets: dict[Partition, int]
    rows: int
    statement: bool
    begins: bool = True
    ends: bool = True
    size: int = 0


def assemble(
    located: Iterable[Located | None], *, resource: str, next_sequence: int, size: int = MOST_BYTES
) -> Iterator[Transaction | None]:
    """The leader transactions of ``located``, from record ``next_sequence`` on; None ("drained") passes through.

    One that is larger than ``size`` bytes comes in parts of about so many. Records before ``next_sequence`` have been
    applied and are passed over. Raises PromiseError for a gap or a torn transaction, UserError for records of another
    leader.
    """
    records: list[Record] = []
    offsets: dict[Partition, int] = {}
    total, rows, statement, begins = 0, 0, False, True
    previous: Record | None = None
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
        _check_continues(previous, item)
        next_sequence += 1
        records.append(record)
        offsets[item.partition] = item.offset + 1
        total += item.size
        rows += len(record.rows)
        statement = statement or record.operation in ("Query", SKIPPED)
        previous = None if record.last else record
        if record.last:
            yield Transaction(records, offsets, rows, statement, begins, True, total)
            records, offsets, total, rows, statement, begins = [], {}, 0, 0, False, True
        elif total >= size:
            yield Transaction(records, dict(offsets), rows, statement, begins, False, total)
            records, total, rows, statement, begins = [], 0, 0, False, False


def batches(transactions: Iterable[Transaction | None], *, rows: int, size: int = MOST_BYTES) -> Iterator[Batch | None]:
    """Transactions joined until about ``rows`` rows or ``size`` bytes are together or the source is drained.

    A transaction with a statement and the parts of a large one are batches of their own. None where the source is
    drained and everything has been in a batch.
    """
    waiting: list[Transaction] = []
    count = total = 0
    for transaction in transactions:
        if transaction is not None and _can_wait(transaction):
            waiting.append(transaction)
            count += transaction.rows
            total += transaction.size
            if count < rows and total < size:
                continue
        if waiting:
            # One large row can be far more than was asked for: nothing more is to be in memory beside it.
            yield _joined(waiting, full=(count >= rows or total >= size) and total < 2 * size)
            waiting, count, total = [], 0, 0
        if transaction is None:
            yield None
        elif not _can_wait(transaction):
            yield _alone(transaction)
    if waiting:
        yield _joined(waiting, full=False)


def _can_wait(transaction: Transaction) -> bool:
    return transaction.begins and transaction.ends and not transaction.statement


def _joined(transactions: list[Transaction], *, full: bool) -> Batch:
    records = [record for transaction in transactions for record in transaction.records]
    offsets = {place: offset for transaction in transactions for place, offset in transaction.offsets.items()}
    return Batch(records, records[-1], offsets, full=full)


def _alone(transaction: Transaction) -> Batch:
    records, last = transaction.records, transaction.records[-1]
    statement = None
    left_out = tuple(record for record in records if record.operation == SKIPPED) if transaction.statement else ()
    if left_out:
        records = [record for record in records if record.operation != SKIPPED]
    if transaction.statement and any(record.operation == "Query" for record in records):
        statement, *records = records
        if not transaction.begins or statement.operation != "Query" or any(row.operation == "Query" for row in records):
            raise PromiseError(
                "a leader transaction mixes statements and rows in a way that cannot be applied as one",
                where=f"sequence {statement.sequence}, leader position {statement.position}",
                hint="only CREATE TABLE … SELECT puts a statement and rows into one transaction",
            )
    return Batch(records, last, transaction.offsets, statement, transaction.begins, transaction.ends, left_out=left_out)


def _check_continues(previous: Record | None, item: Located) -> None:
    record = item.record
    if previous is None:
        if record.index != 0:
            raise _broken(f"a torn transaction: {record.transaction} begins with its record {record.index}", item)
        return
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
