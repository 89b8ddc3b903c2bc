"""Merges the messages of many topics into records in the order of their sequences, in bounded memory.

The commit log is among the topics. An entry of the commit log is committed in one Kafka transaction with the records
that it counts. So an entry that can be read names every partition with a record below the entry's ``next_sequence``.

``Merge`` merges numbered items of any kind. The items come in several lanes (here partitions), in ascending order in
each lane. ``Merge`` yields all items in the order of their numbers.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from confluent_kafka import Message

from cdc.config.topic_names import Topics
from cdc.model.commit_entry import Commits
from cdc.model.position import Partition
from cdc.model.record import is_event

__all__ = ["Merge", "MergedTopics", "PartitionReader"]

Lane = TypeVar("Lane", bound=Hashable)
Item = TypeVar("Item")


class Merge(Generic[Lane, Item]):
    """Yields the items from ``next_number`` on, without a gap; items with lower numbers are ignored.

    The items come from several lanes, such as the partitions of topics. The numbers in each lane only grow, so a
    missing item cannot be in a lane that already contains a later item. Such a lane may be paused to save memory; the
    missing item still arrives.
    """

    def __init__(self, next_number: int) -> None:
        self.next_number = next_number
        self.bytes = 0
        self._waiting: dict[int, tuple[Lane, int, Item]] = {}
        self._lanes: Counter[Lane] = Counter()

    def add(self, lane: Lane, number: int, item: Item, *, size: int) -> None:
        """Adds an item of ``size`` bytes from ``lane``."""
        if number >= self.next_number and number not in self._waiting:
            self._waiting[number] = (lane, size, item)
            self._lanes[lane] += 1
            self.bytes += size

    def ready(self) -> Iterator[Item]:
        """Yields the items from ``next_number`` on, up to the first missing number."""
        while self.next_number in self._waiting:
            lane, size, item = self._waiting.pop(self.next_number)
            self.next_number += 1
            self._lanes[lane] -= 1
            self.bytes -= size
            yield item

    def pass_gap(self) -> None:
        """Skips missing numbers: ``next_number`` becomes the lowest number of the waiting items."""
        self.next_number = min(self._waiting, default=self.next_number)

    def rest(self) -> Iterator[Item]:
        """Yields all waiting items, in order, and skips all gaps."""
        for number in sorted(self._waiting):
            if number in self._waiting:
                self.next_number = number
                yield from self.ready()

    def lacks(self, end: int, *, from_next: bool) -> bool:
        """Whether a number is missing below ``end`` or between the waiting items. If ``from_next`` is true, also
        whether a number is missing between ``next_number`` and the first waiting item.
        """
        begin = self.next_number if from_next or not self._waiting else min(self._waiting)
        top = max(self._waiting, default=self.next_number - 1) + 1
        return top < end or top - begin > len(self._waiting)

    def lanes(self) -> set[Lane]:
        """Returns the lanes with waiting items."""
        return set(+self._lanes)


AnyPartition = TypeVar("AnyPartition", bound=tuple[Any, ...])
"""A partition in the program's own form: its topic, its number, and perhaps more."""


class PartitionReader(Protocol[AnyPartition]):
    """The connection that reads the messages to merge."""

    def assign(self, begins: Mapping[AnyPartition, int], /) -> None:
        """Begins to read these partitions, each from its offset on, in addition to the partitions that are already
        read.
        """

    def leave(self, partitions: Collection[AnyPartition], /) -> None:
        """Stops reading these partitions."""


class MergedTopics(Generic[AnyPartition, Item]):
    """Merges the records that ``reader`` reads from the topics ``names``, from ``next_sequence`` on.

    ``parse`` is called with the partition, offset and value of a message, and returns the record's sequence and the
    item to yield. While more than ``most_bytes`` of values wait for an earlier record, the partitions of the waiting
    values are paused. Sequences only grow in each partition, so the missing record cannot be in a paused partition.
    """

    def __init__(
        self,
        reader: PartitionReader[AnyPartition],
        names: Topics,
        parse: Callable[[AnyPartition, int, bytes], tuple[int, Item]],
        *,
        next_sequence: int,
        most_bytes: int,
    ) -> None:
        self._reader = reader
        self._names = names
        self._parse = parse
        self._most_bytes = most_bytes
        self._merge: Merge[AnyPartition, Item] = Merge(next_sequence)
        self._partitions: dict[Partition, AnyPartition] = {}
        self._next_offset: dict[AnyPartition, int] = {}
        self._at_end: set[AnyPartition] = set()
        self._paused: set[AnyPartition] = set()
        self._entry: tuple[bytes, int] | None = None

    @property
    def next_sequence(self) -> int:
        """The sequence of the record to yield next."""
        return self._merge.next_number

    @next_sequence.setter
    def next_sequence(self, sequence: int) -> None:
        self._merge.next_number = sequence

    @property
    def waiting_bytes(self) -> int:
        """The size of the values that wait for an earlier record."""
        return self._merge.bytes

    @property
    def partitions(self) -> Mapping[Partition, AnyPartition]:
        """The partitions that are read or paused."""
        return self._partitions

    def assign(self, begins: Mapping[AnyPartition, int]) -> None:
        """Begins to read these partitions, each from its offset on, in addition to the partitions that are already
        read.
        """
        self._partitions |= {(partition[0], partition[1]): partition for partition in begins}
        if begins:
            self._reader.assign(begins)

    def new(self, commits: Commits) -> list[Partition]:
        """Returns the partitions in ``commits`` that are not read yet."""
        return [partition for partition in commits.partitions if partition not in self._partitions]

    def add(self, message: Message) -> None:
        """Adds a message. The only error that ``message`` may contain is the end of a partition.

        Raises PromiseError for a message that is not a record. The caller may add that message again later.
        """
        topic, number, offset = message.topic() or "", message.partition() or 0, message.offset() or 0
        is_end, value = message.error() is not None, message.value() or b""
        if topic == self._names.commits:
            # Only the newest entry counts, and parsing all entries would cost more than parsing the records. A message
            # without content is not an entry.
            self._entry = (value, offset) if value and not is_end else self._entry
            return
        partition = self._partitions[topic, number]
        if is_end:
            self._next_offset[partition] = offset
            self._at_end.add(partition)
            return
        self._next_offset[partition] = offset + 1
        self._at_end.discard(partition)
        # Binlog events that belong to no record have no sequence, and therefore no place in the order.
        if not (self._names.is_events(topic) and is_event(value)):
            sequence, item = self._parse(partition, offset, value)
            self._merge.add(partition, sequence, item, size=len(value))

    def pop_entry(self) -> Commits | None:
        """Returns the newest entry of the commit log that was added since the last call. Raises the errors of
        ``Commits.parse``.
        """
        if self._entry is None:
            return None
        (value, offset), self._entry = self._entry, None
        return Commits.parse(value, where=f"topic {self._names.commits}, offset {offset}")

    def ready(self) -> Iterator[Item]:
        """Yields the records from ``next_sequence`` on, up to the first missing sequence."""
        return self._merge.ready()

    def rest(self) -> Iterator[Item]:
        """Yields all waiting records, in order, and skips all gaps."""
        return self._merge.rest()

    def lacks(self, end: int, *, from_next: bool) -> bool:
        """Whether a sequence is missing; for the arguments see ``Merge.lacks``."""
        return self._merge.lacks(end, from_next=from_next)

    def has_read(self, ends: Mapping[AnyPartition, int]) -> bool:
        """Whether all offsets below ``ends`` are read in the partitions that are not paused. If so, none of these
        partitions contains the next record, unless it was deleted.
        """
        return not self.unread({partition: end for partition, end in ends.items() if partition not in self._paused})

    def unread(self, ends: Mapping[AnyPartition, int]) -> dict[AnyPartition, int]:
        """Selects from ``ends`` the partitions in which not all offsets below the end are read."""
        return {partition: end for partition, end in ends.items() if self._next_offset.get(partition, 0) < end}

    def is_blocked(self) -> bool:
        """Whether reading waits for a record that no partition can contain. This is so if some partitions are paused,
        and each partition is at its end or has a later record waiting.
        """
        waiting = self._merge.lanes()
        return bool(self._paused & waiting) and set(self._partitions.values()) <= waiting | self._at_end

    def pass_gap(self) -> None:
        """Skips the missing sequences: the lowest waiting sequence becomes ``next_sequence``."""
        self._merge.pass_gap()

    def balance(self) -> None:
        """Pauses the partitions with waiting records if too many bytes wait. Resumes them once the waiting bytes are
        less than half of the limit.
        """
        waiting = self._merge.lanes()
        # A partition without waiting records may contain the missing record, so it must not stay paused.
        due = self._paused if self._merge.bytes < self._most_bytes // 2 else self._paused - waiting
        if due:
            self._reader.assign({partition: self._next_offset[partition] for partition in due})
            self._paused = self._paused - due
        ahead = waiting - self._paused if self._merge.bytes > self._most_bytes else set()
        if ahead:
            self._reader.leave(ahead)
            self._paused = self._paused | ahead
