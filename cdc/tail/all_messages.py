"""Reads the messages of all topics of a leader unchanged, and formats each message as one line of text or JSON."""

import json
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cdc.browse.messages import Shown, as_text
from cdc.config.topic_names import Topics
from cdc.kafka import fragments
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.partitions import backwards, begin_offsets, end_offsets, time_offsets
from cdc.kafka.topics import known_topics
from cdc.model.commit_entry import Commits
from cdc.model.position import Partition
from cdc.model.record import is_event
from cdc.model.values import visible

__all__ = ["AllMessages", "message_json", "message_line"]


class AllMessages:
    """Reads the ``last`` messages of each partition of the topics in ``names``, or all messages if ``last`` is None,
    and then new messages.

    The last messages are yielded in the order of their timestamps, all others in the order of the offsets in each
    partition. If ``since_ms`` is set, only messages from that timestamp on are read. If ``events`` is true, the topic
    of binlog events that belong to no record is read, too. ``properties`` are librdkafka's. Raises KafkaException.
    """

    def __init__(
        self,
        consumer: Consumer,
        properties: Mapping[str, Any],
        names: Topics,
        *,
        last: int | None,
        since_ms: int | None = None,
        events: bool = False,
    ) -> None:
        self._consumer = consumer
        self._properties = properties
        self._names = names
        # If ``kafka.prefix`` is empty, all leaders write their events to the same topic. So that topic is read only on
        # request.
        partitions = _partitions(properties, names, {names.events} if events else set())
        ends = end_offsets(properties, partitions)
        if since_ms is None:
            begins = begin_offsets(properties, partitions)
        else:
            begins = time_offsets(properties, partitions, since_ms)
        self._newest = [] if last is None else _newest(properties, begins, ends, last)
        starts = begins if last is None else ends
        self._behind = {each: ends[each] for each in partitions if starts[each] < ends[each]}
        self._assigned = set(starts)
        consumer.assign([TopicPartition(*partition, offset) for partition, offset in starts.items()])

    @property
    def at_end(self) -> bool:
        """Whether all messages that the partitions contained at the beginning have been returned."""
        return not self._behind and not self._newest

    def next(self, wait: float) -> Iterator[Shown]:
        """Yields the next message, if one arrives within ``wait`` seconds; the first call yields the last messages
        before it.
        """
        newest, self._newest = self._newest, []
        yield from newest
        message = self._consumer.poll(wait)
        if message is None:
            return
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        partition, offset = (message.topic() or "", message.partition() or 0), message.offset() or 0
        if offset + (error is None) >= self._behind.get(partition, 0):
            self._behind.pop(partition, None)
        if error is None:
            yield Shown.of(message)
            if partition[0] == self._names.commits and message.value():
                where = f"topic {partition[0]}, offset {offset}"
                self._assign(Commits.parse(message.value() or b"", where=where).partitions)

    def _assign(self, partitions: Collection[Partition]) -> None:
        """Adds ``partitions`` to the partitions that are read; a partition that was not read yet is read from its
        beginning.
        """
        new = [each for each in partitions if each not in self._assigned]
        if new:
            begins = begin_offsets(self._properties, new)
            self._assigned.update(new)
            self._consumer.incremental_assign([TopicPartition(*each, offset) for each, offset in begins.items()])


def _partitions(properties: Mapping[str, Any], names: Topics, more: set[str]) -> list[Partition]:
    """Lists all partitions of the leader's topics and of the topics ``more``, if the topics exist."""
    known = known_topics(properties, {names.main, names.commits, names.copies} | more)
    if names.main not in known:
        raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    newest = newest_commits(properties, names.commits) if names.commits in known else None
    of_records = {topic for topic, _ in newest.partitions} if newest else set()
    known |= known_topics(properties, of_records - known.keys())
    return [(topic, number) for topic in sorted(known) for number in sorted(known[topic].partitions)]


def _newest(
    properties: Mapping[str, Any], begins: Mapping[Partition, int], ends: Mapping[Partition, int], last: int
) -> list[Shown]:
    found: list[Shown] = []
    for partition, end in ends.items():
        if end > begins[partition] and last:
            newest = islice(backwards(properties, partition, end=end, pick=Shown.of), last)
            found += [message for message in newest if message.offset >= begins[partition]]
    found.sort(key=lambda each: (each.timestamp_ms or 0, each.topic, each.partition, each.offset))
    return found


def message_line(message: Shown, names: Topics) -> str:
    """Formats a message as one line: its place, timestamp, kind, key, headers and value."""
    headers = " ".join(f"{name}={as_text(content)}" for name, content in message.headers)
    text = (
        f"{message.topic}/{message.partition}/{message.offset}  {_time(message)}  {_kind(message, names)}"
        f"  key={as_text(message.key)}  {headers or 'no headers'}  {as_text(message.value)}"
    )
    return visible(text)


def message_json(message: Shown) -> str:
    """Formats a message as JSON; keys, values and headers that are not UTF-8 become objects with their base64."""
    body = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp_ms": message.timestamp_ms,
        "key": _text(message.key),
        "headers": [[name, _text(content)] for name, content in message.headers],
        "value": _text(message.value),
    }
    return json.dumps(body, ensure_ascii=False)


def _text(data: bytes | None) -> str | dict[str, str] | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return {"base64": b64encode(data or b"").decode()}


def _time(message: Shown) -> str:
    if message.timestamp_ms is None:
        return "no time"
    try:
        return f"{datetime.fromtimestamp(message.timestamp_ms / 1000, UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z"
    except (ValueError, OverflowError, OSError):
        return f"{message.timestamp_ms} ms"


def _kind(message: Shown, names: Topics) -> str:
    headers = dict(message.headers)
    if message.topic == names.commits:
        return "commit"
    if message.topic == names.copies:
        return "request"
    if message.value is None:
        return "mark" if fragments.EPOCH_HEADER in headers else "empty"
    if fragments.FRAGMENT_HEADER in headers:
        return "fragment"
    return "event" if names.is_events(message.topic) and is_event(message.value) else "record"
