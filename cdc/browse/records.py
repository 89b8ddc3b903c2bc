"""Reads records of one profile's topics from Kafka: one at its offset, with its rows before and after the change, or
all new ones from given offsets on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, NamedTuple

from confluent_kafka import Message

from cdc.browse.entries import Entry, kind_of, row_keys
from cdc.browse.messages import FETCH, Shown, answering
from cdc.config.profile import Kafka
from cdc.config.topic_names import SINGLE, Topics
from cdc.errors import UserError
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.fragments import Fragments
from cdc.kafka.partitions import FIRST, begin_offsets, between, connected, end_offsets, require_first_only
from cdc.kafka.topics import required_topics
from cdc.model.commit_entry import Mark
from cdc.model.position import Partition
from cdc.model.record import Record, is_event
from cdc.model.values import display

__all__ = ["Cell", "Decoded", "Extent", "Found", "NewRecords", "RowChange", "marks_of", "read_record"]


class Cell(NamedTuple):
    """The value of a column as text, before and after the change; None if the change has no such image."""

    column: str
    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        """Whether the change has both images, and the values differ."""
        return None not in (self.before, self.after) and self.before != self.after


class RowChange(NamedTuple):
    """One row of a record. ``key_before`` and ``key_after`` are the texts of its key for ``Queries.row_before`` and
    ``row_after``; the two differ only if the change is an update of the key, and are None in a table without a key.
    """

    number: int
    key_before: str | None
    key_after: str | None
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record. ``text`` is its JSON as in Kafka, the joined fragments if the record consists of several messages;
    ``message`` is its first message, whose value may be shortened.
    """

    record: Record
    text: bytes
    message: Shown

    def rows(self, *, begin: int = 0, count: int = 100) -> list[RowChange]:
        """Returns at most ``count`` rows, beginning with the row number ``begin``."""
        found = []
        for number, row in enumerate(islice(self.record.rows, begin, begin + count), begin):
            before, after = (repeat(None) if image is None else map(display, image) for image in row)
            cells = tuple(map(Cell, self.record.columns, before, after))
            found.append(RowChange(number, *row_keys(self.record, row), cells))
        return found


def read_record(properties: Mapping[str, Any], entry: Entry, *, commits: str, most_bytes: int) -> Decoded:
    """Reads the record of ``entry``; ``commits`` is the commit log. For the errors see ``Queries.record``."""
    place, where = (entry.topic, entry.partition), f"topic {entry.topic}, partition {entry.partition}"
    if entry.size > most_bytes:
        raise UserError(
            f"record {entry.sequence} has {entry.size} bytes",
            code="CDC-BROWSE-RECORD-LARGE",
            where=f"{where}, offset {entry.offset}",
            hint="cdc-tail PROFILE --json prints it",
        )
    with answering(properties, where=where):
        begin, end = (offsets(properties, [place])[place] for offsets in (begin_offsets, end_offsets))
        if begin <= entry.offset < end:
            fragments = Fragments(lambda _: marks_of(properties, commits))
            consumer = connected(FETCH | dict(properties), committed=True)
            try:
                messages = between(consumer, {place: entry.offset}, {place: end}, str(properties["group.id"]))
                first: Shown | None = None
                for message in messages:
                    first = first or Shown.of(message, value_bytes=most_bytes)
                    whole = fragments.whole(message)
                    if whole is not None:
                        return _decoded(whole, first, entry)
            finally:
                consumer.close()
    raise _gone(entry)


def _decoded(whole: Message, first: Shown, entry: Entry) -> Decoded:
    text: Any = whole.value() or b""
    record = Record.parse(text, where=f"topic {entry.topic}, partition {entry.partition}, offset {entry.offset}")
    # If the topic was deleted and created again, another record may have this sequence and this offset.
    if (record.sequence, record.transaction, kind_of(record)) != (entry.sequence, entry.gtid, entry.kind):
        raise _gone(entry)
    return Decoded(record, text, first)


def _gone(entry: Entry) -> UserError:
    return UserError(
        f"record {entry.sequence} is not in Kafka any more",
        code="CDC-BROWSE-RECORD-GONE",
        where=f"topic {entry.topic}, partition {entry.partition}, offset {entry.offset}",
        hint="the topic's retention has deleted it, or the topic was made again",
    )


# Reads the records of one profile's topics from given offsets to the present ends of the topics.
#
# Like the programs that apply records, this module joins fragments, and leaves out messages that do not count (module
# ``kafka.fragments``). It also leaves out the binlog's events that belong to no record.


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
        """Returns the extents (first offset, end and topic id) of the partitions that contain records.

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
