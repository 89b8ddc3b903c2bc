"""While the follower executes a packet, records are read ahead one by one; each reply that arrives ends it."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdc.config.profile import Database
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.errors import Interrupted, Stopped
from cdc.consumer.follower import session as module
from cdc.consumer.follower.session import Session, SocketReader


class Replies:
    """A connection whose replies are one byte each, the count."""

    open = False

    def __init__(self, reader: SocketReader) -> None:
        self._reader = reader

    def _execute_command(self, _: int, sql: bytes) -> None:
        self.sent = sql

    def next_result(self) -> int:
        return self._reader.read(1)[0]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def session(here: socket.socket, stop: threading.Event | None = None) -> Any:
    made: Any = Session(Database(), stop=stop)
    made._replies = SocketReader(here, made._check_wait)
    made._connection = Replies(made._replies)
    return made


def test_work_goes_on_until_the_last_reply(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    follower, done = session(here), []

    def work() -> bool:
        done.append(len(done))
        if len(done) in (3, 7):
            there.sendall(bytes([len(done)]))
        return len(done) != 5  # nothing to do for now: called again a little later

    follower.send([b"COMMIT", b"INSERT"])
    assert Prefetch(work).receive(follower) == [3, 7]
    assert done == list(range(7))


def test_no_work_is_done_once_the_replies_are_there(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    follower = session(here)
    follower.send([b"COMMIT", b"INSERT"])
    there.sendall(b"\x01\x02")
    assert Prefetch(pytest.fail).receive(follower) == [1, 2]
    assert Prefetch(pytest.fail).receive(follower) == []


def test_a_stop_ends_the_wait(ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STOP_SECONDS", 0.05)
    here, _ = ends
    stop = threading.Event()
    stop.set()
    receivers: list[Callable[[Session], list[int]]] = [Session.receive, Prefetch(lambda: False).receive]
    for receive in receivers:
        follower = session(here, stop)
        follower.send([b"ALTER"])
        with pytest.raises(Stopped):
            receive(follower)


def test_a_wait_that_is_given_up_ends_the_connection(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reply that it was waiting for must not be taken for that of the next statement."""
    monkeypatch.setattr(module, "_LONG_SECONDS", 0.05)
    monkeypatch.setattr(module, "responds", lambda _: False)
    here, there = ends
    follower = session(here)
    follower.send([b"COMMIT"])
    with pytest.raises(Interrupted, match="nor to a new connection"):
        Prefetch(lambda: False).receive(follower)
    assert there.recv(1) == b""
