"""Reads the records of a leader with a single topic, from the follower's checkpoint on."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping

from confluent_kafka import Message

from cdc.consumer.plan.rendered_rows import RecordParser
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.source.record_source import POLL_SECONDS, READ_AHEAD_BYTES
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import CdcError

__all__ = ["Received", "SingleTopic"]


class Received:
    """A queue of received messages. The oldest messages in it may be parsed ahead of time. ``receive(seconds)`` returns
    new messages, ``parse`` parses a message into a record.
    """

    def __init__(self, receive: Callable[[float], Collection[Message]], parse: Callable[[Message], Located]) -> None:
        self._receive = receive
        self._parse = parse
        self._parsed: deque[Located] = deque()
        self._parsed_bytes = 0
        self._taken_bytes = 0  # the size of the record that was taken from the queue last
        self._messages: deque[Message] = deque()

    def clear(self) -> None:
        """Drops all messages."""
        self._parsed.clear()
        self._parsed_bytes = 0
        self._messages.clear()

    def fill(self, wait: float) -> bool:
        """Whether the queue contains a message; waits at most ``wait`` seconds for a message."""
        if not self._parsed and not self._messages:
            self._messages.extend(self._receive(wait))
        return bool(self._parsed or self._messages)

    def take(self) -> Located | Message | None:
        """Removes the oldest message and returns it as a record, or unparsed if it has an error; None if the queue is
        empty.

        Raises PromiseError for a message that is not a record.
        """
        if self._parsed:
            located = self._parsed.popleft()
            self._parsed_bytes -= located.size
            self._taken_bytes = located.size
            return located
        if not self._messages:
            return None
        message = self._messages.popleft()
        if message.error() is not None:
            return message
        located = self._parse(message)
        self._taken_bytes = located.size
        return located

    def read_ahead(self) -> bool:
        """Parses one more message; see ``RecordSource.read_ahead``."""
        # While a large record is in memory, no other record is parsed.
        if self._parsed_bytes >= READ_AHEAD_BYTES or self._taken_bytes >= READ_AHEAD_BYTES:
            return False
        try:
            if not self._messages:
                self._messages.extend(self._receive(0.0))
            if not self._messages or self._messages[0].error() is not None:
                return False
            located = self._parse(self._messages[0])
        except CdcError:
            return False  # ``fill`` or ``take`` will raise the error again, after the earlier records
        self._messages.popleft()
        self._parsed.append(located)
        self._parsed_bytes += located.size
        return True


class SingleTopic:
    """Reads the records of the topic ``name``, which has one partition. The methods are described in
    ``RecordSource``."""

    def __init__(self, reader: KafkaReader, name: str, parser: RecordParser | None = None) -> None:
        self._reader = reader
        self._name = name
        self._partitions: dict[int, TopicIdPartition] = {}
        # the ends of the partitions that are not read to their ends yet; None if reading has no end
        self._ends: dict[int, int] | None = None
        self._parser = parser or RecordParser()
        self._received = Received(reader.messages, self._located)
        self.topics = reader.topics
        self.commit = reader.offsets.commit
        self.read_ahead = self._received.read_ahead

    def topic(self) -> Topic | None:
        """Returns the topic; None if it does not exist. Raises UserError if added partitions contain messages,
        Unreachable if the brokers can't be reached.
        """
        return self._reader.ordered_topic(self._name)

    def start(
        self, topic: Topic, offsets: Mapping[TopicIdPartition, int], *, sequence: int, until_current: bool
    ) -> dict[TopicIdPartition, int]:
        """Begins to read each partition from its offset on, or from its beginning if there is no offset."""
        self._partitions = {number: TopicIdPartition(topic.name, number, topic.id) for number in topic.ranges}
        # All records that retention has deleted were applied (preflight checks this). But the offset after the last
        # applied record may be deleted, too, if it is the offset of a transaction marker.
        begins = {
            partition: max(topic.ranges[partition.number][0], offsets.get(partition, 0))
            for partition in self._partitions.values()
        }
        self._received.clear()
        self._reader.begin(begins)
        ends = {number: high for number, (_, high) in topic.ranges.items() if high > 0}
        self._ends = ends if until_current else None
        return begins

    def records(self, stop: threading.Event) -> Iterator[Located | None]:
        """Yields records in order, and None whenever there are no more records for now."""
        wait = 0.0
        while not stop.is_set() and not self._at_end():
            found = self._received.fill(wait)
            # ``read_ahead`` may add messages faster than they are yielded, so the end may be reached while the queue is
            # not empty.
            while not stop.is_set() and not self._at_end() and (located := self._next()):
                yield located
                # The end is also checked here, because under a steady load Kafka may never report the end of the
                # partition.
                self._reached(located.partition.number, located.offset + 1)
            # The next call waits for messages only if None was yielded. Only then does the caller have nothing to
            # apply.
            wait = 0.0 if found else POLL_SECONDS
            if not found:
                self._reader.check_brokers()
                self._reader.check_topics([self._name])
                yield None

    def drained(self) -> bool:
        """Whether every known record was yielded. For a single topic this is true unless the brokers are
        unreachable.
        """
        return not self._reader.away

    def _next(self) -> Located | None:
        while (message := self._received.take()) is not None:
            if isinstance(message, Located):
                return message
            if self._reader.at_end(message):
                self._reached(message.partition() or 0, message.offset() or 0)
        return None

    def _located(self, message: Message) -> Located:
        number, offset = message.partition() or 0, message.offset() or 0
        value = message.value() or b""
        record = self._parser.parse(value, where=f"{self._name}/{number}/{offset}")
        return Located(self._partitions[number], offset, record, len(value))

    def _reached(self, number: int, offset: int) -> None:
        if self._ends and offset >= self._ends.get(number, 0):
            self._ends.pop(number, None)

    def _at_end(self) -> bool:
        return self._ends == {}
