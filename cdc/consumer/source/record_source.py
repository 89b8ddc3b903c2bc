"""The interface of a source of records, read from one topic or from many."""

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import Topic
from cdc.consumer.state.checkpoint import TopicIdPartition

__all__ = ["POLL_SECONDS", "READ_AHEAD_BYTES", "RecordSource"]

POLL_SECONDS = 0.2
READ_AHEAD_BYTES = 2_000_000  # of JSON; parsed it takes about ten times as much memory


class RecordSource(Protocol):
    """The records of one leader in order."""

    def topic(self) -> Topic | None:
        """The topic whose id the checkpoint remembers, None where it does not exist yet."""

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the named topics that exist."""

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Read on at ``offsets``, where record ``sequence`` follows; with ``until_current`` up to the present end.

        May be called again, to read from another position. Returns the offsets at which it begins to read. Raises
        Unreachable where the brokers do not answer.
        """

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Records in order; None whenever there is no more for now. Ends when ``stop`` is set, or at the end.

        Raises PromiseError for a message that is no record or an offset that was deleted, ServerGone where the brokers
        stay unreachable, UserError for what the brokers refuse.
        """

    def drained(self) -> bool:
        """Whether ``records`` has returned every record that is known to be in the topics."""

    def read_ahead(self) -> bool:
        """Parse one message that has arrived, so that ``records`` can return it later without parsing.

        False where no message was parsed: none has arrived, READ_AHEAD_BYTES are parsed already, the record that was
        returned last is as large, or the next message has an error, which ``records`` raises when it gets there. Called
        between two records, never raises.
        """

    def commit(self, offsets: Mapping[TopicIdPartition, int], *, sequence: int | None = None) -> None:
        """Publish applied offsets to the consumer group, up to record ``sequence``; none: those that still wait."""
