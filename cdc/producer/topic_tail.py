"""The newest messages of a topic's only partition, read backwards."""

from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from cdc.errors import Disconnected
from cdc.service import LIBRDKAFKA

__all__ = ["backwards", "end_offset"]

_ANSWER_SECONDS = 10.0
_FIRST_WINDOW = 64


def end_offset(properties: dict[str, Any], topic: str, *, committed: bool = True) -> int:
    """The offset after the newest message; with ``committed``, the first one that an open transaction holds back.

    ``properties`` are librdkafka's. Raises KafkaException where the brokers do not answer.
    """
    consumer = _consumer(properties, committed=committed)
    try:
        return _range(consumer, topic)[1]
    finally:
        consumer.close()


def backwards(properties: dict[str, Any], topic: str, *, committed: bool = True) -> Iterator[Message]:
    """The topic's messages, newest first; without ``committed`` those of open and aborted transactions too.

    Raises Disconnected or KafkaException where the brokers do not answer.
    """
    consumer = _consumer(properties, committed=committed)
    try:
        low, end = _range(consumer, topic)
        window = _FIRST_WINDOW
        while end > low:
            start = max(low, end - window)
            yield from reversed(_between(consumer, topic, start, end))
            end, window = start, window * 8
    finally:
        consumer.close()


def _range(consumer: Consumer, topic: str) -> tuple[int, int]:
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_ANSWER_SECONDS)
    return int(low), int(high)


def _between(consumer: Consumer, topic: str, start: int, end: int) -> list[Message]:
    consumer.assign([TopicPartition(topic, 0, start)])
    found: list[Message] = []
    while (message := consumer.poll(_ANSWER_SECONDS)) is not None:
        error = message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise Disconnected(f"the topic cannot be read: {error.str()}", where=f"topic {topic}")
        if error is not None or (message.offset() or 0) >= end:
            return found
        found.append(message)
        if message.offset() == end - 1:
            return found
    raise Disconnected(f"no answer within {_ANSWER_SECONDS:.0f} s", where=f"topic {topic}")


def _consumer(properties: dict[str, Any], *, committed: bool) -> Consumer:
    own = {
        "group.id": "cdc-producer",  # librdkafka asks for one; nothing is ever committed under it
        "enable.auto.commit": False,
        "isolation.level": "read_committed" if committed else "read_uncommitted",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,  # the end of the topic is what is asked for: no use in waiting there for more
    }
    return Consumer(properties | own, logger=LIBRDKAFKA)
