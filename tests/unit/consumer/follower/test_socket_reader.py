"""A server's bytes are returned in the requested sizes, and every wait for them can be watched and ended."""

import socket
import threading
from collections.abc import Iterator

import pytest

from cdc.consumer.follower.session import SocketReader


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_bytes_that_have_arrived_are_read_without_a_wait(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    there.sendall(b"abcdefgh")
    reader = SocketReader(here, pytest.fail)
    assert [reader.read(size) for size in (1, 4, 0, 3)] == [b"a", b"bcde", b"", b"fgh"]


def test_a_wait_is_reported_until_the_bytes_arrive(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    waited: list[float] = []

    def waiting(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) in (2, 3):
            there.sendall(b"xy")

    assert SocketReader(here, waiting).read(4) == b"xyxy"
    assert len(waited) == 3
    assert 0 < waited[0] < waited[1]


def test_it_tells_whether_something_has_arrived(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    reader = SocketReader(here, pytest.fail)
    assert not reader.arrived(0)
    threading.Timer(0.05, there.sendall, [b"ab"]).start()
    assert reader.arrived(10)
    assert reader.read(1) == b"a"
    assert reader.arrived(0)  # the other byte is in the buffer, no longer in the socket


def test_a_connection_that_ends_gives_less(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    there.sendall(b"ab")
    there.close()
    reader = SocketReader(here, pytest.fail)
    assert reader.arrived(0)
    assert reader.read(5) == b"ab"
    assert reader.read(5) == b""


def test_a_wait_can_be_ended(ends: tuple[socket.socket, socket.socket]) -> None:
    here, _ = ends

    def waiting(waited: float) -> None:
        if waited > 0.05:
            raise LookupError

    with pytest.raises(LookupError):
        SocketReader(here, waiting).read(1)
