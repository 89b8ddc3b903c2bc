"""The topics of layout "per_table" as ``cdc-tail`` reads them: in the order of the sequences, new topics included."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from cdc.config.topic_names import Topics
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.partitions import begin_offsets, end_offsets
from cdc.kafka.sequence_merge import Merge
from cdc.model.commit_entry import Commits
from cdc.model.partition import Partition
from cdc.model.record import Record, is_event

__all__ = ["TailedTopics"]

_MOST_BYTES = 64_000_000


class TailedTopics:
    """The ``last`` records of all topics called ``names``, or all (None), then new ones.

    The binlog's other events have no sequence, so they have no place in the order and are left out. ``properties`` are
    librdkafka's. When more than ``most_bytes`` wait for their turn, partitions that are ahead wait too; where the
    record that is waited for is nowhere, the others are shown without it. Raises KafkaException.
    """

    def __init__(
        self,
        consumer: Consumer,
        properties: Mapping[str, Any],
        names: Topics,
        *,
        last: int | None,
        most_bytes: int = _MOST_BYTES,
    ) -> None:
        self._consumer = consumer
        self._properties = properties
        self._names, self._log = names, (names.commits, 0)
        self._last = last
        self._most_bytes = most_bytes
        self._paused: set[Partition] = set()
        self._read: set[Partition] = set()
        self._next: dict[Partition, int] = {}
        self._known: set[Partition] = set()
        self._behind: dict[Partition, int] = {}
        self._merge: Merge[Partition, tuple[bytes, str]] = Merge(0)
        self.at_end = False
        # The log's end is taken first: what it says later is read as it comes.
        end_of_log = end_offsets(properties, [self._log])[self._log]
        consumer.assign([TopicPartition(*self._log, end_of_log)])
        newest = newest_commits(properties, names.commits)
        self._next_sequence = newest.next_sequence if newest else 0
        self._assign(newest.partitions if newest else (), last=last)

    def next(self, wait: float) -> Iterator[tuple[bytes, str]]:
        """Values and places of the records that can be shown after the next message; ``wait`` seconds for it."""
        message = self._consumer.poll(wait)
        if message is not None:
            self._take(message)
        # The last ones are known only when all are there.
        if self._last is None or self.at_end:
            yield from self._merge.ready()
        if not self._behind and not self.at_end:
            self.at_end = True
            yield from deque(self._merge.rest(), maxlen=self._last)
            # Where retention has left no record, those to come have no number 0 before them.
            self._merge.next_number = max(self._merge.next_number, self._next_sequence)
        if self._last is None or self.at_end:
            yield from self._balanced()

    @property
    def waiting_bytes(self) -> int:
        """Of the records that wait for one before them."""
        return self._merge.bytes

    def _balanced(self) -> Iterator[tuple[bytes, str]]:
        """Takes no more from partitions that are far ahead.

        Where in each partition something waits or nothing is left, what they wait for is in none (module merge): then
        the records that wait are shown without it.
        """
        if self._merge.bytes > self._most_bytes:
            self._pause(self._merge.lanes() - self._paused)
        while self._paused & self._merge.lanes() and self._known <= self._merge.lanes() | self._read:
            self._merge.pass_gap()
            yield from self._merge.ready()
        if self._merge.bytes < self._most_bytes // 2:
            self._resume(self._paused)
        else:
            # Where nothing waits any more, the record that is waited for may be.
            self._resume(self._paused - self._merge.lanes())

    def _pause(self, partitions: set[Partition]) -> None:
        # As the consumer does it (kafka_reader): what librdkafka pauses and resumes may lose messages.
        if partitions:
            self._consumer.incremental_unassign([TopicPartition(*place) for place in partitions])
        self._paused = self._paused | partitions

    def _resume(self, partitions: set[Partition]) -> None:
        if partitions:
            self._consumer.incremental_assign([TopicPartition(*place, self._next[place]) for place in partitions])
        self._paused = self._paused - partitions

    def _take(self, message: Message) -> None:
        place, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        error, value = message.error(), message.value() or b""
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        self._next[place] = offset + (error is None)
        if error is None:
            self._read.discard(place)
        else:
            self._read.add(place)
        if error is None and place == self._log:
            self._assign(Commits.parse(value, where=_where(place, offset)).partitions, last=None)
        elif error is None and not (self._names.is_events(place[0]) and is_event(value)):
            record = Record.parse(value, where=_where(place, offset))
            self._merge.add(place, record.sequence, (value, _where(place, offset)), size=len(value))
        if self._next[place] >= self._behind.get(place, 0):
            self._behind.pop(place, None)

    def _assign(self, partitions: Collection[Partition], *, last: int | None) -> None:
        new = [place for place in partitions if place not in self._known]
        begins, ends = begin_offsets(self._properties, new), end_offsets(self._properties, new)
        # Each Kafka transaction takes one more offset for its end, so there are fewer records than offsets.
        room = {place: begins[place] if last is None else ends[place] - 2 * last - 100 for place in new}
        starts = {place: max(begins[place], start) for place, start in room.items()}
        self._consumer.incremental_assign([TopicPartition(*place, start) for place, start in starts.items()])
        self._known.update(new)
        if not self.at_end:
            self._behind |= {place: ends[place] for place in new if ends[place] > starts[place]}


def _where(place: Partition, offset: int) -> str:
    return f"topic {place[0]}, partition {place[1]}, offset {offset}"
