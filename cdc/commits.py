"""What the commit log tells readers of a leader's topics: where records are, and up to which sequence all are out.

Each entry says in which ``version`` of the format it is; those of before there were versions say none. It goes up when
who does not know it would misread the entry.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cdc.errors import PromiseError, UserError
from cdc.topic_tail import Partition, backwards

__all__ = ["VERSION", "Commits", "entry_body", "newer", "newest_commits", "no_entry"]

VERSION = 1


def entry_body(text: bytes, *, where: str) -> dict[str, Any]:
    """The JSON of an entry, of a version that is known; ``where`` is its topic and offset.

    Raises UserError for one of a newer version, PromiseError where ``text`` is no JSON object.
    """
    try:
        body: dict[str, Any] = json.loads(text)
        version = int(body.get("version", 0))
    except (ValueError, TypeError, AttributeError) as error:
        raise no_entry(error, text, where=where) from None
    if version > VERSION:
        raise newer(f"it is of version {version}, this cdc knows those up to {VERSION}", where=where)
    return body


def newer(what: str, *, where: str) -> UserError:
    """The error for an entry that only a newer version of ``cdc`` understands; ``what`` shows that."""
    return UserError(
        f"this entry of the commit log was written by a newer cdc: {what}",
        where=where,
        hint="upgrade this cdc to the version that wrote it, or a later one",
    )


def no_entry(error: Exception, text: bytes, *, where: str) -> PromiseError:
    """The error for what is no entry at all."""
    return PromiseError(
        f"not an entry of the commit log ({error}): {text[:80]!r}",
        where=where,
        hint="something else writes to this topic; start over with a new one",
    )


@dataclass(frozen=True, slots=True)
class Commits:
    """Every sequence below the next is out, in these partitions."""

    next_sequence: int
    partitions: tuple[Partition, ...]

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Read an entry of the commit log. Raises PromiseError where ``text`` is none, UserError for a newer version's.

        A field that is not known is passed over: what readers must know of raises the version.
        """
        body = entry_body(text, where=where)
        try:
            names = (name.rpartition("/") for name in body["counts"])
            return cls(int(body["next_sequence"]), tuple(sorted((topic, int(number)) for topic, _, number in names)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise no_entry(error, text, where=where) from None


def newest_commits(properties: Mapping[str, Any], topic: str) -> Commits | None:
    """The newest committed entry of the commit log ``topic``; None where there is none yet.

    ``properties`` are librdkafka's. Raises Disconnected or KafkaException where the brokers do not answer.
    """
    for message in backwards(properties, (topic, 0)):
        return Commits.parse(message.value() or b"", where=f"topic {topic}, offset {message.offset()}")
    return None
