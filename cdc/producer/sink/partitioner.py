"""Assigns each record its partition, and counts the records and the newest sequence of each partition."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from cdc.model.commit_entry import Entry
from cdc.model.position import Partition, partition_name

__all__ = ["Partitioner"]


@dataclass(slots=True)
class _Topic:
    """The counts of a topic: ``total`` is the number of its records; ``counts`` and ``last`` contain the number of
    records and the newest sequence (-1 if there is none) of each partition.
    """

    partitions: int
    total: int
    counts: list[int]
    last: list[int]


class Partitioner:
    """Assigns partitions, continuing from the counts of ``entry``; ``open_topics`` returns the number of partitions of
    each topic.

    A topic's records go to its partitions in turn, so the same records always go to the same partitions.
    ``next_sequence`` is the sequence of the next record.
    """

    def __init__(self, entry: Entry | None, *, open_topics: Callable[[set[str]], Mapping[str, int]]) -> None:
        self._open_topics = open_topics
        self._topics: dict[str, _Topic] = {}
        self._counts = dict(entry.counts) if entry else {}
        self._last = dict(entry.last) if entry else {}
        self.next_sequence = entry.next_sequence if entry else 0

    def next_partition(self, name: str) -> int:
        """Returns the partition for the next record, if this record is written to the topic ``name``."""
        topic = self._topics.get(name) or self.opened(name)
        return topic.total % topic.partitions

    def count(self, name: str, partition: int) -> None:
        """Counts the next record, which was written to this ``partition`` of the topic ``name``. The caller must not
        count a record that Kafka refused.
        """
        topic = self._topics[name]
        topic.total += 1
        topic.counts[partition] += 1
        topic.last[partition] = self.next_sequence
        self.next_sequence += 1

    def opened(self, name: str) -> _Topic:
        """Returns the counts of the topic. Opens the topic first if it is not open yet."""
        if name not in self._topics:
            self.open([name])
        return self._topics[name]

    def knows(self, names: set[str]) -> bool:
        """Whether all of these topics are open."""
        return names <= self._topics.keys()

    def open(self, names: Collection[str]) -> None:
        """Opens the topics, all in one call."""
        new = set(names) - self._topics.keys()
        for name, partitions in self._open_topics(new).items() if new else ():
            names_of_partitions = [partition_name((name, number)) for number in range(partitions)]
            counts = [self._counts.get(each, 0) for each in names_of_partitions]
            last = [self._last.get(each, -1) for each in names_of_partitions]
            self._topics[name] = _Topic(partitions, sum(counts), counts, last)

    def counts(self) -> dict[str, int]:
        """Returns the number of records of each ``topic/partition``, also for topics that are not open."""
        return self._counts | {
            partition_name(partition): topic.counts[partition[1]] for partition, topic in self._each()
        }

    def last(self) -> dict[str, int]:
        """Returns the newest sequence of each ``topic/partition`` that contains records."""
        mine = {partition_name(partition): topic.last[partition[1]] for partition, topic in self._each()}
        return self._last | {name: sequence for name, sequence in mine.items() if sequence >= 0}

    def _each(self) -> list[tuple[Partition, _Topic]]:
        return [((name, number), topic) for name, topic in self._topics.items() for number in range(topic.partitions)]
