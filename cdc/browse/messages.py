"""Lists the topics of a cluster, and reads messages of any topic as they are, without an effect on the cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Shown", "TopicSummary", "Window", "as_hex", "as_json", "as_text", "topics", "window"]


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic: the first offset and the end of each partition. ``internal`` is true for Kafka's own topics."""

    name: str
    ranges: dict[int, tuple[int, int]]
    internal: bool

    @property
    def messages(self) -> int:
        """The number of offsets in use: at least the number of messages, since the end of a Kafka transaction uses an
        offset, too, and compaction leaves gaps.
        """
        return sum(end - begin for begin, end in self.ranges.values())


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as it is in Kafka. ``timestamp_ms`` is None if it has none; ``timestamp_kind`` is ``"create"`` or
    ``"append"``. ``size`` is the length of the whole value: ``value`` may be only its beginning.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    timestamp_kind: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    size: int


@dataclass(frozen=True, slots=True)
class Window:
    """Some messages of a partition in the order of their offsets, ``begin`` and ``end`` of the partition, and the
    offsets with which to call ``window`` again for the messages before and after; None where there are none.
    """

    messages: tuple[Shown, ...]
    begin: int
    end: int
    before: int | None
    after: int | None


def topics(properties: Mapping[str, Any]) -> list[TopicSummary]:
    """All topics that the brokers show, sorted by name. ``properties`` are librdkafka's, with ``group.id``.

    Raises UserError if Kafka does not answer.
    """
    raise NotImplementedError


def window(
    properties: Mapping[str, Any],
    topic: str,
    partition: int,
    *,
    offset: int | None = None,
    count: int = 50,
    committed: bool = True,
    value_bytes: int = 100_000,
) -> Window:
    """Reads at most ``count`` messages from ``offset`` on, or the newest ones (None).

    Of a value only the first ``value_bytes`` are kept. With ``committed``, messages of open and aborted transactions
    are left out. Raises UserError if there is no such topic or partition, or Kafka does not answer.
    """
    raise NotImplementedError


def as_text(data: bytes | None) -> str:
    """The bytes as UTF-8, with a visible sign for each byte and character that can't be shown; ``"∅"`` for None."""
    raise NotImplementedError


def as_hex(data: bytes | None) -> str:
    """The bytes as lines of 16: offset, hex digits, and the printable ASCII characters."""
    raise NotImplementedError


def as_json(data: bytes | None) -> str | None:
    """The bytes as indented JSON; None if they are not JSON."""
    raise NotImplementedError
