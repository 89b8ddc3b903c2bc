"""Defines the interface of a source of records, which reads one topic or many."""

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import Topic
from cdc.consumer.state.checkpoint import TopicIdPartition

__all__ = ["POLL_SECONDS", "READ_AHEAD_BYTES", "RecordSource"]

POLL_SECONDS = 0.2
READ_AHEAD_BYTES = 2_000_000  # bytes of JSON; parsed JSON needs about ten times the memory


class RecordSource(Protocol):
    """A source of the records of one leader, in order."""

    def topic(self) -> Topic | None:
        """The topic whose id the checkpoint contains, None if it does not exist yet."""

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """The existing topics among ``names``."""

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Resumes reading at ``offsets``, the place of record ``sequence``; with ``until_current`` up to the present
        end.

        May be called again, to read from another position. Returns the offsets at which reading begins. Raises
        Unreachable if the brokers do not answer.
        """

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Yields records in order, and None whenever there are no more for now. Ends when ``stop`` is set, or at the
        end if ``start`` was called with ``until_current``.

        Raises PromiseError for a message that is not a record or an offset that was deleted, ServerGone if the brokers
        stay unreachable, UserError if the brokers refuse a request.
        """

    def drained(self) -> bool:
        """Whether ``records`` has returned every record that is known to be in the topics."""

    def read_ahead(self) -> bool:
        """Parses one message that has arrived, so that ``records`` can return it later without parsing.

        Returns False if no message was parsed: because no message has arrived, because READ_AHEAD_BYTES are parsed
        already or the record that was returned last is as large, or because the next message has an error. ``records``
        raises that error when it gets to the message. ``read_ahead`` is called between two records, and never raises.
        """

    def commit(self, offsets: Mapping[TopicIdPartition, int], *, sequence: int | None = None) -> None:
        """Commits the offsets of applied records, up to record ``sequence``, to the consumer group. Without offsets,
        commits those offsets that still wait.
        """
