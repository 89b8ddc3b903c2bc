"""The leader's only topic as records with their places, from where the follower's checkpoint says."""

import threading
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from confluent_kafka import Message

from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.state.checkpoint import Partition
from cdc.errors import CdcError

__all__ = ["AHEAD_BYTES", "POLL_SECONDS", "KafkaSource", "Source"]

POLL_SECONDS = 0.2
AHEAD_BYTES = 2_000_000  # of JSON; parsed it takes about ten times as much memory


class Source(Protocol):
    """A leader's records in order, out of one topic or of many."""

    def topic(self) -> Topic | None:
        """The topic that stands for the stream, or None where it is not there yet."""

    def topics(self, names: Collection[str]) -> dict[str, Topic]:
        """Those of the topics that there are."""

    def start(
        self, topic: Topic, offsets: Mapping[Partition, int], *, sequence: int, until_current: bool
    ) -> dict[Partition, int]:
        """Read on at ``offsets``, where record ``sequence`` follows; with ``until_current`` up to the end as of now.

        May be called again, to read anew. Returns the places of the records from which it reads. Raises Unreachable
        where the brokers do not answer.
        """

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Records in order; None whenever there is no more right now. Ends when ``stop`` is set, or at the end.

        Raises PromiseError for a message that is no record or a place that is gone, ServerGone where the brokers stay
        away, UserError for what the brokers refuse.
        """

    def drained(self) -> bool:
        """Whether all that is out has been given out, as far as is known."""

    def ahead(self) -> bool:
        """Take one more message of those that have come, for ``records`` to give out later.

        Whether one was taken: not so where none has come, enough are taken, or the next one is not as it should be.
        """

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Show lag tools how far we are."""


class KafkaSource:
    """The records of the topic ``name``, which has one partition."""

    def __init__(self, reader: KafkaReader, name: str) -> None:
        self._reader = reader
        self._name = name
        self._partitions: dict[int, Partition] = {}
        self._behind: dict[int, int] | None = None
        self._raw: deque[Message] = deque()
        self._ahead: deque[Located] = deque()  # before those that are raw
        self._ahead_bytes = 0
        self._parser = RecordParser()
        self.topics = reader.topics
        self.commit = reader.commit

    def topic(self) -> Topic | None:
        """The topic, or None where there is none. Raises Unreachable where the brokers can't be reached."""
        return self._reader.topic(self._name)

    def start(
        self, topic: Topic, offsets: Mapping[Partition, int], *, sequence: int, until_current: bool
    ) -> dict[Partition, int]:
        """Read each partition from its offset on, or from its beginning, in order."""
        self._partitions = {number: Partition(topic.name, number, topic.id) for number in topic.ranges}
        # What retention has cut was applied (preflight), but for the end of a Kafka transaction behind it.
        begins = {
            place: max(topic.ranges[place.number][0], offsets.get(place, 0)) for place in self._partitions.values()
        }
        self._raw.clear()
        self._ahead.clear()
        self._ahead_bytes = 0
        self._reader.begin(begins)
        if until_current:
            self._behind = {number: high for number, (_, high) in topic.ranges.items() if high > 0}
        return begins

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """See ``Source``."""
        wait = 0.0
        while not stop.is_set() and self._behind != {}:
            if not self._ahead and not self._raw:
                self._raw.extend(self._reader.messages(wait))
            found = bool(self._ahead or self._raw)
            # While the follower is at work ``ahead`` finds more and more: the end may come before this runs dry.
            while not stop.is_set() and self._behind != {} and (located := self._next()):
                yield located
                # Under a steady load the end of the partition may never be met.
                self._reached(located.partition.number, located.offset + 1)
            # Only when there is nothing more at once is it worth waiting: what has come can be applied meanwhile.
            wait = 0.0 if found else POLL_SECONDS
            if not found:
                self._reader.check_brokers()
                self._reader.check_topics([self._name])
                yield None

    def drained(self) -> bool:
        """See ``Source``."""
        return not self._reader.away

    def _next(self) -> Located | None:
        """The next record of those that are here."""
        if self._ahead:
            located = self._ahead.popleft()
            self._ahead_bytes -= located.size
            return located
        while self._raw:
            message = self._raw.popleft()
            if message.error() is None:
                return self._located(message)
            if self._reader.at_end(message):
                self._reached(message.partition() or 0, message.offset() or 0)
        return None

    def ahead(self) -> bool:
        """See ``Source``."""
        if self._ahead_bytes >= AHEAD_BYTES:
            return False
        if not self._raw:
            self._raw.extend(self._reader.messages(0.0))
        if not self._raw or self._raw[0].error() is not None:
            return False
        try:
            located = self._located(self._raw[0])
        except CdcError:
            return False  # raised when it is its turn
        self._raw.popleft()
        self._ahead.append(located)
        self._ahead_bytes += located.size
        return True

    def _located(self, message: Message) -> Located:
        number, offset = message.partition() or 0, message.offset() or 0
        value = message.value() or b""
        record = self._parser.parse(value, where=f"{self._name}/{number}/{offset}")
        return Located(self._partitions[number], offset, record, len(value))

    def _reached(self, number: int, offset: int) -> None:
        if self._behind and offset >= self._behind.get(number, 0):
            self._behind.pop(number, None)
