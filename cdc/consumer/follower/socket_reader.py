"""What a server sends, as pymysql reads it; while nothing has come yet, other work is done instead of waiting."""

import select
import socket
import ssl
import time
from collections.abc import Callable

__all__ = ["Answers"]

_CHUNK = 65_536
_LOOK_MS = 5


class Answers:
    """Stands in for the file that a connection of pymysql reads from.

    ``meanwhile`` does a little of what is to be done anyway, and says whether there is more of it. It must not raise.
    ``bear`` is told for how many seconds nothing has come, and ends the wait by raising what is not an OSError.
    """

    def __init__(self, connected: socket.socket, meanwhile: Callable[[], bool], bear: Callable[[float], None]) -> None:
        self._socket = connected
        self._meanwhile = meanwhile
        self._bear = bear
        self._here = bytearray()
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    def read(self, size: int) -> bytes:
        """``size`` bytes; fewer where the connection has ended. Raises OSError."""
        while len(self._here) < size:
            self._wait()
            data = self._socket.recv(_CHUNK)
            if not data:
                break
            self._here += data
        data = bytes(self._here[:size])
        del self._here[:size]
        return data

    def close(self) -> None:
        """The connection closes its socket itself."""

    def _wait(self) -> None:
        # TLS may have taken more from the socket than it has given out.
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return
        more, begun = True, time.monotonic()
        while not self._poll.poll(0 if more else _LOOK_MS):
            more = self._meanwhile()
            self._bear(time.monotonic() - begun)
