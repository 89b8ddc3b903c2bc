"""Checks that only the first partition of a topic with a total order has messages, even if partitions were added to the
topic.

Kafka can't remove partitions, so an added partition must not end the stream. The producer writes nothing to an added
partition, so messages in it come from another program.
"""

import logging
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from cdc.errors import UserError
from cdc.kafka.known_topics import known_topics
from cdc.kafka.partitions import begin_offsets, end_offsets
from cdc.service.logs import event

__all__ = ["FIRST", "require_first_only", "require_others_empty"]

FIRST = 0
_LOG = logging.getLogger("cdc.kafka")


def require_first_only(properties: Mapping[str, Any], topics: Collection[str]) -> None:
    """Calls ``require_others_empty`` for the topics in ``topics`` that exist; ``properties`` are librdkafka's. Raises
    KafkaException.
    """
    known = known_topics(properties, topics)
    places = [(name, number) for name, topic in known.items() for number in topic.partitions if number]
    if places:
        # Uncommitted messages also count, because they may be committed before the next check.
        begins, ends = begin_offsets(properties, places), end_offsets(properties, places, committed=False)
        for topic in sorted({name for name, _ in places}):
            ranges = {number: (begins[name, number], ends[name, number]) for name, number in places if name == topic}
            require_others_empty(topic, ranges)


def require_others_empty(topic: str, ranges: Mapping[int, tuple[int, int]]) -> None:
    """Logs a warning if ``topic`` has partitions besides the first, which stay unused. ``ranges`` maps each partition
    to its first offset and the offset after its last message.

    Raises UserError if a partition other than the first has messages.
    """
    for number, (begin, end) in sorted(ranges.items()):
        if number != FIRST and begin < end:
            raise UserError(
                f"partition {number} of the topic has messages, and only partition {FIRST} keeps the leader's order",
                code="CDC-TOPIC-PARTITION-ADDED",
                where=f"topic {topic}, partition {number}, offsets {begin} to {end - 1}",
                hint="cdc-producer writes none there: stop what does; where nothing needs these messages, remove them "
                "(kafka-delete-records.sh) and start again, or name a topic that does not exist in kafka.topic",
            )
    others = ranges.keys() - {FIRST}
    if others:
        _warn(topic, len(others))


@cache
def _warn(topic: str, others: int) -> None:
    event(
        _LOG, "the topic has partitions that stay unused: its records are in the first one only",
        level=logging.WARNING, topic=topic, unused=others,
    )  # fmt: skip
