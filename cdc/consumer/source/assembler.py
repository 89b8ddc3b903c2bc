"""Assembles records into leader transactions, and raises for a gap, a repetition or an incomplete transaction. Pure."""

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import CdcError, PromiseError, UserError
from cdc.model.record import COPY, SKIPPED, Record

__all__ = ["MOST_BYTES", "Located", "Transaction", "UntilError", "assemble"]

MOST_BYTES = 2_000_000  # of JSON; parsed it takes up to fifteen times as much memory, and four batches are in memory

Item = TypeVar("Item")


class Located(NamedTuple):
    """A record with its partition and offset, and its size there in bytes."""

    partition: TopicIdPartition
    offset: int
    record: Record
    size: int = 0


class Transaction(NamedTuple):
    """One leader transaction or a part of it: its records in order, and the offsets after all of its records so far.

    ``rows`` counts the rows in the records, ``statement`` says whether any record is not of rows, ``size`` is the size
    of the records in their topics, in bytes.
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
    """The leader transactions in ``located``, from record ``next_sequence`` on; each None is passed on.

    A transaction that is larger than ``size`` bytes comes in parts of about that size. Records before
    ``next_sequence`` were applied before and are ignored. Raises PromiseError for a gap or an incomplete transaction,
    UserError for records of another leader than ``resource``.
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


class UntilError(Generic[Item]):
    """Yields ``items`` up to the first that raises a CdcError; ``reraise`` raises it after they have been applied."""

    def __init__(self, items: Iterable[Item]) -> None:
        self._items = items
        self._error: CdcError | None = None

    def __iter__(self) -> Iterator[Item]:
        try:
            yield from self._items
        except CdcError as error:
            self._error = error

    def reraise(self) -> None:
        """Raises the error at which the items ended, if there was one."""
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
        where=f"{_place(item)}, sequence {item.record.sequence}, leader position {item.record.position}",
        hint="something else writes to the topic or has deleted from it; start with a new topic and a fresh follower",
    )


def _foreign(item: Located, resource: str) -> CdcError:
    return UserError(
        f"the topic holds records of leader {item.record.uri.resource!r}, not of {resource!r}",
        where=_place(item),
        hint="set mysql_resource_name or kafka.topic in the profile to the producer's",
    )
