"""Takes the messages of many topics and gives their records in the order of their sequences, in bounded memory.

The commit log is among the topics. Its entries commit in one Kafka transaction with the records they count, so an entry
that can be read names every partition that holds a record below its ``next_sequence``.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import Message

from cdc.config.topic_names import Topics
from cdc.kafka.sequence_merge import Merge
from cdc.model.commit_entry import Commits
from cdc.model.partition import Partition
from cdc.model.record import is_event

__all__ = ["MergedTopics", "PartitionReader"]

Place = TypeVar("Place", bound=tuple[Any, ...])
"""A partition as the program knows it: its topic, its number, and perhaps more."""
Item = TypeVar("Item")


class PartitionReader(Protocol[Place]):
    """The connection whose messages are merged."""

    def assign(self, places: Mapping[Place, int]) -> None:
        """Read these partitions too, each from its offset on."""

    def leave(self, partitions: Collection[Place]) -> None:
        """Stop reading these partitions."""


class MergedTopics(Generic[Place, Item]):
    """Merges what ``reader`` reads from the topics called ``names``, from ``next_sequence`` on.

    ``parse`` takes the partition, offset and value of a record's message and returns its sequence and the item to give
    out for it. While more than ``most_bytes`` of values wait for an earlier record, the partitions they came from are
    not read: in each partition sequences only grow, so the missing record cannot be there.
    """

    def __init__(
        self,
        reader: PartitionReader[Place],
        names: Topics,
        parse: Callable[[Place, int, bytes], tuple[int, Item]],
        *,
        next_sequence: int,
        most_bytes: int,
    ) -> None:
        self._reader = reader
        self._names = names
        self._parse = parse
        self._most_bytes = most_bytes
        self._merge: Merge[Place, Item] = Merge(next_sequence)
        self._places: dict[Partition, Place] = {}
        self._next_offset: dict[Place, int] = {}
        self._at_end: set[Place] = set()
        self._paused: set[Place] = set()
        self._entry: tuple[bytes, int] | None = None

    @property
    def next_sequence(self) -> int:
        """The sequence of the record to give out next."""
        return self._merge.next_number

    @next_sequence.setter
    def next_sequence(self, sequence: int) -> None:
        self._merge.next_number = sequence

    @property
    def waiting_bytes(self) -> int:
        """The size of the values that wait for an earlier record."""
        return self._merge.bytes

    @property
    def places(self) -> Mapping[Partition, Place]:
        """The partitions that are read or paused."""
        return self._places

    def assign(self, begins: Mapping[Place, int]) -> None:
        """Read these partitions too, each from its offset on."""
        self._places |= {(place[0], place[1]): place for place in begins}
        if begins:
            self._reader.assign(begins)

    def new(self, commits: Commits) -> list[Partition]:
        """The partitions that ``commits`` names and that are not read yet."""
        return [partition for partition in commits.partitions if partition not in self._places]

    def add(self, message: Message) -> None:
        """Take a message, or the end of a partition (the only error that ``message`` may have).

        Raises PromiseError for a message that is not a record; it may be added again then.
        """
        partition, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        is_end, value = message.error() is not None, message.value() or b""
        if partition[0] == self._names.commits:
            # Only the newest entry counts, and parsing all of them would cost more than the records.
            self._entry = self._entry if is_end else (value, offset)
            return
        place = self._places[partition]
        if is_end:
            self._next_offset[place] = offset
            self._at_end.add(place)
            return
        self._next_offset[place] = offset + 1
        self._at_end.discard(place)
        # The binlog's other events have no sequence, so no position in the order.
        if not (self._names.is_events(partition[0]) and is_event(value)):
            sequence, item = self._parse(place, offset, value)
            self._merge.add(place, sequence, item, size=len(value))

    def pop_entry(self) -> Commits | None:
        """The newest entry of the commit log that was added since the last call. Raises as ``Commits.parse``."""
        if self._entry is None:
            return None
        (value, offset), self._entry = self._entry, None
        return Commits.parse(value, where=f"topic {self._names.commits}, offset {offset}")

    def ready(self) -> Iterator[Item]:
        """The records that are next, as long as no sequence is missing."""
        return self._merge.ready()

    def rest(self) -> Iterator[Item]:
        """All records that wait, in order, over all gaps."""
        return self._merge.rest()

    def has_read(self, ends: Mapping[Place, int]) -> bool:
        """Whether the record to give out next is at no offset below ``ends``, unless it was deleted."""
        return all(self._next_offset.get(place, 0) >= end for place, end in ends.items() if place not in self._paused)

    def is_blocked(self) -> bool:
        """Whether reading has stopped for a record that is in no partition: each is at its end or has a later one."""
        waiting = self._merge.lanes()
        return bool(self._paused & waiting) and set(self._places.values()) <= waiting | self._at_end

    def pass_gap(self) -> None:
        """Skip the missing sequences: go on with the lowest one that waits."""
        self._merge.pass_gap()

    def balance(self) -> None:
        """Stop reading partitions that are far ahead, and read those again that are no longer."""
        waiting = self._merge.lanes()
        # A partition from which nothing waits may hold the missing record, so it must not stay paused.
        due = self._paused if self._merge.bytes < self._most_bytes // 2 else self._paused - waiting
        if due:
            self._reader.assign({place: self._next_offset[place] for place in due})
            self._paused = self._paused - due
        ahead = waiting - self._paused if self._merge.bytes > self._most_bytes else set()
        if ahead:
            self._reader.leave(ahead)
            self._paused = self._paused | ahead
