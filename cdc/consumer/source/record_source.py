"""Reads the records of a leader from the follower's checkpoint on, from its single topic or merged from its many
topics.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from confluent_kafka import Message

from cdc.config.topic_names import Topics
from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import CdcError, PromiseError
from cdc.kafka.merged_topics import MergedTopics
from cdc.kafka.places import Place
from cdc.model.commit_entry import Commits
from cdc.model.position import Position
from cdc.service.logs import event

__all__ = ["POLL_SECONDS", "READ_AHEAD_BYTES", "MergedSource", "Received", "RecordSource", "SeenRecords", "SingleTopic"]

POLL_SECONDS = 0.2
_SEEN = 10_000  # records
READ_AHEAD_BYTES = 2_000_000  # bytes of JSON; parsed JSON needs about ten times as much memory


class RecordSource(Protocol):
    """A source of the records of one leader, in the order of their sequences. ``seen`` checks repeated sequences."""

    seen: "SeenRecords"

    def topic(self) -> Topic | None:
        """Returns the topic whose id the checkpoint contains; None if it does not exist yet."""

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Returns the topics in ``names`` that exist."""

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Resumes reading at ``offsets``, a checkpoint's offsets of the next records; ``sequence`` is the sequence of
        the next record. With ``until_current``, reads only up to the present end of the topics.

        May be called again to read from other offsets. Returns the offsets at which reading begins. Raises Unreachable
        if the brokers do not answer.
        """

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Yields records in order, and None whenever there are no more records for now. Ends when ``stop`` is set; if
        ``start`` was called with ``until_current``, also ends at the end of the topics at that time.

        Raises PromiseError for a message that is not a record and for a deleted offset, ServerGone if the brokers stay
        unreachable, UserError if the brokers refuse a request.
        """

    def drained(self) -> bool:
        """Whether ``records`` has yielded every record that is known to be in the topics."""

    def read_ahead(self) -> bool:
        """Parses one message that has arrived, so that ``records`` can return it later without parsing.

        Returns False if no message was parsed. There are four reasons: no message has arrived, READ_AHEAD_BYTES are
        already parsed, the last yielded record has at least that size, or the next message has an error. ``records``
        raises this error when it reaches the message. The method is called between two records, and never raises an
        error.
        """

    def commit(
        self, offsets: Mapping[TopicIdPartition, int], *, sequence: int | None = None, chunk: bool = False
    ) -> None:
        """Commits the offsets of applied records, up to record ``sequence``, to the consumer group; sooner than usual
        if that is a ``chunk`` of a table copy. If ``offsets`` is empty, commits the offsets of earlier calls that are
        not committed yet.
        """


class SeenRecords:
    """Remembers the newest records that were read, to check that a repeated sequence is the same record.

    Brokers that lose the end of a rolled-back transaction (an unclean election) may show its records together with
    those that were written under the same sequences since. ``find(offsets, sequence)`` searches a record before the
    offsets of a checkpoint.
    """

    def __init__(self, find: Callable[[Mapping[TopicIdPartition, int], int], Place | None]) -> None:
        self._find = find
        self._seen: dict[int, tuple[Position, int | None, int | None]] = {}
        self._applied: Checkpoint | None = None
        self._next_sequence = 0

    def begin(self, *, next_sequence: int = 0, applied: Checkpoint | None = None) -> None:
        """Forgets all records, since others are read from now on: those from ``next_sequence`` on. ``applied`` ends
        with the last applied record.
        """
        self._seen.clear()
        self._next_sequence = next_sequence
        self._applied = applied or self._applied

    def check(self, located: Located) -> Located:
        """Returns ``located``. Raises PromiseError if another record with its sequence was read before, or applied."""
        record = located.record
        sequence, seen, own = record.sequence, self._seen, (record.position, record.ts_us, record.index)
        if sequence < self._next_sequence and sequence not in seen and self._applied is not None:
            # An earlier run has read it, and may have ended because two records had this sequence.
            found = self._find(self._applied.offsets, sequence)
            seen[sequence] = own if found is None else (found.position, found.ts_us, None)
        if self._applied is not None and sequence == self._applied.sequence:
            self._applied.require_same(record.position, record.ts_us, _where(located))
        # A place that was looked up lacks the index, and perhaps the time.
        pairs = zip(seen.setdefault(sequence, own), own, strict=True)
        if any(before != now and before is not None for before, now in pairs):
            raise PromiseError(
                f"two different records have sequence {sequence}: one from leader position {seen[sequence][0]}, and "
                f"one from {record.position}",
                code="CDC-TOPIC-OTHER-RECORDS",
                where=_where(located),
                hint="the brokers lost records, and others were written in their place: name a new topic, and give the "
                "follower a fresh copy of the leader",
            )
        seen.pop(sequence - _SEEN, None)
        return located


def _where(located: Located) -> str:
    return f"topic {located.partition.topic}, partition {located.partition.number}, offset {located.offset}"


# Reads the records of a leader with a single topic, from the follower's checkpoint on.


class Received:
    """A queue of received messages. The oldest messages in it may be parsed ahead of time. ``receive(seconds)`` returns
    new messages, ``parse`` parses a message into a record.
    """

    def __init__(self, receive: Callable[[float], Collection[Message]], parse: Callable[[Message], Located]) -> None:
        self._receive = receive
        self._parse = parse
        self._parsed: deque[Located] = deque()
        self._parsed_bytes = 0
        self._taken_bytes = 0  # the size of the record that was taken from the queue last
        self._messages: deque[Message] = deque()

    def clear(self) -> None:
        """Drops all messages."""
        self._parsed.clear()
        self._parsed_bytes = 0
        self._messages.clear()

    def fill(self, wait: float) -> bool:
        """Whether the queue contains a message; waits at most ``wait`` seconds for a message."""
        if not self._parsed and not self._messages:
            self._messages.extend(self._receive(wait))
        return bool(self._parsed or self._messages)

    def take(self) -> Located | Message | None:
        """Removes the oldest message from the queue. Returns its record, or the message itself if it has an error.
        Returns None if the queue is empty.

        Raises PromiseError for a message that is not a record.
        """
        if self._parsed:
            located = self._parsed.popleft()
            self._parsed_bytes -= located.size
            self._taken_bytes = located.size
            return located
        if not self._messages:
            return None
        message = self._messages.popleft()
        if message.error() is not None:
            return message
        located = self._parse(message)
        self._taken_bytes = located.size
        return located

    def read_ahead(self) -> bool:
        """Parses one more message; see ``RecordSource.read_ahead``."""
        # While a large record is in memory, no other record is parsed.
        if self._parsed_bytes >= READ_AHEAD_BYTES or self._taken_bytes >= READ_AHEAD_BYTES:
            return False
        try:
            if not self._messages:
                self._messages.extend(self._receive(0.0))
            if not self._messages or self._messages[0].error() is not None:
                return False
            located = self._parse(self._messages[0])
        except CdcError:
            return False  # ``fill`` or ``take`` will raise the error again, after the earlier records
        self._messages.popleft()
        self._parsed.append(located)
        self._parsed_bytes += located.size
        return True


class SingleTopic:
    """Reads the records of the topic ``name``, which has one partition. The methods are described in
    ``RecordSource``."""

    def __init__(self, reader: KafkaReader, name: str, parser: RecordParser | None = None) -> None:
        self._reader = reader
        self._name = name
        self._partitions: dict[int, TopicIdPartition] = {}
        # the ends of the partitions that are not read to their ends yet; None if reading has no end
        self._ends: dict[int, int] | None = None
        self._parser = parser or RecordParser()
        self._received = Received(reader.messages, self._located)
        self.seen = SeenRecords(reader.place_before)
        self.topics = reader.topics
        self.commit = reader.offsets.commit
        self.read_ahead = self._received.read_ahead

    def topic(self) -> Topic | None:
        """Returns the topic; None if it does not exist. Raises UserError if added partitions contain messages,
        Unreachable if the brokers can't be reached.
        """
        return self._reader.ordered_topic(self._name)

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Begins to read each partition from its offset on, or from its beginning if there is no offset."""
        self._partitions = {number: TopicIdPartition(topic.name, number, topic.id) for number in topic.ranges}
        # All records that retention has deleted were applied (preflight checks this). But the offset after the last
        # applied record may be deleted, too, if it is the offset of a transaction marker.
        begins = {
            partition: max(topic.ranges[partition.number][0], offsets.get(partition, 0))
            for partition in self._partitions.values()
        }
        self._received.clear()
        self.seen.begin(next_sequence=sequence)
        self._reader.begin(begins)
        ends = {number: high for number, (_, high) in topic.ranges.items() if high > 0}
        self._ends = ends if until_current else None
        return begins

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Yields records in order, and None whenever there are no more records for now."""
        wait = 0.0
        while not stop.is_set() and not self._at_end():
            found = self._received.fill(wait)
            # ``read_ahead`` may add messages faster than they are yielded, so the end may be reached while the queue is
            # not empty.
            while not stop.is_set() and not self._at_end() and (located := self._next()):
                yield located
                # The end is also checked here, because under a steady load Kafka might never report the end of the
                # partition.
                self._reached(located.partition.number, located.offset + 1)
            # The next call waits for messages only if None was yielded. Only then does the caller have nothing to
            # apply.
            wait = 0.0 if found else POLL_SECONDS
            if not found:
                self._reader.check_brokers()
                self._reader.check_topics([self._name])
                yield None

    def drained(self) -> bool:
        """Whether every record that is known to be in the topic was yielded. Received messages are yielded at once, so
        for a single topic the answer is yes unless the brokers are unreachable.
        """
        return not self._reader.away

    def _next(self) -> Located | None:
        while (message := self._received.take()) is not None:
            if isinstance(message, Located):
                return message
            if self._reader.at_end(message):
                self._reached(message.partition() or 0, message.offset() or 0)
        return None

    def _located(self, message: Message) -> Located:
        number, offset = message.partition() or 0, message.offset() or 0
        value = message.value() or b""
        record = self._parser.parse(value, where=f"{self._name}/{number}/{offset}")
        return self.seen.check(Located(self._partitions[number], offset, record, len(value)))

    def _reached(self, number: int, offset: int) -> None:
        if self._ends and offset >= self._ends.get(number, 0):
            self._ends.pop(number, None)

    def _at_end(self) -> bool:
        return self._ends == {}


# Merges the records in a leader's many topics into one stream, in the order of their sequences and without a gap.

_LOG = logging.getLogger("cdc.consumer")
# Bytes of JSON that may wait for a record from another partition. Parsed JSON needs ten times as much memory.
_MOST_BYTES = 8_000_000
_NEWER_ENTRIES = 2  # with so many, a producer has noticed that a broker was away
_UNKNOWN_SECONDS = 10.0  # a broker must know a new topic after this time


@dataclass(slots=True)
class _Missing:
    """A committed record that has not been read. The partitions are searched for it up to the offsets ``ends``.

    ``logged`` is true once the search has ended without finding the record; ``entries`` is the number of entries of the
    commit log that had been read at that time. ``final`` is true if the producer has committed since then, so that it
    hardly writes the record again.
    """

    sequence: int
    ends: Mapping[TopicIdPartition, int]
    final: bool
    logged: bool = False
    entries: int = 0


class MergedSource:
    """Reads the records from all topics of a leader; ``names`` contains the names of the topics."""

    def __init__(self, reader: KafkaReader, names: Topics, parser: RecordParser | None = None) -> None:
        self._reader = reader
        self._names = names
        self._here: deque[Message] = deque()
        self._parser = parser or RecordParser()
        self.seen = SeenRecords(reader.place_before)
        self._merged = self._from(0)
        self._entry: Commits | None = None
        self._committed = 0
        self._taken_bytes = 0  # the size of the newest record that was returned
        self._until: int | None = None
        self._unknown_since: float | None = None
        self._missing: _Missing | None = None
        self._entries = 0
        self.topics = reader.topics
        self.commit = reader.offsets.commit

    def topic(self) -> Topic | None:
        """Returns the topic of the commit log, or None if it does not exist. Raises Unreachable if the brokers can't be
        reached.
        """
        return self._reader.ordered_topic(self._names.commits)

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Resumes reading at ``offsets``; reads all other partitions from their beginning. ``topic`` is the topic of
        the commit log.
        """
        self._here.clear()
        self.seen.begin(next_sequence=sequence)
        self._entry, self._missing = None, None
        self._merged = self._from(sequence)
        # The commit log is read from its end on. Its newest entry is read after that end was requested. So no entry is
        # missed.
        self._reader.begin(
            {TopicIdPartition(topic.name, number, topic.id): high for number, (_, high) in topic.ranges.items()}
        )
        begins = self._kept(self._reader.topics({partition.topic for partition in offsets}), offsets)
        self._merged.assign(begins)
        newest = self._reader.commits(topic.name)
        if newest is not None:
            self._discover(newest, self._reader.topics(self._new_topics(newest)))
        self._until = (newest.next_sequence if newest else 0) if until_current else None
        return begins

    def _from(self, sequence: int) -> MergedTopics[TopicIdPartition, Located]:
        return MergedTopics(self._reader, self._names, self._located, next_sequence=sequence, most_bytes=_MOST_BYTES)

    def _kept(
        self, topics: Mapping[str, Topic], offsets: Mapping[TopicIdPartition, int]
    ) -> dict[TopicIdPartition, int]:
        """Returns ``offsets``. If retention has deleted an offset, it is replaced by the partition's first offset.

        If a deleted record is still needed, the check for gaps will report that.
        """
        lows = {(topic.name, number): low for topic in topics.values() for number, (low, _) in topic.ranges.items()}
        return {
            partition: max(offset, lows.get((partition.topic, partition.number), 0))
            for partition, offset in offsets.items()
        }

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Yields records in order; see ``RecordSource``. Also raises PromiseError for a gap: no topic contains a record
        that the commit log counts.
        """
        wait = 0.0
        while not stop.is_set() and not self._at_end():
            before = self._merged.next_sequence
            yield from self._ready(stop)
            if not self._here:
                self._here.extend(self._reader.messages(wait if self._merged.next_sequence == before else 0.0))
            found = bool(self._here)
            try:
                while self._here:
                    self._add(self._here[0])
                    self._here.popleft()
            except CdcError:
                # The records before the message with the error are valid.
                yield from self._ready(stop)
                raise
            yield from self._ready(stop)
            if self._merged.next_sequence == before:
                self._look_further()
                self._reader.check_brokers()
                self._reader.check_topics(chain([self._names.commits], (name for name, _ in self._merged.partitions)))
                if not found:
                    # None is also yielded while a committed record has not arrived yet, because the earlier records
                    # must not wait for it.
                    yield None
            self._merged.balance()
            wait = 0.0 if found else POLL_SECONDS

    def _at_end(self) -> bool:
        return self._until is not None and self._merged.next_sequence >= self._until

    def _ready(self, stop: threading.Event) -> Iterator[Located]:
        """Yields the records that are next in order. While they are yielded, ``read_ahead`` may add more records."""
        for located in self._merged.ready():
            self._taken_bytes = located.size
            yield located
            if stop.is_set() or self._at_end():
                return

    def drained(self) -> bool:
        """Whether every known record was yielded; see ``RecordSource``."""
        return self._merged.next_sequence >= self._committed and not self._reader.away

    def read_ahead(self) -> bool:
        """Parses one message that has arrived; see ``RecordSource``."""
        if self._merged.waiting_bytes >= READ_AHEAD_BYTES or self._taken_bytes >= READ_AHEAD_BYTES:
            return False
        try:
            if not self._here:
                self._here.extend(self._reader.messages(0.0))
            if not self._here:
                return False
            self._add(self._here[0])
        except CdcError:
            return False  # ``records`` raises the error when it reaches this message
        self._here.popleft()
        return True

    def _add(self, message: Message) -> None:
        if message.error() is None or self._reader.at_end(message):
            self._merged.add(message)

    def _located(self, partition: TopicIdPartition, offset: int, value: bytes) -> tuple[int, Located]:
        record = self._parser.parse(value, where=f"{partition.topic}/{partition.number}/{offset}")
        return record.sequence, self.seen.check(Located(partition, offset, record, len(value)))

    def _look_further(self) -> None:
        """Finds out why the next record has not arrived. It may be in a partition that appears only in a newer entry of
        the commit log.
        """
        if (newer := self._merged.pop_entry()) is not None:
            self._entry = newer
            self._entries += 1
        if self._entry is not None:
            new = self._new_topics(self._entry)
            topics = self._reader.topics_now(new)
            if topics is None or not self._are_final(new <= topics.keys()):
                return
            self._discover(self._entry, topics)
            self._entry = None
        if self._merged.next_sequence < self._committed:
            self._look_for_gap(self._merged.next_sequence)

    def _look_for_gap(self, sequence: int) -> None:
        """Finds out whether no topic contains the committed record ``sequence``.

        If a broker is killed while it commits, the entry of the commit log may be visible while the records of a topic
        were rolled back. The producer writes them again when it connects, so a gap is final only if newer entries were
        read after the record was found missing. An entry before that proves nothing: the records may have been in a
        transaction that had no end yet, and was rolled back later. One newer entry proves nothing either: the producer
        may have written it before it noticed that the broker was away. Raises PromiseError for a final gap; otherwise
        the caller waits.
        """
        missing = self._missing
        if (
            missing is None
            or missing.sequence != sequence
            or (missing.logged and self._entries >= missing.entries + _NEWER_ENTRIES)
        ):
            # If the record can't be read yet, that is no proof of a gap, because Kafka commits a transaction in one
            # partition after another. It is certain that no topic contains the record only when all messages that were
            # written so far have been read.
            ends = self._reader.written(self._merged.partitions.values())
            again = missing is not None and missing.sequence == sequence
            final = again or self._until is not None
            self._missing = None if ends is None else _Missing(sequence, ends, final)
        elif not self._merged.has_read(missing.ends) or missing.logged:
            return
        elif not missing.final:
            missing.logged, missing.entries = True, self._entries
            what = "waiting for cdc-producer, which writes a record again that the brokers have rolled back"
            event(
                _LOG, what, level=logging.WARNING, sequence=sequence, topics=f"those that {self._names.commits} names"
            )
        else:
            raise PromiseError(
                f"a gap: sequence {sequence} is committed, but in no topic",
                code="CDC-TOPIC-GAP",
                where=f"the topics that {self._names.commits} names",
                hint="start both again: the producer rewrites a record that the brokers rolled back. If it is still "
                "missing, it was deleted: name a new topic, and give the follower a fresh copy",
            )

    def _are_final(self, all_there: bool) -> bool:
        """Whether the metadata of the topics are final. They are not final if a topic is missing that may be so new
        that a broker does not know it yet.
        """
        if all_there:
            self._unknown_since = None
            return True
        self._unknown_since = self._unknown_since or time.monotonic()
        return time.monotonic() - self._unknown_since > _UNKNOWN_SECONDS

    def _new_topics(self, commits: Commits) -> set[str]:
        """Returns the topics in ``commits`` with partitions that are not read yet."""
        return {name for name, _ in self._merged.new(commits)}

    def _discover(self, commits: Commits, topics: Mapping[str, Topic]) -> None:
        """Begins to read the partitions that occur in ``commits`` for the first time. ``topics`` contains their topics,
        if they exist.
        """
        self._committed = commits.next_sequence
        begins: dict[TopicIdPartition, int] = {}
        for name, number in self._merged.new(commits):
            topic = topics.get(name)
            if topic is None or number not in topic.ranges:
                raise PromiseError(
                    "the commit log names a topic that does not exist",
                    code="CDC-TOPIC-GAP",
                    where=f"topic {name}, partition {number}",
                    hint="it was deleted; start over with a new topic and a fresh copy of the leader",
                )
            begins[TopicIdPartition(name, number, topic.id)] = topic.ranges[number][0]
        self._merged.assign(begins)
