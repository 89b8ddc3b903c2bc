"""Waiting for Kafka: for brokers that have answered before, for so many seconds, and the session is kept meanwhile."""

import threading
from collections.abc import Callable

import pytest

from cdc.errors import ServerGone, Unreachable
from cdc.service.patience import Patience
from cdc.service.retry import Retry


def away(times: int) -> Callable[[], str]:
    """A question that is answered after so many times."""
    left = iter(range(times))

    def ask() -> str:
        for _ in left:
            raise Unreachable("no answer", where="there", hint="start it")
        return "here"

    return ask


def patience(seconds: float = 60.0, keep: Callable[[], object] = lambda: None) -> Patience:
    stop = threading.Event()
    return Patience(Retry(seconds=seconds, log=lambda *_, **__: None, stop=stop), keep, stop)


def test_brokers_that_never_answered_are_waited_for_too() -> None:
    assert patience().ask(away(1)) == "here"


def test_brokers_that_have_answered_are_waited_for() -> None:
    kept: list[None] = []
    waits = patience(keep=lambda: kept.append(None))
    waits.retry.answered()
    assert waits.ask(away(2)) == "here"
    assert len(kept) == 2
    assert waits.retry.trouble == ""


def test_the_wait_has_an_end() -> None:
    waits = patience(seconds=0.0)
    waits.retry.answered()
    with pytest.raises(ServerGone, match="no answer"):
        waits.ask(away(100))


def test_a_stop_ends_it() -> None:
    waits = patience()
    waits.retry.answered()

    def ask() -> str:
        waits.stop.set()
        raise Unreachable("no answer")

    assert waits.ask(ask) is None
