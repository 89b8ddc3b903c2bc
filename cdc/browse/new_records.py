"""Reads the records of one profile's topics from given offsets to the present ends of the topics.

Like the programs that apply records, this module joins fragments, and leaves out messages that do not count (modules
``kafka.fragments`` and ``kafka.epochs``). It also leaves out the binlog's events that belong to no record.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cdc.browse.messages import FETCH
from cdc.config.profile import Kafka
from cdc.config.topic_names import SINGLE, Topics
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.first_partition import FIRST, require_first_only
from cdc.kafka.fragments import Fragments
from cdc.kafka.known_topics import required_topics
from cdc.kafka.partitions import begin_offsets, between, connected, end_offsets
from cdc.model.commit_entry import Mark
from cdc.model.partition import Partition
from cdc.model.record import Record, is_event

__all__ = ["Extent", "Found", "NewRecords", "marks_of"]


@dataclass(frozen=True, slots=True)
class Extent:
    """The present offsets of a partition, and the id of its topic: a topic that is created again gets another id."""

    topic_id: str
    begin: int
    end: int


class Found(NamedTuple):
    """A record and the ``size`` of its JSON; ``record`` is None for a message that completes no record. ``offset`` is
    the offset of the record's first message. Reading can continue from ``next_offset``: no record before it is
    incomplete.
    """

    partition: Partition
    offset: int
    next_offset: int
    record: Record | None
    size: int


def marks_of(properties: Mapping[str, Any], commits: str) -> tuple[Mark, ...]:
    """Reads the marks in the newest entry of the commit log ``commits``."""
    newest = newest_commits(properties, commits)
    return newest.marks if newest else ()


class NewRecords:
    """Reads the records in the topics of ``kafka``. ``properties`` are librdkafka's, with ``group.id``. All methods
    raise KafkaException, or Disconnected if the brokers stop answering.
    """

    def __init__(self, kafka: Kafka, properties: Mapping[str, Any]) -> None:
        self._names: Topics = kafka.topics()
        self._is_single = kafka.layout == SINGLE
        self._properties = dict(properties)

    def extents(self) -> dict[Partition, Extent]:
        """Returns the extents of the partitions that contain records.

        Raises UserError for messages in an added partition of a topic that has a total order.
        """
        require_first_only(self._properties, self._names.first)
        if self._is_single:
            partitions = [(self._names.topic, FIRST)]
        else:
            # The entry is read before the ends, so that all records that it counts are before these ends.
            newest = newest_commits(self._properties, self._names.commits)
            partitions = list(newest.partitions) if newest else []
        ids = self._topic_ids({topic for topic, _ in partitions})
        begins, ends = begin_offsets(self._properties, partitions), end_offsets(self._properties, partitions)
        return {each: Extent(ids[each[0]], begins[each], ends[each]) for each in partitions}

    def _topic_ids(self, names: set[str]) -> dict[str, str]:
        return {name: topic.topic_id for name, topic in required_topics(self._properties, names).items()}

    def read(self, starts: Mapping[Partition, int], ends: Mapping[Partition, int]) -> Iterator[Found]:
        """Yields the messages from the offsets ``starts`` up to the offsets ``ends``, in order within each partition.

        Raises PromiseError for a message that is not a record.
        """
        starts = {partition: start for partition, start in starts.items() if start < ends[partition]}
        if not starts:
            return
        commits = self._names.commits
        fragments = Fragments(lambda _: marks_of(self._properties, commits), on_disk=True)
        begun: dict[Partition, int] = {}
        consumer = connected(FETCH | self._properties, committed=True)
        try:
            for message in between(consumer, starts, ends, str(self._properties["group.id"])):
                partition, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
                whole = fragments.whole(message)
                if whole is None:
                    first = begun.setdefault(partition, offset) if fragments.is_begun(partition) else offset + 1
                    yield Found(partition, offset, first, None, 0)
                    continue
                value: Any = whole.value() or b""
                first, size = begun.pop(partition, offset), len(value)
                where = f"topic {partition[0]}, partition {partition[1]}, offset {offset}"
                is_other = self._names.is_events(partition[0]) and is_event(value)
                record = None if is_other else Record.parse(value, where=where)
                yield Found(partition, first, offset + 1, record, size)
        finally:
            consumer.close()
