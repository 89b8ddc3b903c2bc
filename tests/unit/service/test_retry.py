"""When a program gives up waiting for a server: pure, by a clock of the test's own."""

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from cdc.errors import Disconnected, ServerGone, Unreachable
from cdc.service import retry
from cdc.service.retry import RetriedCalls, Retry


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retry, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def waiting(clock: Clock) -> Retry:
    """Has had its first success; its waits take no time."""
    stop = threading.Event()
    stop.set()
    made = Retry(seconds=60, log=lambda *_, **__: None, stop=stop)
    made.success()
    return made


def failures(waiting: Retry, clock: Clock, *, each: float, connects: bool = False) -> int:
    """How many attempts, which fail after ``each`` seconds, there are until it is given up; a hundred are for ever."""
    for number in range(1, 101):
        if connects:
            waiting.connected()
        clock.now += each
        try:
            waiting.wait(Disconnected("gone"))
        except ServerGone:
            return number
    return 100


def test_the_seconds_count_from_the_first_failure_on(waiting: Retry, clock: Clock) -> None:
    assert failures(waiting, clock, each=1) == 62


@pytest.mark.parametrize("each", [31, 61, 6000])
def test_attempts_that_fail_late_are_not_repeated_for_ever(waiting: Retry, clock: Clock, each: float) -> None:
    assert failures(waiting, clock, each=each) == 4


def test_an_attempt_that_took_all_of_the_seconds_is_the_last(waiting: Retry) -> None:
    with pytest.raises(ServerGone, match=r"^gave up after 60 s: gone"):
        waiting.wait(Disconnected("gone"), last=True)
    assert (waiting.waits, waiting.trouble) == (0, "")


def test_a_connection_that_stood_for_a_while_ends_the_count(waiting: Retry, clock: Clock) -> None:
    assert failures(waiting, clock, each=31, connects=True) == 100
    assert failures(waiting, clock, each=1, connects=True) < 70


def test_what_did_its_work_ends_the_count(waiting: Retry, clock: Clock) -> None:
    for _ in range(100):
        waiting.success()
        clock.now += 20
        waiting.wait(Disconnected("gone"))
    assert failures(waiting, clock, each=20) == 4


def test_what_was_never_there_is_waited_for_and_the_address_doubted(clock: Clock) -> None:
    stop = threading.Event()
    stop.set()
    made, said = Retry(seconds=60, log=lambda *_, **__: None, stop=stop), ""
    for _ in range(4):
        try:
            made.wait(Disconnected("gone", hint="start it"))
        except ServerGone as error:
            said = str(error)
        clock.now += 30
    assert said.startswith("gave up after 60 s: gone; hint: start it; it has not answered since the start")


def away(times: int) -> Callable[[], str]:
    """A call that is answered after so many failures."""
    left = iter(range(times))

    def call() -> str:
        for _ in left:
            raise Unreachable("no answer", where="there", hint="start it")
        return "here"

    return call


def retried(seconds: float = 60.0, keep_alive: Callable[[], object] = lambda: None) -> RetriedCalls:
    stop = threading.Event()
    return RetriedCalls(Retry(seconds=seconds, log=lambda *_, **__: None, stop=stop), keep_alive, stop)


def test_brokers_that_never_answered_are_waited_for_too() -> None:
    assert retried().call(away(1)) == "here"


def test_brokers_that_have_answered_are_waited_for() -> None:
    kept: list[None] = []
    calls = retried(keep_alive=lambda: kept.append(None))
    calls.retry.answered()
    assert calls.call(away(2)) == "here"
    assert len(kept) == 2
    assert calls.retry.trouble == ""


def test_retried_calls_end_with_the_seconds() -> None:
    calls = retried(seconds=0.0)
    calls.retry.answered()
    with pytest.raises(ServerGone, match="no answer"):
        calls.call(away(100))


def test_a_stop_ends_retried_calls() -> None:
    calls = retried()
    calls.retry.answered()

    def call() -> str:
        calls.stop.set()
        raise Unreachable("no answer")

    assert calls.call(call) is None


def test_what_was_to_be_done_is_not_told_again_once_it_is_over(clock: Clock) -> None:
    told: list[tuple[str, str]] = []
    stop = threading.Event()
    stop.set()
    waiting = Retry(
        seconds=60, log=lambda what, **fields: told.append((what, "; ".join(map(str, fields.values())))), stop=stop
    )
    waiting.wait(Disconnected("it is away", where="there", hint="start it"))
    waiting.connected()
    (_, first), (what, last) = told
    assert "start it" in first
    assert what == "no longer waiting"
    assert "it is away; at there" in last
    assert "start it" not in last
