"""Defines the interface of a source of records. A source reads one topic or many."""

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import Topic
from cdc.consumer.state.checkpoint import TopicIdPartition

__all__ = ["POLL_SECONDS", "READ_AHEAD_BYTES", "RecordSource"]

POLL_SECONDS = 0.2
READ_AHEAD_BYTES = 2_000_000  # bytes of JSON; parsed JSON needs about ten times as much memory


class RecordSource(Protocol):
    """A source of the records of one leader, in the order of their sequences."""

    def topic(self) -> Topic | None:
        """Returns the topic whose id the checkpoint contains; None if it does not exist yet."""

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Returns the topics in ``names`` that exist."""

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Resumes reading at ``offsets``, which are the offsets of the record ``sequence``. With ``until_current``,
        reads only up to the present end of the topics.

        May be called again to read from other offsets. Returns the offsets at which reading begins. Raises Unreachable
        if the brokers do not answer.
        """

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Yields records in order, and None whenever there are no more records for now. Ends when ``stop`` is set; if
        ``start`` was called with ``until_current``, also ends at the end of the topics at that time.

        Raises PromiseError for a message that is not a record and for a deleted offset, ServerGone if the brokers stay
        unreachable, UserError if the brokers refuse a request.
        """

    def drained(self) -> bool:
        """Whether ``records`` has yielded every record that is known to be in the topics."""

    def read_ahead(self) -> bool:
        """Parses one message that has arrived, so that ``records`` can return it later without parsing.

        Returns False if no message was parsed. There are four reasons: no message has arrived, READ_AHEAD_BYTES are
        already parsed, the last yielded record is as large as that, or the next message has an error. ``records``
        raises this error when it reaches the message. The method is called between two records, and never raises an
        error.
        """

    def commit(self, offsets: Mapping[TopicIdPartition, int], *, sequence: int | None = None) -> None:
        """Commits the offsets of applied records, up to record ``sequence``, to the consumer group. If ``offsets`` is
        empty, commits the offsets of earlier calls that are not committed yet.
        """
