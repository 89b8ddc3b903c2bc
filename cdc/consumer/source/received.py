"""Messages that were received from Kafka and not used yet: the oldest may be parsed ahead of time."""

from collections import deque
from collections.abc import Callable, Collection

from confluent_kafka import Message

from cdc.consumer.source.assembler import Located
from cdc.consumer.source.record_source import READ_AHEAD_BYTES
from cdc.errors import CdcError

__all__ = ["Received"]


class Received:
    """A queue: ``receive(seconds)`` gets messages, ``parse`` makes a record of one. Parsed ones come first."""

    def __init__(self, receive: Callable[[float], Collection[Message]], parse: Callable[[Message], Located]) -> None:
        self._receive = receive
        self._parse = parse
        self._parsed: deque[Located] = deque()
        self._parsed_bytes = 0
        self._taken_bytes = 0  # of the record that was taken last
        self._messages: deque[Message] = deque()

    def clear(self) -> None:
        """Drop all messages."""
        self._parsed.clear()
        self._parsed_bytes = 0
        self._messages.clear()

    def fill(self, wait: float) -> bool:
        """Whether there is a message, after at most ``wait`` seconds for the first one."""
        if not self._parsed and not self._messages:
            self._messages.extend(self._receive(wait))
        return bool(self._parsed or self._messages)

    def take(self) -> Located | Message | None:
        """The oldest message as a record, or as it is where it has an error; None where there is none.

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
        """Parse one more message; see ``RecordSource.read_ahead``."""
        # Beside a large record there should be no other one in memory.
        if self._parsed_bytes >= READ_AHEAD_BYTES or self._taken_bytes >= READ_AHEAD_BYTES:
            return False
        try:
            if not self._messages:
                self._messages.extend(self._receive(0.0))
            if not self._messages or self._messages[0].error() is not None:
                return False
            located = self._parse(self._messages[0])
        except CdcError:
            return False  # ``fill`` or ``take`` raises it again after the records before it
        self._messages.popleft()
        self._parsed.append(located)
        self._parsed_bytes += located.size
        return True
