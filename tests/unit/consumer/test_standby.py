"""A consumer that stands by waits as long as another one works, whatever happens to the follower meanwhile."""

import threading
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.consumer import pipeline
from cdc.consumer.errors import Stopped
from cdc.consumer.preflight import InUse
from cdc.consumer.startup import Startup
from cdc.errors import Disconnected
from cdc.service.retry import Retry

STANDBY: Any = SimpleNamespace(consumer=SimpleNamespace(standby=True))


def opened(monkeypatch: pytest.MonkeyPatch, *answers: Exception | None, stop: threading.Event) -> Any:
    """Opens the consumer's parts with the follower's answers, one after another; gives up after four failures."""
    waiting = list(answers)
    monkeypatch.setattr(pipeline, "_STANDBY_SECONDS", 0)

    def answered(_: object, opened: object, *, retry: Retry, stop: object) -> object:
        while isinstance(error := waiting.pop(0), Disconnected):
            retry.wait(error)
        if not waiting:
            return "startup"
        raise error or InUse("in use", code="CDC-FOLLOWER-IN-USE")

    monkeypatch.setattr(Startup, "open", answered)
    retry = Retry(seconds=0, log=lambda *_, **__: None, stop=stop)
    counters = cast(Any, SimpleNamespace(standby=False))
    with ExitStack() as left:
        return pipeline._opened(STANDBY, left, retry=retry, counters=counters, stop=stop)


def test_a_follower_that_was_away_now_and_then_is_no_reason_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    away = Disconnected("away", code="CDC-FOLLOWER-GONE")
    outages = [away, away, None] * 3
    assert opened(monkeypatch, *outages, None, stop=threading.Event()) == "startup"


def test_a_signal_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        opened(monkeypatch, None, None, stop=stop)
