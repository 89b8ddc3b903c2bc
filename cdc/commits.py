"""What the commit log tells readers of a leader's topics: where records are, and up to which sequence all are out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cdc.errors import PromiseError
from cdc.topic_tail import Partition, backwards

__all__ = ["Commits", "newest_commits"]


@dataclass(frozen=True, slots=True)
class Commits:
    """Every sequence below the next is out, in these partitions."""

    next_sequence: int
    partitions: tuple[Partition, ...]

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Read an entry of the commit log. Raises PromiseError where ``text`` is none."""
        try:
            body = json.loads(text)
            names = (name.rpartition("/") for name in body["counts"])
            return cls(int(body["next_sequence"]), tuple(sorted((topic, int(number)) for topic, _, number in names)))
        except (ValueError, KeyError, TypeError) as error:
            raise PromiseError(
                f"not an entry of the commit log ({error}): {text[:80]!r}",
                where=where,
                hint="something else writes to this topic; start over with a new one",
            ) from None


def newest_commits(properties: Mapping[str, Any], topic: str) -> Commits | None:
    """The newest committed entry of the commit log ``topic``; None where there is none yet.

    ``properties`` are librdkafka's. Raises Disconnected or KafkaException where the brokers do not answer.
    """
    for message in backwards(properties, (topic, 0)):
        return Commits.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}")
    return None
