"""Messages that were received are returned once and in order, however many of them are parsed ahead of time."""

from collections import deque
from typing import Any, cast

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.source import record_source
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.record_source import Received
from cdc.errors import PromiseError


class Sent:
    """A message: the number of a record, or of no record where it is negative; ``failed`` where it is an error."""

    def __init__(self, number: int, *, failed: bool = False) -> None:
        self.number = number
        self.failed = failed

    def error(self) -> str | None:
        return "an error" if self.failed else None


def queue(*sent: Sent, size: int = 1) -> Received:
    """A queue whose messages arrive two at a time."""
    left = deque(sent)

    def receive(_: float) -> list[Message]:
        return [cast("Message", left.popleft()) for _ in range(min(2, len(left)))]

    def parse(message: Any) -> Located:
        if message.number < 0:
            raise PromiseError("not a record")
        return Located(cast("Any", None), message.number, cast("Any", None), size)

    return Received(receive, parse)


@given(st.lists(st.integers(0, 3), max_size=12), st.integers(0, 9))
def test_reading_ahead_changes_nothing(ahead: list[int], count: int) -> None:
    messages = queue(*map(Sent, range(count)))
    found: list[int] = []
    pieces = iter(ahead)
    while messages.fill(0):
        for _ in range(next(pieces, 0)):
            messages.read_ahead()
        item = messages.take()
        assert isinstance(item, Located)
        found.append(item.offset)
    assert found == list(range(count))
    assert messages.take() is None


def test_reading_ahead_stops_at_an_error_and_at_what_is_no_record() -> None:
    messages = queue(Sent(0), Sent(0, failed=True), Sent(-1))
    assert [messages.read_ahead() for _ in range(3)] == [True, False, False]
    assert isinstance(messages.take(), Located)
    assert cast("Any", messages.take()).failed
    assert messages.fill(0)
    assert not messages.read_ahead()
    with pytest.raises(PromiseError, match="not a record"):
        messages.take()


def test_reading_ahead_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_source, "READ_AHEAD_BYTES", 20)
    messages = queue(*map(Sent, range(6)), size=10)
    assert [messages.read_ahead() for _ in range(3)] == [True, True, False]
    messages.take()
    assert messages.read_ahead()
    messages.clear()
    assert messages.read_ahead()


def test_nothing_is_read_ahead_beside_a_large_record() -> None:
    messages = queue(Sent(0), Sent(1), size=record_source.READ_AHEAD_BYTES)
    assert messages.fill(0)
    assert messages.take() is not None
    assert not messages.read_ahead()
