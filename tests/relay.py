"""A TCP relay in front of a server that cuts its connections, with or without a word (FIN, RST)."""

import socket
import struct
import threading
from types import TracebackType
from typing import Self

__all__ = ["Relay"]


class Relay:
    """``with Relay(port) as relay``: what connects to ``relay.port`` talks to the local server at ``port``.

    The first connection to which the server has sent ``cuts[0]`` bytes is cut there, by RST where ``reset``; then the
    next one at ``cuts[1]``, and so on.
    """

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts: list[int] = []
        self.reset = False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.create_connection(("127.0.0.1", self._server))
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        while data := _received(server):
            room = max(0, self.cuts[0] - passed) if self.cuts else len(data)
            try:
                client.sendall(data[:room])
            except OSError:
                break  # the client has gone
            passed += len(data)
            if room < len(data):
                del self.cuts[0]
                if self.reset:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                break
        for end in (server, client):
            end.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    while data := _received(source):
        try:
            target.sendall(data)
        except OSError:
            break  # the server has gone
    target.close()


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""  # closed by the other thread
