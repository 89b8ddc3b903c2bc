"""What a server sends, read in the sizes that are asked for, with work done while nothing has come."""

import socket
from collections.abc import Iterator

import pytest

from cdc.consumer.follower.socket_reader import Answers


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def test_what_is_there_is_read_without_other_work(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    there.sendall(b"abcdefgh")
    answers = Answers(here, pytest.fail, pytest.fail)
    assert [answers.read(size) for size in (1, 4, 0, 3)] == [b"a", b"bcde", b"", b"fgh"]


def test_while_nothing_is_there_other_work_is_done(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    done: list[int] = []

    def work() -> bool:
        done.append(len(done))
        if len(done) in (3, 5):
            there.sendall(b"xy")
        return len(done) != 4  # there is no more for now: it is asked again a little later

    assert Answers(here, work, lambda _: None).read(4) == b"xyxy"
    assert done == [0, 1, 2, 3, 4]


def test_a_connection_that_ends_gives_less(ends: tuple[socket.socket, socket.socket]) -> None:
    here, there = ends
    there.sendall(b"ab")
    there.close()
    answers = Answers(here, pytest.fail, pytest.fail)
    assert answers.read(5) == b"ab"
    assert answers.read(5) == b""


def test_a_wait_can_be_ended(ends: tuple[socket.socket, socket.socket]) -> None:
    here, _ = ends

    def bear(waited: float) -> None:
        if waited > 0.05:
            raise LookupError

    with pytest.raises(LookupError):
        Answers(here, lambda: False, bear).read(1)
