"""Reads the commit log, a compacted topic. The producer writes its position to the commit log in the same Kafka
transaction as the records.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message

from cdc.errors import UserError
from cdc.kafka.partitions import backwards, oldest
from cdc.model.commit_entry import Commits, Entry

__all__ = ["entries", "newest_commits", "oldest_commits"]


def entries(properties: dict[str, Any], *, topic: str, resource: str, committed: bool = True) -> Iterator[Entry]:
    """Yields the entries in the commit log ``topic``, newest first. ``properties`` are librdkafka's.

    Raises UserError for an entry of another leader or of a newer version of cdc, Disconnected or KafkaException if the
    brokers do not answer.
    """
    for message in backwards(properties, (topic, 0), committed=committed):
        if not message.value():
            continue  # a message without content was only written to end a hanging transaction (sink.recovery)
        key = str(message.key() or b"", "utf-8", "replace")
        if key != resource:
            raise UserError(
                f"the topic holds the records of another leader, {key!r}",
                code="CDC-TOPIC-OTHER-LEADER",
                where=f"topic {topic}",
                hint="set mysql_resource_name to that name, or kafka.topic to a topic of its own",
            )
        yield Entry.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}")


def newest_commits(properties: Mapping[str, Any], topic: str) -> Commits | None:
    """Returns the newest committed entry of the commit log ``topic``; None if there is no entry yet.

    ``properties`` are librdkafka's. Raises Disconnected or KafkaException if the brokers do not answer.
    """
    for message in backwards(properties, (topic, 0)):
        if not message.value():  # it only ended a hanging transaction
            continue
        found = _parsed(message, topic)
        kind, written_ms = message.timestamp()
        return found if kind == TIMESTAMP_NOT_AVAILABLE else replace(found, written_at=written_ms / 1000)
    return None


def oldest_commits(properties: Mapping[str, Any], topic: str) -> Commits | None:
    """Returns the oldest entry that compaction has left in the commit log ``topic``; None if there is no entry yet.
    Raises the errors of ``newest_commits``.
    """
    # A message without content only ended a hanging transaction.
    message = oldest(properties, (topic, 0), passes=lambda each: bool(each.value()))
    if message is None:
        return None
    return _parsed(message, topic)


def _parsed(message: Message, topic: str) -> Commits:
    return Commits.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}", gtids=True)
