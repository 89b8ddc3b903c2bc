"""Reads the header of Debezium's messages that names the record that they were made of, and finds the newest message
that readers can see in each partition.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple, Self

from confluent_kafka import Message

from cdc.config.topic_names import is_debezium_topic
from cdc.kafka.partitions import backwards, begin_offsets
from cdc.kafka.topics import admin_client, known_topics
from cdc.model.commit_entry import Entry
from cdc.model.position import Partition, partition_of
from cdc.producer.debezium.message import Headers
from cdc.producer.debezium.row_window import Held
from cdc.producer.sink.topic_admin import TopicAdmin, described

__all__ = ["MadeOf", "Visible", "debezium_partitions", "debezium_visible", "headers_of"]

MADE_OF = "cdc_record"
MERGED = "cdc_merged"


class MadeOf(NamedTuple):
    """The header ``cdc_record``: the record of which a message was made, and the ``number`` of the message among the
    messages of that record in the topic.

    ``through`` is the sequence and the number of the last message that the window of a merged message stands for in the
    partition (header ``cdc_merged``).
    """

    resource: str
    sequence: int
    number: int
    checksum: int
    through: tuple[int, int] | None = None

    @classmethod
    def of(cls, message: Message) -> Self | None:
        """Parses the headers of ``message``; returns None for a message that another program has written."""
        headers = dict(message.headers() or [])
        text, merged = headers.get(MADE_OF), headers.get(MERGED)
        if not isinstance(text, bytes):
            return None
        resource, *numbers = text.decode().split(" ")
        sequence, number, checksum = map(int, numbers)
        if not isinstance(merged, bytes):
            return cls(resource, sequence, number, checksum)
        _, *through = map(int, merged.decode().split(" "))
        return cls(resource, sequence, number, checksum, (through[0], through[1]))

    def text(self) -> str:
        return f"{self.resource} {self.sequence} {self.number} {self.checksum}"


def headers_of(held: Held[MadeOf]) -> Headers:
    """Returns the headers of a message of a window that has ended, or of a message that was in none."""
    found: Headers = [(MADE_OF, held.mark.text())]
    if held.through is not None:
        found.append((MERGED, f"{held.merged} {held.through.sequence} {held.through.number}"))
    return found


class Visible:
    """The messages of a partition that readers see already, although no entry of the commit log counts their records.

    Messages up to ``through`` that are missing were merged into others, or cancelled one another.
    """

    def __init__(self, found: dict[tuple[int, int], int], *, through: tuple[int, int] | None) -> None:
        self._found = found
        self._newest = max(found)
        self._through = through

    @classmethod
    def of(cls, marks: Iterable[MadeOf]) -> Self | None:
        """Returns the messages with ``marks``; None if there are none."""
        known = [*marks]
        found = {(made.sequence, made.number): made.checksum for made in known}
        through = max((made.through for made in known if made.through), default=None)
        return cls(found, through=through) if found else None

    def counted(self, made: MadeOf) -> int | None:
        """Returns the sequence that an entry of the commit log may count for the partition, if readers see the message
        or one that it was merged into; None if they do not. Raises ValueError if they see a later one, but not this
        one, or if theirs was made of another record.

        It is never above the newest message's own: recovery would miss a message that was left out.
        """
        at = made.sequence, made.number
        found = self._found.get(at)
        if found is None and self._through is not None and at <= self._through:
            return min(made.sequence, self._newest[0])
        if at > self._newest:
            return None
        if found != made.checksum:
            raise ValueError(made)
        return made.sequence


def debezium_partitions(topics: TopicAdmin, *entries: Entry | None) -> list[Partition]:
    """Returns the partitions of Debezium's messages that ``entries`` name and that exist. Raises KafkaException."""
    named = {partition_of(name) for entry in entries if entry for name in entry.debezium}
    known = known_topics(topics.properties, {topic for topic, _ in named}) if named else {}
    return sorted((topic, number) for topic, number in named if topic in known and number in known[topic].partitions)


def debezium_visible(topics: TopicAdmin, partitions: Collection[Partition], *, expired: int) -> dict[Partition, int]:
    """Returns the newest sequence of whose record readers can see a message in each of ``partitions``, -1 if there is
    none, and ``expired`` if retention or compaction has removed it. Partitions whose topic does not have the profile's
    prefix are left out.

    Raises Disconnected and KafkaException.
    """
    own = [each for each in partitions if is_debezium_topic(topics.debezium_prefix, each[0])]
    if not own:
        return {}
    with admin_client(topics.properties) as admin:
        settings = described(admin, {topic for topic, _ in own})
    begins = begin_offsets(topics.properties, own)
    found: dict[Partition, int] = {}
    for partition in own:
        seen = _newest(topics, partition, committed=True)
        if "compact" in settings.get(partition[0], {}).get("cleanup.policy", "compact"):
            # Compaction removes a message only when a later one has its key, or long after a tombstone: so the newest
            # one may be gone. A rolled back transaction shows as messages that only a reader of all messages sees.
            seen = expired if _newest(topics, partition, committed=False) == seen else seen
        elif seen < 0 and begins[partition] > 0:
            seen = expired
        found[partition] = seen
    return found


def _newest(topics: TopicAdmin, partition: Partition, *, committed: bool) -> int:
    marks: Iterator[MadeOf | None] = backwards(topics.properties, partition, committed=committed, pick=MadeOf.of)
    return next((mark.sequence for mark in marks if mark is not None), -1)
