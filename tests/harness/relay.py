"""A TCP relay in front of a server that cuts its connections, with or without a notice (FIN, RST)."""

import select
import socket
import struct
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from pymysql.constants import CLIENT

__all__ = ["END_TRANSACTION", "LIST_OFFSETS", "Relay"]

# Kinds of Kafka requests (https://kafka.apache.org/protocol#protocol_api_keys).
LIST_OFFSETS, END_TRANSACTION = 2, 26
_KAFKA_HEAD = struct.Struct(">ih")
_HELD = 1 << 16  # bytes that each side of a connection may hold; the kernel's own choice is megabytes


class Relay:
    """``with Relay(port) as relay``: a client of ``relay.port`` talks to the local server at ``port``.

    The first connection to which the server has sent ``cuts[0]`` bytes is cut there, by RST with ``reset``; then the
    next one at ``cuts[1]``, and so on. A connection takes ``slowly`` seconds for each kilobyte; ``uphill`` is the same
    for data from the clients. After ``tls_for`` connections a MySQL server behind it seems to have no TLS.

    ``kafka_cut`` is the number of a kind of Kafka request: the connection with the next such request is cut instead of
    answered. ``deliver`` passes that request on nevertheless, as a slow network does.
    """

    def __init__(self, port: int) -> None:
        self.server = port  # the port for new connections
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cuts: list[int] = []
        self.reset = False
        self.slowly = 0.0
        self.tls_for = 1 << 30
        self.uphill = 0.0
        self.kafka_cut: int | None = None
        self._late: list[tuple[socket.socket, bytes]] = []
        self._open: list[tuple[socket.socket, socket.socket]] = []
        self._stranded: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.forget()
        for server in self._stranded:
            server.close()

    @property
    def has_late(self) -> bool:
        """Whether a request was cut off that ``deliver`` can pass on."""
        return bool(self._late)

    def deliver(self) -> None:
        """Passes on the requests cut off by ``kafka_cut``, and waits for the server's answer, which no client gets."""
        for server, request in self._late:
            server.sendall(request)
            server.recv(1 << 16)

    def strand(self) -> None:
        """Cuts the clients' side of all connections; the server does not notice before the relay's end."""
        for client, server in self._open.copy():
            # A second descriptor keeps the connection when the first one is closed.
            self._stranded.append(server.dup())
            client.shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """Drops the requests that were cut off."""
        while self._late:
            self._late.pop()[0].close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _HELD)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _HELD)
            try:
                server.connect(("127.0.0.1", self.server))
            except ConnectionError:
                server.close()
                client.close()  # a server that is away would do so
                continue
            threading.Thread(target=self._connection, args=(client, server), daemon=True).start()

    def _connection(self, client: socket.socket, server: socket.socket) -> None:
        self._open.append((client, server))
        try:
            self._pass(client, server)
        finally:
            self._open.remove((client, server))

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        passed, answered, strips = 0, False, self.tls_for <= 0
        self.tls_for -= 1
        # One thread waits for both: a socket that another thread reads from would not be closed at once.
        with client, server, suppress(ConnectionError):
            while True:
                ready, _, _ = select.select([client, server], [], [])
                for source in ready:
                    seconds = self.slowly if source is server else self.uphill
                    data = source.recv(1 << 10 if seconds else 1 << 16)
                    time.sleep(seconds)
                    if not data:
                        return
                    if source is client:
                        if self.kafka_cut is not None and self.kafka_cut in _kafka_requests(data):
                            self.kafka_cut = None
                            self._late.append((server.dup(), data))
                            return
                        server.sendall(_plain(data, at=4) if strips and not answered else data)
                        answered = True
                        continue
                    if strips and not passed:
                        data = _plain(data, at=data.index(0, 5) + 1 + 4 + 8 + 1)
                    room = max(0, self.cuts[0] - passed) if self.cuts else len(data)
                    client.sendall(data[:room])
                    passed += len(data)
                    if room < len(data):
                        self._cut(client)
                        return

    def _cut(self, client: socket.socket) -> None:
        del self.cuts[0]
        if self.reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _kafka_requests(data: bytes) -> list[int]:
    """The kinds of the Kafka requests in ``data``, which begins with a request: each starts with its length
    and kind.
    """
    kinds = []
    while len(data) >= _KAFKA_HEAD.size:
        length, kind = _KAFKA_HEAD.unpack_from(data)
        kinds.append(kind)
        data = data[4 + length :]
    return kinds


def _plain(packet: bytes, *, at: int) -> bytes:
    """One of the first two packets, whose capabilities begin at ``at``, without CLIENT_SSL (manual, "HandshakeV10")."""
    low = int.from_bytes(packet[at : at + 2], "little") & ~CLIENT.SSL
    return packet[:at] + low.to_bytes(2, "little") + packet[at + 2 :]
