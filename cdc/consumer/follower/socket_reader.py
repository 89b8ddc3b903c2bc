"""The bytes that a MySQL server sends, read from the socket for pymysql without blocking for long."""

import select
import socket
import ssl
import time
from collections.abc import Callable

__all__ = ["SocketReader"]

_CHUNK = 65_536
_POLL_SECONDS = 0.1


class SocketReader:
    """Replaces the file object from which a pymysql connection reads.

    ``waiting(seconds)`` is called several times a second while nothing arrives, with the seconds waited so far. It may
    raise to end the wait: any exception but OSError, which pymysql translates.
    """

    def __init__(self, connected: socket.socket, waiting: Callable[[float], None]) -> None:
        self._socket = connected
        self._waiting = waiting
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    def read(self, size: int) -> bytes:
        """``size`` bytes; fewer where the connection has ended. Raises OSError, and what ``waiting`` raises."""
        while len(self._buffer) < size:
            self._wait()
            data = self._socket.recv(_CHUNK)
            if not data:
                break
            self._buffer += data
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def arrived(self, seconds: float) -> bool:
        """Whether there is something to read, after at most ``seconds``; also where the connection has ended."""
        return bool(self._buffer) or self._readable(seconds)

    def abort(self) -> None:
        """Close the socket at once, so that nothing is sent or received on it any more."""
        self._socket.close()

    def close(self) -> None:
        """Nothing: the connection closes its socket itself."""

    def _wait(self) -> None:
        started = time.monotonic()
        while not self._readable(_POLL_SECONDS):
            self._waiting(time.monotonic() - started)

    def _readable(self, seconds: float) -> bool:
        # TLS may have read more from the socket than it has returned; poll does not see that.
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        return bool(self._poll.poll(seconds * 1000))
