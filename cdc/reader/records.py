"""Iterates in Python over a leader's changes or transactions, each once and in the order of the leader."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException

from cdc.config import profile as profiles
from cdc.config.profile import Profile
from cdc.config.topic_names import SINGLE
from cdc.errors import PromiseError
from cdc.kafka.partitions import require_first_only
from cdc.model.position import Partition
from cdc.model.record import SKIPPED, Record
from cdc.model.values import python_value
from cdc.reader.tailed_topics import TailedTopic, TailedTopics, stopped_reading, tailing_consumer

__all__ = ["Change", "Records", "Transaction", "records"]

Image = dict[str, Any]
"""A row: maps the names of its columns to their values, which ``cdc.model.values`` converts."""

_GROUP = "cdc-records"
_POLL_SECONDS = 0.2
# Commit times are nearly in the order of sequences: transactions that commit together differ by their waits. Where each
# topic of several began at the time itself, a record could be missing behind an earlier one that is not.
_INVERTED_MS = 60_000
_KINDS = {"Query": "statement", "Add": "insert", "Update": "update", "Delete": "delete", SKIPPED: "skipped"}


@dataclass(frozen=True, slots=True)
class Change:
    """A changed row, or a statement.

    ``kind`` is "insert", "update", "delete", "statement", "copy" (a row as it was on the leader when its table was
    copied) or "skipped" (an event that the producer left out on request). ``key`` are the columns of the table's key;
    it is empty if the table has no key. ``before`` is None for an insert, a copy and a statement, ``after`` for a
    delete and a statement. ``sequence`` is the number of the record, which may contain many rows.
    """

    sequence: int
    kind: str
    database: str
    table: str | None
    key: tuple[str, ...]
    before: Image | None
    after: Image | None
    statement: str
    record: Record = field(repr=False)


@dataclass(frozen=True, slots=True)
class Transaction:
    """A whole transaction of the leader. ``gtid`` is its id, ``committed`` is the time of its commit on the leader."""

    gtid: str
    committed: datetime
    records: tuple[Record, ...]

    def changes(self) -> Iterator[Change]:
        """Yields the changes in the order in which the leader made them."""
        for record in self.records:
            yield from changes_of(record)


def transaction_of(records: Sequence[Record]) -> Transaction:
    """Joins the records of one transaction of the leader, in order."""
    committed = datetime.fromtimestamp(records[-1].ts_us / 1_000_000, UTC)
    return Transaction(records[-1].transaction, committed, tuple(records))


def changes_of(record: Record) -> Iterator[Change]:
    """Yields the changes in a record: one for each of its rows, or one for its statement."""
    kind = _KINDS.get(record.operation, "copy")
    make = partial(Change, record.sequence, kind, record.uri.database, record.uri.table, record.key or ())
    if kind in ("statement", "skipped"):
        yield make(None, None, record.query, record)
    for row in record.rows:
        yield make(_image(record, row.before), _image(record, row.after), "", record)


def _image(record: Record, values: list[Any] | None) -> Image | None:
    if values is None:
        return None
    return dict(zip(record.columns, map(python_value, values), strict=True))


class Records:
    """The records in a leader's topics from a sequence or time on. Each iteration reads the topics again, and commits
    no offset. No record from ``since`` on is before the offsets ``begins``.

    Iterating raises UserError if Kafka refuses a request or does not answer, Disconnected if it stops answering, and
    PromiseError for a message that is not a record, for a gap in the sequences, or for a record that was deleted before
    it was read.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        since: int | datetime | None,
        follow: bool,
        begins: Mapping[Partition, int] | None = None,
    ) -> None:
        self._profile, self._follow, self._begins = profile, follow, begins
        self._first = since if isinstance(since, int) else None
        self._from_us = round(_utc(since).timestamp() * 1_000_000) if isinstance(since, datetime) else None
        self._stop = threading.Event()

    def stop(self) -> None:
        """Ends all iterations, from any thread or signal handler, within a fifth of a second."""
        self._stop.set()

    def __iter__(self) -> Iterator[Record]:
        # The sequence of the previous record; None if the first record may have any sequence.
        last = None if self._first is None else self._first - 1
        for value, where in self._messages():
            record = Record.parse(value, where=where)
            if last is None and record.ts_us < (self._from_us or 0):
                continue
            # The record is before ``since``, or a repetition: a producer repeats a message that may have been lost.
            if last is not None and record.sequence <= last:
                continue
            if last is not None and record.sequence > last + 1:
                raise PromiseError(
                    f"a gap: sequence {last + 1} is missing, {record.sequence} follows",
                    code="CDC-TOPIC-GAP",
                    where=where,
                    hint="something has deleted from the topic; begin again with since= the sequence that is missing, "
                    "and if it is missing again, with the one that follows, without the records between them",
                )
            last = record.sequence
            yield record

    def _messages(self) -> Iterator[tuple[bytes, str]]:
        """Yields the value of each committed record, and its topic and offset as text, in order."""
        source: TailedTopic | TailedTopics | None = None
        kafka, stop = self._profile.kafka, self._stop
        properties, names = kafka.properties(), kafka.topics()
        since_ms = None if self._from_us is None else self._from_us // 1000
        if since_ms is not None and kafka.layout != SINGLE:
            since_ms -= _INVERTED_MS
        try:
            require_first_only(properties, names.first)
            with closing(tailing_consumer(kafka, _GROUP)) as consumer:
                kind = TailedTopic if kafka.layout == SINGLE else TailedTopics
                source = kind(consumer, properties, names, last=None, since_ms=since_ms, begins=self._begins)
                while not stop.is_set() and not (source.at_end and not self._follow):
                    yield from source.next(_POLL_SECONDS)
        except KafkaException as error:
            answered = source is not None and source.at_end
            raise stopped_reading(error.args[0], kafka, group=_GROUP, answered=answered) from None

    def changes(self) -> Iterator[Change]:
        """Yields each changed row and each statement."""
        for record in self:
            yield from changes_of(record)

    def transactions(self) -> Iterator[Transaction]:
        """Yields each transaction once its last record is read. Leaves out a transaction that began before ``since``.

        A transaction is held in memory as a whole.
        """
        held: list[Record] = []
        for record in self:
            if not held and record.index:
                continue
            held.append(record)
            if record.last:
                yield transaction_of(held)
                held = []


def records(
    profile: str | PathLike[str] | Profile, *, since: int | datetime | None = None, follow: bool = False
) -> Records:
    """Returns the records of the leader in ``profile`` (a file's path, or a Profile), in the leader's order.

    ``since`` is the sequence of the first record, or the earliest commit time (without a zone: UTC). Earlier records
    are skipped: with a sequence they are all read, with a time most of them are not read. Without ``since``, the first
    record is the oldest record in the topics. If ``follow`` is true, an iteration waits for new records; otherwise it
    ends with the last record in the topics. Raises UserError for an invalid profile.
    """
    if not isinstance(profile, Profile):
        profile = profiles.load(Path(profile), servers=profiles.KAFKA_ONLY)
    return Records(profile, since=since, follow=follow)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
