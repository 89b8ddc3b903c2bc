"""The commit log: a compacted topic beside the records' topic in which the producer commits its position with them."""

from collections.abc import Iterator, Mapping
from typing import Any

from cdc.errors import UserError
from cdc.kafka.partitions import backwards
from cdc.model.commit_entry import Commits, Entry

__all__ = ["entries", "newest_commits"]


def entries(properties: dict[str, Any], *, topic: str, resource: str, committed: bool = True) -> Iterator[Entry]:
    """The entries in ``topic``, newest first. ``properties`` are librdkafka's.

    Raises UserError where entries of another leader or of a newer version are there, Disconnected where the brokers do
    not answer.
    """
    for message in backwards(properties, (topic, 0), committed=committed):
        if not message.value():
            continue  # aborted, to end a transaction that hung (module settlement)
        key = str(message.key() or b"", "utf-8", "replace")
        if key != resource:
            raise UserError(
                f"the topic holds the records of another leader, {key!r}",
                where=f"topic {topic}",
                hint="set mysql_resource_name to that name, or kafka.topic to a topic of its own",
            )
        yield Entry.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}")


def newest_commits(properties: Mapping[str, Any], topic: str) -> Commits | None:
    """The newest committed entry of the commit log ``topic``; None where there is none yet.

    ``properties`` are librdkafka's. Raises Disconnected or KafkaException where the brokers do not answer.
    """
    for message in backwards(properties, (topic, 0)):
        return Commits.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}")
    return None
