"""Records to whole leader transactions, and transactions to batches. Pure.

Here a gap, a repeat and a torn transaction are told apart. A transaction is held in memory whole, whatever its size.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cdc.errors import CdcError, PromiseError, UserError
from cdc.record import Record

__all__ = ["Batch", "Located", "assemble", "batches"]


class Located(NamedTuple):
    """A record and its place in the topic."""

    partition: int
    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole leader transactions for one follower commit, and the topic offsets that follow them.

    ``statement`` is the Query record of a batch that is a single transaction with one; ``records`` holds the others.
    """

    records: list[Record]
    last: Record
    offsets: dict[int, int]
    statement: Record | None = None

    @property
    def rows(self) -> int:
        return sum(len(record.rows) for record in self.records)


@dataclass(frozen=True, slots=True)
class Transaction:
    """One leader transaction: its records in order and the topic offset that follows it."""

    records: list[Record]
    partition: int
    next_offset: int


def assemble(
    located: Iterable[Located | None], *, resource: str, topic: str, next_sequence: int
) -> Iterator[Transaction | None]:
    """The leader transactions of ``located``, from record ``next_sequence`` on; None ("drained") passes through.

    Records before ``next_sequence`` have been applied and are passed over. Raises PromiseError for a gap or a torn
    transaction, UserError for records of another leader.
    """
    open_records: list[Record] = []
    for item in located:
        if item is None:
            yield None
            continue
        record = item.record
        if record.uri.resource != resource:
            raise _foreign(item, resource, topic)
        if record.sequence < next_sequence:
            continue
        if record.sequence > next_sequence:
            raise _broken(f"a gap: sequence {next_sequence} is missing, {record.sequence} follows", item, topic)
        _check_continues(open_records, item, topic)
        next_sequence += 1
        open_records.append(record)
        if record.last:
            yield Transaction(open_records, item.partition, item.offset + 1)
            open_records = []


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
    offsets = {transaction.partition: transaction.next_offset for transaction in transactions}
    return Batch(records, records[-1], offsets)


def _with_statement(transaction: Transaction) -> Batch:
    statement, *rows = transaction.records
    if statement.operation != "Query" or any(record.operation == "Query" for record in rows):
        raise PromiseError(
            "a leader transaction mixes statements and rows in a way that cannot be applied as one",
            where=f"sequence {statement.sequence}, leader position {statement.position}",
            hint="only CREATE TABLE … SELECT puts a statement and rows into one transaction",
        )
    return Batch(rows, transaction.records[-1], {transaction.partition: transaction.next_offset}, statement)


def _check_continues(open_records: list[Record], item: Located, topic: str) -> None:
    record = item.record
    if not open_records:
        if record.index != 0:
            raise _broken(
                f"a torn transaction: {record.transaction} begins with its record {record.index}", item, topic
            )
        return
    previous = open_records[-1]
    if record.transaction != previous.transaction:
        raise _broken(
            f"a torn transaction: {previous.transaction} has no last record, {record.transaction} follows", item, topic
        )
    if record.index != previous.index + 1:
        raise _broken(
            f"a torn transaction: record {record.index} of {record.transaction} follows {previous.index}", item, topic
        )


def _place(item: Located, topic: str) -> str:
    record = item.record
    return f"{topic}/{item.partition}/{item.offset}, sequence {record.sequence}, leader position {record.position}"


def _broken(what: str, item: Located, topic: str) -> CdcError:
    return PromiseError(
        what,
        where=_place(item, topic),
        hint="something else writes to the topic or has deleted from it; a new topic and a fresh copy mend it",
    )


def _foreign(item: Located, resource: str, topic: str) -> CdcError:
    return UserError(
        f"the topic holds records of leader {item.record.uri.resource!r}, not of {resource!r}",
        where=f"{topic}/{item.partition}/{item.offset}",
        hint="set mysql_resource_name or kafka.topic in the profile to the producer's",
    )
