"""Joins leader transactions into batches, each for one commit of the follower. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cdc.consumer.source.assembler import MOST_BYTES, Transaction
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import PromiseError
from cdc.model.record import SKIPPED, Record

__all__ = ["Batch", "batches"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Complete leader transactions for one follower commit, and the offsets that follow them in their partitions.

    ``statement`` is the Query record of a batch that is a single transaction with one; ``records`` holds the others.
    ``left_out`` are the records of events that the producer has skipped (its option --skip).
    A large transaction is many batches for one commit: the first has ``begins``, the last ``ends``. ``full``: the batch
    has reached its limit of rows or bytes, but is small enough that several such batches fit in memory.
    """

    records: list[Record]
    last: Record
    offsets: dict[TopicIdPartition, int]
    statement: Record | None = None
    begins: bool = True
    ends: bool = True
    full: bool = False
    left_out: tuple[Record, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows the records have."""
        return sum(len(record.rows) for record in self.records)


def batches(transactions: Iterable[Transaction | None], *, rows: int, size: int = MOST_BYTES) -> Iterator[Batch | None]:
    """Joins transactions until they have about ``rows`` rows or ``size`` bytes, or a None comes.

    A transaction with a statement and each part of a large one is a batch of its own. A None is passed on after the
    batches of all transactions before it. Raises PromiseError for a transaction with rows before its statement.
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
            # One large row can be far more than the limit; then no other batch may be in memory beside it.
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
    offsets = {partition: offset for transaction in transactions for partition, offset in transaction.offsets.items()}
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
