"""The leader's many topics as one stream of records, in the order of their sequences.

The commit log is read too: an entry commits in one Kafka transaction with its records, so whoever reads it committed
knows which partitions there are and up to which sequence everything is out.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain

from confluent_kafka import Message

from cdc.config.topic_names import Topics
from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.source.record_source import POLL_SECONDS, READ_AHEAD_BYTES
from cdc.consumer.state.checkpoint import Partition
from cdc.errors import CdcError, PromiseError
from cdc.kafka.sequence_merge import Merge
from cdc.model.commit_entry import Commits
from cdc.model.record import is_event

__all__ = ["MergedSource"]

_MOST_BYTES = 8_000_000  # of JSON that waits for a record from another partition; parsed it takes ten times as much
_HEARD_SECONDS = 10.0  # until then a broker may not have heard of a new topic


class MergedSource:
    """The records of all of a leader's topics, which are called ``names``."""

    def __init__(self, reader: KafkaReader, names: Topics) -> None:
        self._reader = reader
        self._names = names
        self._partitions: dict[tuple[str, int], Partition] = {}
        self._read: dict[Partition, int] = {}
        self._here: deque[Message] = deque()
        self._merge: Merge[Partition, Located] = Merge(0)
        self._paused: set[Partition] = set()
        self._entry = b""
        self._out = 0
        self._until: int | None = None
        self._unheard_since: float | None = None
        self._missing: tuple[int, Mapping[Partition, int]] | None = None
        self._parser = RecordParser()
        self.topics = reader.topics
        self.commit = reader.commit

    def topic(self) -> Topic | None:
        """The commit log, or None where there is none. Raises Unreachable where the brokers can't be reached."""
        return self._reader.topic(self._names.commits)

    def start(
        self, topic: Topic, offsets: Mapping[Partition, int], *, sequence: int, until_current: bool
    ) -> dict[Partition, int]:
        """Read on at ``offsets``, and other partitions from their beginning; ``topic`` is the commit log."""
        self._merge = Merge(sequence)
        self._here.clear()
        self._read, self._paused, self._missing = {}, set(), None
        self._partitions = {(place.topic, place.number): place for place in offsets}
        # From its end on: what it says up to here is asked for now, after that end was taken.
        end = {Partition(topic.name, number, topic.id): high for number, (_, high) in topic.ranges.items()}
        begins = self._not_before(self._reader.topics({place.topic for place in offsets}), offsets)
        self._reader.begin({**begins, **end})
        newest = self._reader.commits(topic.name)
        if newest is not None:
            self._discover(newest, self._reader.topics(self._new(newest)))
        if until_current:
            self._until = newest.next_sequence if newest else 0
        return begins

    def _not_before(self, topics: Mapping[str, Topic], offsets: Mapping[Partition, int]) -> dict[Partition, int]:
        """``offsets``, but where retention has cut more the beginning: if a record that is needed is gone, that shows
        as a gap."""
        lows = {(topic.name, number): low for topic in topics.values() for number, (low, _) in topic.ranges.items()}
        return {place: max(offset, lows.get((place.topic, place.number), 0)) for place, offset in offsets.items()}

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """See ``RecordSource``. A sequence that is out and in no topic is a gap: PromiseError."""
        wait = 0.0
        while not stop.is_set() and not self._at_end():
            before = self._merge.next_number
            yield from self._ready(stop)
            if not self._here:
                self._here.extend(self._reader.messages(wait if self._merge.next_number == before else 0.0))
            found = bool(self._here)
            try:
                while self._here:
                    self._take(self._here[0])
                    self._here.popleft()
            except CdcError:
                # What came before the bad one is good.
                yield from self._ready(stop)
                raise
            yield from self._ready(stop)
            if self._merge.next_number == before:
                self._look_further()
                self._reader.check_brokers()
                self._reader.check_topics(chain([self._names.commits], (name for name, _ in self._partitions)))
                if not found:
                    # Also while a record is out that is not here: what was before it must not wait for it.
                    yield None
            self._balance()
            wait = 0.0 if found else POLL_SECONDS

    def _at_end(self) -> bool:
        return self._until is not None and self._merge.next_number >= self._until

    def _ready(self, stop: threading.Event) -> Iterator[Located]:
        """The records that are next; while the follower is at work ``read_ahead`` finds more and more of them."""
        for located in self._merge.ready():
            yield located
            if stop.is_set() or self._at_end():
                return

    def drained(self) -> bool:
        """See ``RecordSource``."""
        return self._merge.next_number >= self._out and not self._reader.away

    def read_ahead(self) -> bool:
        """See ``RecordSource``."""
        if self._merge.bytes >= READ_AHEAD_BYTES:
            return False
        if not self._here:
            self._here.extend(self._reader.messages(0.0))
        if not self._here:
            return False
        try:
            self._take(self._here[0])
        except CdcError:
            return False  # raised when it is its turn
        self._here.popleft()
        return True

    def _take(self, message: Message) -> None:
        if message.error() is not None and not self._reader.at_end(message):
            return
        name, number, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        value = message.value() or b""
        if name == self._names.commits:
            # Only the newest counts, and reading all of them would cost more than the records.
            self._entry = self._entry if message.error() else value
            return
        place = self._partitions[name, number]
        if message.error() is not None:
            self._read[place] = offset
            return
        self._read[place] = offset + 1
        if self._names.is_events(name) and is_event(value):
            return
        record = self._parser.parse(value, where=f"{name}/{number}/{offset}")
        self._merge.add(place, record.sequence, Located(place, offset, record, len(value)), size=len(value))

    def _look_further(self) -> None:
        """The next record is not here: it may be in a partition that the commit log has named since, or nowhere."""
        if self._entry:
            newest = Commits.parse(self._entry, where=f"topic {self._names.commits}")
            new = self._new(newest)
            topics = self._reader.topics_now(new)
            if topics is None or not self._settled(new <= topics.keys()):
                return
            self._entry = b""
            self._discover(newest, topics)
        sequence = self._merge.next_number
        if sequence >= self._out:
            return
        if self._missing is None or self._missing[0] != sequence:
            ends = self._reader.written(self._partitions.values())
            self._missing = None if ends is None else (sequence, ends)
        elif self._all_read(self._missing[1]):
            raise PromiseError(
                f"a gap: sequence {sequence} is out, but in no topic",
                where=f"the topics that {self._names.commits} names",
                hint="something has deleted records from them; a new topic and a fresh copy mend it",
            )

    def _settled(self, all_there: bool) -> bool:
        """Whether the brokers can be believed where they know only some of the topics that the commit log names."""
        if all_there:
            self._unheard_since = None
            return True
        self._unheard_since = self._unheard_since or time.monotonic()
        return time.monotonic() - self._unheard_since > _HEARD_SECONDS

    def _all_read(self, ends: Mapping[Partition, int]) -> bool:
        # Kafka ends a transaction in one partition after the other. Only when nothing that was written is hidden any
        # more is it certain that a record is not there. In what is paused it cannot be (module merge).
        return all(self._read.get(place, 0) >= end for place, end in ends.items() if place not in self._paused)

    def _new(self, commits: Commits) -> set[str]:
        """The topics with partitions that are not read yet."""
        return {name for name, number in commits.partitions if (name, number) not in self._partitions}

    def _discover(self, commits: Commits, topics: Mapping[str, Topic]) -> None:
        """Read what the commit log names for the first time; ``topics`` are those of it that there are."""
        self._out = commits.next_sequence
        new = [place for place in commits.partitions if place not in self._partitions]
        if not new:
            return
        begins: dict[Partition, int] = {}
        for name, number in new:
            topic = topics.get(name)
            if topic is None or number not in topic.ranges:
                raise PromiseError(
                    "the commit log names a topic that is not there",
                    where=f"topic {name}, partition {number}",
                    hint="it was deleted; a new topic and a fresh copy mend it",
                )
            place = self._partitions[name, number] = Partition(name, number, topic.id)
            begins[place] = topic.ranges[number][0]
        self._reader.assign(begins)

    def _balance(self) -> None:
        """Take no more from partitions that are far ahead of the one that is waited for."""
        # Where nothing waits any more, the record that is waited for may be: such a partition must not stay paused.
        due = self._paused if self._merge.bytes < _MOST_BYTES // 2 else self._paused - self._merge.lanes()
        if due:
            self._reader.assign({place: self._read[place] for place in due})
            self._paused = self._paused - due
        if self._merge.bytes > _MOST_BYTES:
            ahead = self._merge.lanes() - self._paused
            self._reader.leave(ahead)
            self._paused |= ahead
