"""Which partition each record goes to, and what is in each by then: how many records, and the newest one's sequence."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from cdc.model.commit_entry import Entry
from cdc.model.partition import Partition, partition_name

__all__ = ["Partitioner"]


@dataclass(slots=True)
class _Topic:
    """``total`` records in so many ``partitions``; per partition how many, and the newest one's sequence (-1: none)."""

    partitions: int
    total: int
    counts: list[int]
    last: list[int]


class Partitioner:
    """Goes on where ``entry`` ends; ``open_topics`` gives topics' numbers of partitions before their first record.

    A topic's records go round its partitions by number, so the same records always go to the same partitions. Which
    sequence is next is counted here too.
    """

    def __init__(self, entry: Entry | None, *, open_topics: Callable[[set[str]], Mapping[str, int]]) -> None:
        self._open_topics = open_topics
        self._topics: dict[str, _Topic] = {}
        self._counts = dict(entry.counts) if entry else {}
        self._last = dict(entry.last) if entry else {}
        self.next_sequence = entry.next_sequence if entry else 0

    def place(self, name: str) -> int:
        """Count one more record, the next sequence, into the topic; the partition it goes to."""
        topic = self._topics.get(name) or self.opened(name)
        partition = topic.total % topic.partitions
        topic.total += 1
        topic.counts[partition] += 1
        topic.last[partition] = self.next_sequence
        self.next_sequence += 1
        return partition

    def opened(self, name: str) -> _Topic:
        """The topic, ready to be written to."""
        if name not in self._topics:
            self.open([name])
        return self._topics[name]

    def knows(self, names: set[str]) -> bool:
        """Whether all of them are ready to be written to."""
        return names <= self._topics.keys()

    def open(self, names: Collection[str]) -> None:
        """Make the topics ready, all at once."""
        new = set(names) - self._topics.keys()
        for name, partitions in self._open_topics(new).items() if new else ():
            places = [partition_name((name, number)) for number in range(partitions)]
            counts = [self._counts.get(each, 0) for each in places]
            last = [self._last.get(each, -1) for each in places]
            self._topics[name] = _Topic(partitions, sum(counts), counts, last)

    def counts(self) -> dict[str, int]:
        """Records per ``topic/partition``, of all topics there ever were."""
        return self._counts | {partition_name(place): topic.counts[place[1]] for place, topic in self._each()}

    def last(self) -> dict[str, int]:
        """The newest sequence per ``topic/partition`` that has a record."""
        mine = {partition_name(place): topic.last[place[1]] for place, topic in self._each()}
        return self._last | {name: sequence for name, sequence in mine.items() if sequence >= 0}

    def _each(self) -> list[tuple[Partition, _Topic]]:
        return [((name, number), topic) for name, topic in self._topics.items() for number in range(topic.partitions)]
