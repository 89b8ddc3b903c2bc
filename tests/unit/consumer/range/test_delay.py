"""consumer.delay_seconds: no transaction goes on before it is due, and the order stays."""

import threading
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.range.delay import Delay
from cdc.consumer.source.assembler import assemble
from tests.unit.consumer.source.test_assembler import history, located


class Clock:
    """Time goes on only while ``wait`` is called; ``stop_at`` is when the program is told to stop."""

    def __init__(self, now: float, *, stop_at: float = float("inf")) -> None:
        self.now = now
        self.stop_at = stop_at
        self.waits = 0

    def wait(self, seconds: float) -> bool:
        self.waits += 1
        self.now += seconds
        return self.now >= self.stop_at


def delayed(clock: Clock, times: list[float], *, seconds: int) -> list[tuple[int, float]]:
    """The transactions that were committed at ``times``, in s, each with the time at which it goes on."""
    records = history([2] * len(times))
    for record in records:
        record.ts_us = round(times[record.sequence // 2] * 1e6)
    delay = Delay(seconds, stop=cast("threading.Event", clock), clock=lambda: clock.now)
    found = []
    # Each record is a part of a transaction.
    parts = assemble(
        [item and item._replace(size=1) for item in located(records)], resource="srv", next_sequence=0, size=1
    )
    for item in delay.due([part for each in parts for part in (each, None)]):
        if item is not None:
            assert delay.due_at is None
            found.append((item.records[0].sequence, clock.now))
    return found


@given(st.lists(st.integers(0, 500).map(lambda n: n / 64), max_size=8), st.integers(0, 3), st.integers(0, 9))
def test_each_transaction_goes_on_as_soon_as_it_is_due(times: list[float], seconds: int, now: int) -> None:
    clock = Clock(now)
    found = delayed(clock, times, seconds=seconds)
    assert [sequence for sequence, _ in found] == list(range(2 * len(times)))
    assert clock.waits <= 10 * (clock.now - now) + 0.01  # or each transaction would be a batch of its own
    latest = float(now)
    for sequence, at in found:
        due = times[sequence // 2] + seconds if seconds else 0
        assert at >= due
        latest = max(latest, due)
        assert at <= latest + 0.11
    if not seconds:
        assert clock.waits == 0


def test_a_stop_ends_the_wait_at_once() -> None:
    clock = Clock(0, stop_at=3)
    assert delayed(clock, [0.0, 10.0], seconds=1) == [(0, 1.0), (1, 1.0)]
    assert clock.now < 4


def test_a_transaction_that_has_begun_is_not_held_when_the_clock_is_set_back() -> None:
    clock = Clock(10)
    delay = Delay(5, stop=cast("threading.Event", clock), clock=lambda: clock.now)
    items = [item and item._replace(size=1) for item in located(history([2]))]
    stream = delay.due(assemble(items, resource="srv", next_sequence=0, size=1))
    assert next(stream) is not None
    clock.now = 0
    assert next(stream) is not None


def test_while_one_is_held_those_before_can_commit() -> None:
    clock = Clock(1)
    delay = Delay(5, stop=cast("threading.Event", clock), clock=lambda: clock.now)
    records = history([1, 1])
    records[1].ts_us = 1_000_000
    records[0].ts_us = -10_000_000
    stream = delay.due(assemble(located(records), resource="srv", next_sequence=0))
    first = next(stream)
    assert first is not None
    assert first.records == records[:1]
    assert next(stream) is None
    assert delay.due_at == 6
    assert clock.now == 1
