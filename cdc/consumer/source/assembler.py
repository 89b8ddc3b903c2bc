"""Assembles records into transactions of the leader, and transactions into batches. The follower commits each batch as
one transaction. Pure.

A gap, a repetition or an incomplete transaction raises an error.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import CdcError, PromiseError, UserError
from cdc.model.record import COPY, SKIPPED, Record

__all__ = ["MOST_BYTES", "Batch", "DeferErrors", "Located", "Transaction", "assemble", "batches"]

# Bytes of JSON. Parsed JSON needs up to fifteen times as much memory, and up to four batches are in memory.
MOST_BYTES = 2_000_000

Item = TypeVar("Item")


class Located(NamedTuple):
    """A record with its partition and offset, and the size of its message in bytes."""

    partition: TopicIdPartition
    offset: int
    record: Record
    size: int = 0


class Transaction(NamedTuple):
    """A transaction of the leader, or a part of a transaction. ``records`` are in order, and ``offsets`` are the
    offsets after the transaction's records so far, for each partition.

    ``rows`` is the number of rows in the records. ``statement`` is true if some of the records are statements, or stand
    for events that the producer left out. ``size`` is the size of the records' messages in bytes.
    """

    records: list[Record]
    offsets: dict[TopicIdPartition, int]
    rows: int
    statement: bool
    begins: bool = True
    ends: bool = True
    size: int = 0


def assemble(
    located: Iterable[Located | None], *, resource: str, next_sequence: int, size: int = MOST_BYTES
) -> Iterator[Transaction | None]:
    """Yields the leader's transactions in ``located``, from record ``next_sequence`` on, and also each None in
    ``located``.

    A transaction with more than ``size`` bytes is yielded in parts of about that size. Records before ``next_sequence``
    were applied before and are ignored. Raises PromiseError for a gap or an incomplete transaction, UserError for
    records of another leader than ``resource``.
    """
    records: list[Record] = []
    offsets: dict[TopicIdPartition, int] = {}
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


class DeferErrors(Generic[Item]):
    """Yields ``items`` until an item raises a CdcError, and keeps that error. ``reraise`` raises it; call it after the
    earlier items were applied.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self._error: CdcError | None = None

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._items
        except CdcError as error:
            self._error = error

    def reraise(self) -> None:
        """Raises the error that ended the items, if there was one."""
        if self._error is not None:
            raise self._error


def _check_continues(previous: Record | None, item: Located) -> None:
    record = item.record
    if record.operation == COPY and not (record.index == 0 and record.last):
        raise _incomplete(f"{record.transaction} has a chunk of a table beside other records", item)
    if previous is None:
        if record.index != 0:
            raise _incomplete(f"{record.transaction} begins with its record {record.index}", item)
        return
    if record.transaction != previous.transaction:
        raise _incomplete(f"{previous.transaction} has no last record, {record.transaction} follows", item)
    if record.index != previous.index + 1:
        raise _incomplete(f"record {record.index} of {record.transaction} follows {previous.index}", item)


def _incomplete(what: str, item: Located) -> CdcError:
    return _broken(f"an incomplete transaction: {what}", item)


def _place(item: Located) -> str:
    return f"{item.partition.topic}/{item.partition.number}/{item.offset}"


def _broken(what: str, item: Located) -> CdcError:
    return PromiseError(
        what,
        code="CDC-TOPIC-GAP",
        where=f"{_place(item)}, sequence {item.record.sequence}, leader position {item.record.position}",
        hint="something else writes to the topic or has deleted from it; start with a new topic and a fresh follower",
    )


def _foreign(item: Located, resource: str) -> CdcError:
    return UserError(
        f"the topic holds records of leader {item.record.uri.resource!r}, not of {resource!r}",
        code="CDC-FOLLOWER-OTHER-LEADER",
        where=_place(item),
        hint="set mysql_resource_name or kafka.topic in the profile to the producer's",
    )


_STATEMENTS = 64  # the maximum number of statements in one batch
_UNLIMITED = 1 << 62


@dataclass(frozen=True, slots=True)
class Batch:
    """Complete transactions of the leader that the follower commits together. ``offsets`` are the offsets after their
    records, for each partition.

    If ``statement`` is set, it is a Query record, and the batch is a single transaction, whose other records are in
    ``records``. If the batch joins many statements, ``run`` contains a batch for each statement, since each
    statement is a separate transaction. ``left_out`` are the records of events that the producer has left out (its
    option --skip). A large transaction is split into many batches for one commit; ``begins`` is true for the first
    batch, ``ends`` for the last batch. ``small`` is true for complete transactions of rows, or a chunk, that are small
    enough that several such batches fit in memory, and ``full`` if such a batch has reached its limit of rows or bytes.
    """

    records: list[Record]
    last: Record
    offsets: dict[TopicIdPartition, int]
    statement: Record | None = None
    begins: bool = True
    ends: bool = True
    full: bool = False
    small: bool = False
    left_out: tuple[Record, ...] = ()
    run: tuple["Batch", ...] = ()

    @property
    def statements(self) -> list[Record]:
        """The Query records of the batch, in order."""
        return [one.statement for one in self.run or (self,) if one.statement is not None]

    def cut(self, count: int) -> tuple["Batch", "Batch | None"]:
        """Splits a batch that joins many statements (``run``) into the batch of the first ``count`` statements, and the
        batch of the remaining statements (None if none remain).
        """
        if count >= len(self.run):
            return self, None
        return _run(self.run[:count]), _run(self.run[count:])

    @property
    def chunk(self) -> Record | None:
        """The record of the chunk, if the batch is a chunk of a table copy; otherwise None."""
        return self.records[0] if self.records and self.records[0].operation == COPY else None

    @property
    def rows(self) -> int:
        """The number of rows in the records."""
        return sum(len(record.rows) for record in self.records)


def batches(
    transactions: Iterable[Transaction | None],
    *,
    rows: int,
    size: int = MOST_BYTES,
    room: Callable[[], int] = lambda: _UNLIMITED,
) -> Iterator[Batch | None]:
    """Joins transactions into batches of about ``rows`` rows or ``size`` bytes. A None ends a batch.

    Transactions that together have more than ``room`` bytes are not joined, because the follower could not commit them
    as one transaction.

    Transactions that consist of a single statement are joined with one another, but not with transactions that contain
    rows. The following are never joined: a transaction with a statement and rows, a part of a large transaction, and a
    chunk of a table copy. Each None in ``transactions`` is yielded after the batches of all earlier transactions.
    Raises PromiseError for a transaction with rows before its statement.
    """
    run: list[Batch] = []
    try:
        for batch in _batches(transactions, rows=rows, size=size, room=room):
            if batch is not None and _joins_a_run(batch):
                run.append(batch)
                if len(run) < _STATEMENTS and sum(len(one.last.query) for one in run) < size:
                    continue
            if run:
                yield _run(run)
            if not (run and run[-1] is batch):
                yield batch
            run = []
    except PromiseError:
        # The batches of the statements before the error are yielded first, so that these statements are applied.
        if run:
            yield _run(run)
        raise
    if run:
        yield _run(run)


def _batches(
    transactions: Iterable[Transaction | None], *, rows: int, size: int, room: Callable[[], int]
) -> Iterator[Batch | None]:
    waiting: list[Transaction] = []
    count = total = 0
    for transaction in transactions:
        if transaction is not None and _can_wait(transaction):
            if waiting and total + transaction.size > room():
                yield _joined(waiting, full=True, small=total < 2 * size)
                waiting, count, total = [], 0, 0
            waiting.append(transaction)
            count += transaction.rows
            total += transaction.size
            if count < rows and total < size:
                continue
        if waiting:
            # A large row can exceed the limit by far. The batch then does not count as full, so that no other batch is
            # in memory at the same time.
            yield _joined(waiting, full=count >= rows or total >= size, small=total < 2 * size)
            waiting, count, total = [], 0, 0
        if transaction is None:
            yield None
        elif not _can_wait(transaction):
            yield _alone(transaction, small=transaction.size < 2 * size)
    if waiting:
        yield _joined(waiting, full=False, small=total < 2 * size)


def _joins_a_run(batch: Batch) -> bool:
    """Whether the batch consists of exactly one statement."""
    return batch.statement is not None and batch.ends and not batch.records and not batch.left_out


def _run(run: Sequence[Batch]) -> Batch:
    if len(run) == 1:
        return run[0]
    offsets = {partition: offset for one in run for partition, offset in one.offsets.items()}
    return Batch([], run[-1].last, offsets, run[0].statement, run=tuple(run))


def _can_wait(transaction: Transaction) -> bool:
    alone = transaction.statement or transaction.records[0].operation == COPY
    return transaction.begins and transaction.ends and not alone


def _joined(transactions: list[Transaction], *, full: bool, small: bool) -> Batch:
    records = [record for transaction in transactions for record in transaction.records]
    offsets = {partition: offset for transaction in transactions for partition, offset in transaction.offsets.items()}
    return Batch(records, records[-1], offsets, full=full and small, small=small)


def _alone(transaction: Transaction, *, small: bool) -> Batch:
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
                code="CDC-TRANSACTION-MIXED",
                where=f"sequence {statement.sequence}, leader position {statement.position}",
                hint="only CREATE TABLE … SELECT puts a statement and rows into one transaction",
            )
    small = small and last.operation == COPY
    begins, ends = transaction.begins, transaction.ends
    return Batch(records, last, transaction.offsets, statement, begins, ends, small=small, left_out=left_out)
