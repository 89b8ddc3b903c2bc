"""Messages are parsed while the follower works, and none of its answers waits for that."""

from typing import Any, cast

import pytest

from cdc.consumer.apply.prefetch import Prefetch


class Follower:
    """A session that answers once it has been asked a few times; ``done`` is what was done meanwhile."""

    def __init__(self, *, messages: int, answers_at: int) -> None:
        self.done: list[str] = []
        self.packets: list[tuple[object, object]] = []
        self._messages = messages
        self._left = answers_at

    def send(self, packet: object, loads: object) -> None:
        self.packets.append((packet, loads))

    def fed(self, wait: float) -> bool:
        return self._is_here("fed", wait)

    def answered(self, wait: float) -> bool:
        return self._is_here("answered", wait)

    def _is_here(self, name: str, wait: float) -> bool:
        self._left -= 1
        self.done.append(f"{name}, waits" if wait else name)
        return self._left == 0

    def receive(self) -> list[int]:
        return [1, 2]

    def read_ahead(self) -> bool:
        found = self._messages > 0
        self._messages -= found
        self.done.append("parses" if found else "finds none")
        return found


@pytest.mark.parametrize(("messages", "answers_at", "done"), [
    (9, 1, ["{}"]),
    (9, 3, ["{}", "parses", "{}", "parses", "{}"]),
    (1, 4, ["{}", "parses", "{}", "finds none", "{}, waits", "finds none", "{}, waits"]),
])  # fmt: skip
def test_it_parses_until_the_follower_answers_and_waits_only_without_messages(
    messages: int, answers_at: int, done: list[str]
) -> None:
    follower = Follower(messages=messages, answers_at=answers_at)
    Prefetch(follower.read_ahead).send(cast("Any", follower), [b"packet"], {0: b"data"})
    assert follower.done == [each.format("fed") for each in done]
    assert follower.packets == [([b"packet"], {0: b"data"})]
    follower = Follower(messages=messages, answers_at=answers_at)
    assert Prefetch(follower.read_ahead).receive(cast("Any", follower)) == [1, 2]
    assert follower.done == [each.format("answered") for each in done]
