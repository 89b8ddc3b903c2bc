"""Parses records that have arrived from Kafka while the follower works: its wait for a reply is spent on them.

A session waits for its server only, and can be asked whether a reply is here. What is done until then is decided here.
"""

from collections.abc import Callable, Mapping, Sequence

from cdc.consumer.follower.session import Session

__all__ = ["Prefetch"]

_PAUSE_SECONDS = 0.005  # between two calls of ``read_ahead`` where the first had nothing to do


class Prefetch:
    """``read_ahead`` parses one message, and returns whether there was one (``RecordSource.read_ahead``)."""

    def __init__(self, read_ahead: Callable[[], bool]) -> None:
        self._read_ahead = read_ahead

    def send(self, session: Session, packet: Sequence[bytes], loads: Mapping[int, bytes] | None = None) -> None:
        """Send a packet, and give the server the data for its LOAD DATA LOCALs, which it asks for one by one.

        Raises Interrupted.
        """
        session.send(packet, loads)
        self._work_until(session.fed)

    def receive(self, session: Session) -> list[int]:
        """The counts of the packet that was sent last (``Session.receive``). Raises Interrupted or Refused."""
        self._work_until(session.answered)
        return session.receive()

    def _work_until(self, here: Callable[[float], bool]) -> None:
        more = True
        while not here(0.0 if more else _PAUSE_SECONDS):
            more = self._read_ahead()
