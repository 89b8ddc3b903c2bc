"""Parses records from Kafka while the program waits for the follower's replies.

The session only waits for its server and reports whether a reply has arrived. This module decides what to do until
then.
"""

from collections.abc import Callable, Mapping, Sequence

from cdc.consumer.follower.session import Session

__all__ = ["Prefetch"]

_PAUSE_SECONDS = 0.005  # the wait after a call of ``read_ahead`` that found no message


class Prefetch:
    """Calls ``read_ahead`` while it waits for the server. ``read_ahead`` parses one message, and returns whether there
    was a message (``RecordSource.read_ahead``)."""

    def __init__(self, read_ahead: Callable[[], bool]) -> None:
        self._read_ahead = read_ahead

    def send(self, session: Session, packet: Sequence[bytes], loads: Mapping[int, bytes] | None = None) -> None:
        """Sends a packet, and the data of each LOAD DATA LOCAL in it when the server requests the data.

        Raises Interrupted.
        """
        session.send(packet, loads)
        self._work_until(session.fed)

    def receive(self, session: Session) -> list[int]:
        """Receives the row counts of the packet that was sent last (``Session.receive``). Raises Interrupted or
        Refused."""
        self._work_until(session.answered)
        return session.receive()

    def _work_until(self, here: Callable[[float], bool]) -> None:
        more = True
        while not here(0.0 if more else _PAUSE_SECONDS):
            more = self._read_ahead()
