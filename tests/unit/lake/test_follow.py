"""Whether a lake that follows is healthy."""

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.lake import program
from cdc.lake.formats.iceberg_catalog import CatalogGone
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


def test_a_catalog_that_is_away_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged once, and the lake is not healthy until a run ends."""
    stop, health, ended = threading.Event(), list[bool](), list[float]()
    answers = iter([False, False, True, False, True])

    def advance(source: Any) -> Run:
        if not next(answers):
            raise CatalogGone("the catalog does not answer", code="CDC-LAKE-CATALOG-GONE")
        return Run(source.newest, "", None, 1, {}, ())

    def source() -> Source:
        number = len(health)
        health.append(all(check.ok for check in following._checks()))
        ended.append(following._checked_at)
        stop.set() if number == 4 else None
        return cast(Source, SimpleNamespace(newest=min(number, 3)))

    lake = cast(Lake, SimpleNamespace(advance=advance))
    following = Following(source, lake, interval=0, info={})
    monkeypatch.setattr(program, "_LATE", -1.0)
    assert following.run(stop, listen=None) == 0
    assert health == [True, False, False, False, False]
    assert ended[0] == ended[1] == ended[2] < ended[3] == ended[4]
    assert [record.message for record in caplog.records] == ["waits for the catalog"] * 2
