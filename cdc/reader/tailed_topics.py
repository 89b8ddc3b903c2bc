"""Reads the newest records of a leader's topics, and then new records, in the order of their sequences.

``TailedTopic`` reads the topic of layout "single"; ``TailedTopics`` reads all topics of layout "per_table".
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc.config.profile import Kafka
from cdc.config.topic_names import Topics
from cdc.errors import CdcError, Disconnected, PromiseError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.errors import question_error
from cdc.kafka.fragments import Fragments
from cdc.kafka.merged_topics import MergedTopics
from cdc.kafka.partitions import begin_offsets, end_offsets, time_offsets
from cdc.model.commit_entry import Mark
from cdc.model.position import Partition
from cdc.model.record import Record
from cdc.service.logs import LIBRDKAFKA

__all__ = ["Passes", "TailedTopic", "TailedTopics", "stopped_reading", "tailing_consumer"]

Passes = Callable[[bytes, str], bool]
"""Whether a record is wanted; called with its value, and its topic and offset as text."""


def tailing_consumer(kafka: Kafka, group: str) -> Consumer:
    """Returns a consumer for TailedTopic and TailedTopics. Nothing is committed for its ``group``."""
    own = {
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
        # If retention deletes the next offset before it is read, librdkafka would by default continue at the end.
        "auto.offset.reset": "error",
    }
    return Consumer(kafka.properties() | own, logger=LIBRDKAFKA)


def stopped_reading(error: KafkaError, kafka: Kafka, *, group: str, answered: bool) -> CdcError:
    """Returns the error with which reading ends; ``answered`` is true if all old records were read before the error."""
    where = f"topic {kafka.topic} at {kafka.bootstrap_servers}"
    if error.code() == KafkaError._AUTO_OFFSET_RESET:
        return PromiseError(
            f"the record to read next is gone from the topic: {error.str()}",
            code="CDC-TOPIC-READ-GONE",
            where=where,
            hint="retention has removed it, or the topic was deleted, while it was being read: begin again, from a "
            "later record on",
        )
    problem = question_error(error, kafka.properties(), where=where, group=group)
    if answered:
        return Disconnected(problem.what, code=problem.code, where=problem.where, hint=problem.hint)
    return problem


class TailedTopic:
    """Reads the ``last`` records (all records if None) of the only topic in ``names``, and then new records.

    ``properties`` are librdkafka properties. If ``passes`` is set, only records for which it is true count. If
    ``since_ms`` (a timestamp as in Kafka) is set, only messages from this time on are read. A partition in ``begins``
    is read from its offset there. Raises KafkaException.
    """

    def __init__(
        self,
        consumer: Consumer,
        properties: Mapping[str, Any],
        names: Topics,
        *,
        last: int | None,
        passes: Passes | None = None,
        since_ms: int | None = None,
        begins: Mapping[Partition, int] | None = None,
    ) -> None:
        name, commits = names.topic, names.commits
        self._consumer = consumer
        self._name = name
        self._passes = passes
        self._fragments = Fragments(lambda _: _marks(properties, commits))
        self._last: deque[tuple[bytes, str]] | None = None if last is None else deque(maxlen=last)
        self.at_end = False
        place = name, 0
        self._first = _begins(properties, [place], since_ms, begins or {})[place]
        self._end = end_offsets(properties, [place])[place]
        # The end of each Kafka transaction uses an offset too, so there are fewer records than offsets.
        self._offsets = self._end if last is None else 2 * last + 100
        self._read()

    def _read(self) -> None:
        self._fragments.forget([(self._name, 0)])
        self._start = max(self._first, self._end - self._offsets)
        self._consumer.assign([TopicPartition(self._name, 0, self._start)])

    def _has_enough(self) -> bool:
        """Whether the ``last`` records, or all records of the topic, have arrived. If not, begins to read again, from
        an earlier offset.
        """
        if self._last is None or self._start == self._first or len(self._last) == self._last.maxlen:
            return True
        # A record of several fragments, or an aborted transaction, may use many offsets, and few records may pass the
        # filter.
        self._last.clear()
        self._offsets *= 8
        self._read()
        return False

    def next(self, wait: float) -> Iterator[tuple[bytes, str]]:
        """Waits up to ``wait`` seconds for the next message. Yields the value of each record that can be printed now,
        and its topic and offset as text."""
        polled = self._consumer.poll(wait)
        message = None if polled is None else self._fragments.whole(polled)
        if message is None:
            return
        error = message.error()
        if error is None:
            found = message.value() or b"", f"topic {self._name}, offset {message.offset()}"
            if self._passes is not None and not self._passes(*found):
                return
            # The reader knows only at the end of the topic which records are the last.
            if self._last is None or self.at_end:
                yield found
            else:
                self._last.append(found)
        elif error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        elif self.at_end or self._has_enough():
            self.at_end = True
            if self._last:
                yield from self._last
                self._last.clear()


def _marks(properties: Mapping[str, Any], commits: str) -> tuple[Mark, ...]:
    newest = newest_commits(properties, commits)
    return newest.marks if newest else ()


def _begins(
    properties: Mapping[str, Any],
    partitions: Collection[Partition],
    since_ms: int | None,
    given: Mapping[Partition, int],
) -> dict[Partition, int]:
    if since_ms is not None:
        return time_offsets(properties, partitions, since_ms)
    return {each: max(begin, given.get(each, 0)) for each, begin in begin_offsets(properties, partitions).items()}


_MOST_BYTES = 64_000_000


class TailedTopics:
    """Reads the ``last`` records (all records if None) of all topics in ``names``, and then new records.

    The binlog's other events have no sequence, and are left out. ``properties`` are librdkafka properties. Records of
    up to about ``most_bytes`` wait for an earlier record; if the earlier record is in no topic, the waiting records are
    yielded without it. If ``passes`` is set, only records for which it is true count, and the whole topics are read to
    find the last of these records. If ``since_ms`` is set, only messages from this time on are read. A partition in
    ``begins`` is read from its offset there. Raises KafkaException.
    """

    def __init__(
        self,
        consumer: Consumer,
        properties: Mapping[str, Any],
        names: Topics,
        *,
        last: int | None,
        most_bytes: int = _MOST_BYTES,
        passes: Passes | None = None,
        since_ms: int | None = None,
        begins: Mapping[Partition, int] | None = None,
    ) -> None:
        self._consumer = consumer
        self._properties = properties
        self._passes = passes
        self._since_ms = since_ms
        self._given_begins = begins or {}
        self._kept: deque[tuple[bytes, str]] | None = None
        if passes is not None and last is not None:
            self._kept, last = deque(maxlen=last), None
        self._last = last
        # The end marker of each Kafka transaction occupies an offset, too, so a range of offsets contains fewer
        # records.
        self._offsets = 2 * (last or 0) + 100
        self._behind: dict[Partition, int] = {}
        self._asked_again = False
        self._fragments = Fragments()
        self._reader = _PartitionReader(consumer, self._fragments)
        self._names = names
        self._most_bytes = most_bytes
        self._merged = self._nothing_merged()
        self.at_end = False
        log = names.commits, 0
        # The end of the commit log is requested before its newest entry is read, so that no later entry is missed.
        consumer.assign([TopicPartition(*log, end_offsets(properties, [log])[log])])
        newest = newest_commits(properties, names.commits)
        self._next_sequence = newest.next_sequence if newest else 0
        self._assign(newest.partitions if newest else (), last=last)

    def _nothing_merged(self) -> MergedTopics[Partition, tuple[bytes, str]]:
        return MergedTopics(self._reader, self._names, _parsed, next_sequence=0, most_bytes=self._most_bytes)

    def next(self, wait: float) -> Iterator[tuple[bytes, str]]:
        """Waits up to ``wait`` seconds for the next message. Yields the value of each record that can be printed then,
        and its topic and offset as text."""
        found = (each for each in self._next(wait) if self._passes is None or self._passes(*each))
        if self._kept is None:
            yield from found
            return
        self._kept.extend(found)
        if self.at_end:
            kept, self._kept = self._kept, None
            yield from kept

    def _next(self, wait: float) -> Iterator[tuple[bytes, str]]:
        polled = self._consumer.poll(wait)
        message = None if polled is None else self._fragments.whole(polled)
        if message is not None:
            self._add(message)
        # The reader knows only after the arrival of all old records which of them are the last.
        if self._last is None or self.at_end:
            yield from self._merged.ready()
        if not self._behind and not self.at_end and not self._asked_again:
            self._asked_again = True
            self._behind = self._written_later()
        if not self._behind and not self.at_end:
            shown = deque(self._merged.rest(), maxlen=self._last)
            if self._last and len(shown) < self._last and self._begins_late:
                self._read_more()
                return
            self.at_end = True
            yield from shown
            # If retention has deleted all old records, no record before the ``next_sequence`` of the commit log will
            # arrive.
            self._merged.next_sequence = max(self._merged.next_sequence, self._next_sequence)
        if self._last is None or self.at_end:
            self._merged.balance()
            while self._merged.is_blocked():
                self._merged.pass_gap()
                yield from self._merged.ready()
            self._merged.balance()

    def _written_later(self) -> dict[Partition, int]:
        """Returns the ends of the partitions that may contain a record that is missing among the records read so far.

        That a record can't be read yet is no proof of a gap: the ends of the partitions were requested one after the
        other, and Kafka commits a transaction in one partition after another.
        """
        # The first of the ``last`` records come from the middle of their topics, so earlier records are missing.
        if not self._merged.lacks(self._next_sequence, from_next=self._last is None):
            return {}
        partitions = list(self._merged.partitions)
        return self._merged.unread(end_offsets(self._properties, partitions, committed=False))

    def _read_more(self) -> None:
        """Begins to read again, from earlier offsets: fragments and aborted transactions occupy offsets, too, so many
        offsets can pass without a complete record.
        """
        partitions, self._offsets = list(self._merged.partitions), self._offsets * 8
        self._reader.leave(partitions)
        self._merged, self._asked_again = self._nothing_merged(), False
        self._assign(partitions, last=self._last)

    @property
    def waiting_bytes(self) -> int:
        """The size in bytes of the records that wait for an earlier record."""
        return self._merged.waiting_bytes

    def _add(self, message: Message) -> None:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        self._merged.add(message)
        if (entry := self._merged.pop_entry()) is not None:
            self._assign(self._merged.new(entry), last=None)
        partition = message.topic() or "", message.partition() or 0
        if (message.offset() or 0) + (error is None) >= self._behind.get(partition, 0):
            self._behind.pop(partition, None)

    def _assign(self, new: Collection[Partition], *, last: int | None) -> None:
        begins = _begins(self._properties, new, self._since_ms, self._given_begins)
        ends = end_offsets(self._properties, new)
        offsets = {partition: ends[partition] if last is None else self._offsets for partition in new}
        starts = {each: max(begins[each], ends[each] - offsets[each]) for each in new}
        self._begins_late = any(starts[each] > begins[each] for each in new)
        self._merged.assign(starts)
        if not self.at_end:
            self._behind |= {partition: ends[partition] for partition in new if ends[partition] > starts[partition]}


class _PartitionReader:
    """Assigns and unassigns partitions. Partitions are not paused and resumed, since librdkafka may lose messages
    between pause and resume (see cdc.consumer.source.reader).
    """

    def __init__(self, consumer: Consumer, fragments: Fragments) -> None:
        self._consumer = consumer
        self._fragments = fragments

    def assign(self, begins: Mapping[Partition, int]) -> None:
        self._fragments.forget(begins)
        self._consumer.incremental_assign([TopicPartition(*partition, offset) for partition, offset in begins.items()])

    def leave(self, partitions: Collection[Partition]) -> None:
        self._consumer.incremental_unassign([TopicPartition(*partition) for partition in partitions])


def _parsed(partition: Partition, offset: int, value: bytes) -> tuple[int, tuple[bytes, str]]:
    where = f"topic {partition[0]}, partition {partition[1]}, offset {offset}"
    return Record.parse(value, where=where).sequence, (value, where)
