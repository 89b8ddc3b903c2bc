"""A copy waits for a follower, until it is close, until an end, or not where nobody tells how far it is."""

import logging
import threading
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from cdc.producer.copy.throttle import Followers

F = "f:3306"
REFUSED = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
Look = dict[str, int] | KafkaException | None


class Places:
    """Says one after the other, the last one again and again."""

    def __init__(self, *says: Look) -> None:
        self.says = list(says)

    def look(self) -> dict[str, int] | None:
        found = self.says.pop(0) if len(self.says) > 1 else self.says[0]
        if isinstance(found, KafkaException):
            raise found
        return found


class Copy:
    """A copy that has written a chunk of 100 bytes with the sequence 5."""

    def __init__(self, *says: Look, limit: int = 50) -> None:
        self.logged: list[tuple[str, dict[str, Any]]] = []
        places: Any = Places(*says)
        self.followers = Followers(places, limit=limit, log=lambda what, **fields: self.logged.append((what, fields)))
        self.followers.written(5, 100)

    def events(self) -> list[str]:
        return [what for what, _ in self.logged]


def test_it_waits_until_the_follower_is_close() -> None:
    copy = Copy(None, {F: 3}, None, {F: 4}, None, None, {F: 5})
    end = threading.Event()
    copy.followers.wait(end, None)
    copy.followers.wait(end, None)
    copy.followers.wait(end, None)
    assert copy.logged == []
    copy.followers.wait(end, None)
    assert copy.logged == [("the copy keeps close to a follower", {"follower": F})]
    assert copy.followers.waits_for is None


def test_an_end_ends_the_wait() -> None:
    copy, end = Copy({F: 3}, {F: 4}), threading.Event()
    waiting = threading.Thread(target=lambda: [copy.followers.wait(end, None) for _ in range(2)])
    waiting.start()
    while copy.followers.waits_for != F:
        assert waiting.is_alive()
    end.set()
    waiting.join(5)
    assert not waiting.is_alive()


def test_without_a_limit_nobody_is_asked() -> None:
    copy = Copy(REFUSED, limit=0)
    copy.followers.wait(threading.Event(), None)
    assert copy.logged == []


def test_what_the_brokers_refuse_is_told_once_and_does_not_hold_the_copy() -> None:
    copy = Copy(REFUSED, REFUSED, {F: 3}, REFUSED)
    for _ in range(4):
        copy.followers.wait(threading.Event(), None)
    warning = "the progress of followers can't be read"
    assert copy.events() == [warning, "the progress of followers can be read again", warning]
    assert copy.logged[0][1]["level"] == logging.WARNING
    assert "uthorization" in copy.logged[0][1]["why"]
