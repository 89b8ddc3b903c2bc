"""The leader's only topic as records with their places, from where the follower's checkpoint says."""

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from confluent_kafka import Message

from cdc.consumer.assembler import Located
from cdc.consumer.checkpoint import Partition
from cdc.consumer.kafka_reader import KafkaReader, Topic
from cdc.record import Record

__all__ = ["POLL_SECONDS", "KafkaSource", "Source"]

POLL_SECONDS = 0.2


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

        May be called again, to read anew. Returns the places of the records from which it reads.
        """

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Records in order; None whenever there is no more right now. Ends when ``stop`` is set, or at the end.

        Raises PromiseError for a message that is no record or a place that is gone, ServerGone where the brokers stay
        away, UserError for what the brokers refuse.
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
        self.topics = reader.topics
        self.commit = reader.commit

    def topic(self) -> Topic | None:
        """The topic, or None where there is none. Raises UserError where the brokers can't be reached."""
        return self._reader.topic(self._name)

    def start(
        self, topic: Topic, offsets: Mapping[Partition, int], *, sequence: int, until_current: bool
    ) -> dict[Partition, int]:
        """Read each partition from its offset on, or from its beginning, in order."""
        self._partitions = {number: Partition(topic.name, number, topic.id) for number in topic.ranges}
        begins = {place: topic.ranges[place.number][0] for place in self._partitions.values()} | dict(offsets)
        self._reader.begin(begins)
        if until_current:
            self._behind = {number: high for number, (_, high) in topic.ranges.items() if high > 0}
        return begins

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """See ``Source``."""
        wait = 0.0
        while not stop.is_set() and self._behind != {}:
            messages = self._reader.messages(wait)
            for message in messages:
                if message.error() is None:
                    yield self._located(message)
                    # Under a steady load the end of the partition may never be met.
                    self._reached(message, 1)
                elif self._reader.at_end(message):
                    self._reached(message, 0)
            # Only when there is nothing more at once is it worth waiting: what has come can be applied meanwhile.
            wait = 0.0 if messages else POLL_SECONDS
            if not messages:
                self._reader.check_brokers()
                yield None

    def _located(self, message: Message) -> Located:
        number, offset = message.partition() or 0, message.offset() or 0
        value = message.value() or b""
        record = Record.parse(value, where=f"{self._name}/{number}/{offset}")
        return Located(self._partitions[number], offset, record, len(value))

    def _reached(self, message: Message, more: int) -> None:
        number = message.partition() or 0
        if self._behind and (message.offset() or 0) + more >= self._behind.get(number, 0):
            self._behind.pop(number, None)
