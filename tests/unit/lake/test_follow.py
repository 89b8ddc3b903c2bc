"""Whether a lake that follows is healthy."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.lake import program
from cdc.lake.pipeline import Lake, Run
from cdc.lake.program import Following
from cdc.sandbox.server.process import free_port
from cdc.spark.frames.messages import Source
from tests.harness.outside import get
from tests.harness.wait import LIMIT_SECONDS

HOUR = 3600


class Turns:
    """Runs that begin one after the other, each when the one before was let go."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Semaphore(0), threading.Semaphore(0)

    def advance(self, source: Any) -> Run:
        self.begun.release()
        self.let_go.acquire(timeout=LIMIT_SECONDS)
        return Run(source.newest, "", None, 1, {}, ())


def test_a_first_run_may_take_hours_and_a_later_one_not(monkeypatch: pytest.MonkeyPatch) -> None:
    turns, stop, port = Turns(), threading.Event(), free_port()
    newest = iter(range(9))
    source = cast(Callable[[], Source], lambda: SimpleNamespace(newest=next(newest)))
    following = Following(source, cast(Lake, turns), interval=0, info={})
    runs = threading.Thread(target=lambda: following.run(stop, listen=("127.0.0.1", port)))
    runs.start()

    def later(seconds: float) -> int:
        now = time.time() + seconds
        with monkeypatch.context() as patched:
            patched.setattr(program, "time", SimpleNamespace(time=lambda: now, monotonic=time.monotonic))
            return get(port, "/healthz")[0]

    try:
        assert turns.begun.acquire(timeout=LIMIT_SECONDS)
        assert later(HOUR) == 200
        turns.let_go.release()
        assert turns.begun.acquire(timeout=LIMIT_SECONDS)
        assert [later(0), later(HOUR)] == [200, 503]
    finally:
        stop.set()
        turns.let_go.release(9)
        runs.join(LIMIT_SECONDS)


def test_tables_are_maintained_when_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, done, stop = [0.0], list[float](), threading.Event()
    lake = SimpleNamespace(
        advance=lambda source: Run(source.newest, "", None, 1, {}, ()), maintain=lambda stopped: done.append(now[0])
    )

    def source() -> Source:
        now[0] += HOUR
        stop.set() if now[0] == 7 * HOUR else None
        return cast(Source, SimpleNamespace(newest=int(now[0])))

    clock = SimpleNamespace(time=time.time, monotonic=lambda: now[0])
    monkeypatch.setattr(program, "time", clock)
    Following(source, cast(Lake, lake), interval=0, info={}, maintain=3 * HOUR).run(stop, listen=None)
    assert done == [3 * HOUR, 6 * HOUR]
    stop.clear()
    now[0] = 0
    Following(source, cast(Lake, lake), interval=0, info={}).run(stop, listen=None)
    assert done == [3 * HOUR, 6 * HOUR]
