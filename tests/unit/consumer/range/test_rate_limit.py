"""consumer.rows_per_second: no more rows than that, but for half a second's, and no wait longer than needed."""

import threading
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.range.delay import RateLimit
from cdc.consumer.source.assembler import Transaction
from tests.unit.consumer.range.test_delay import Clock

AHEAD = 0.5


def limited(clock: Clock, sizes: list[int], *, rows: int) -> tuple[list[tuple[int, float]], RateLimit]:
    """The transactions of so many rows, each with the time at which it goes on; and the limit they went through."""
    limit = RateLimit(rows, clock=lambda: clock.now)
    transactions = [Transaction([], {}, size, size == 0) for size in sizes]
    found = [
        (item.rows, clock.now)
        for item in limit.paced(transactions, stop=cast("threading.Event", clock))
        if item is not None
    ]
    return found, limit


@given(st.lists(st.integers(0, 400), max_size=20), st.integers(1, 500))
def test_no_more_rows_go_on_than_the_limit_allows(sizes: list[int], rows: int) -> None:
    found, limit = limited(Clock(1.0), sizes, rows=rows)
    assert [size for size, _ in found] == sizes
    before = 0
    for size, at in found:
        # Half a second's rows, and those of the transaction that exceeds them, may have gone before their time.
        assert before <= rows * (at - 1.0 + AHEAD) + 1e-6
        assert at - 1.0 <= before / rows + 1e-6, "a needless wait"
        before += max(size, 1)
    assert limit.held_seconds == pytest.approx(found[-1][1] - 1.0 if found else 0.0)
    assert not limit.holding


def test_a_stop_ends_a_wait() -> None:
    clock = Clock(0.0, stop_at=3.0)
    found, limit = limited(clock, [1000, 1, 1], rows=100)
    assert found == [(1000, 0.0)]
    assert (clock.now, limit.holding) == (3.0, True)


def test_without_a_limit_nothing_waits() -> None:
    clock = Clock(0.0)
    found, _ = limited(clock, [10**9, 1], rows=0)
    assert (len(found), clock.waits) == (2, 0)


def test_another_limit_holds_at_once() -> None:
    """While a transaction is held back, which would last for hours by the former limit."""
    clock = Clock(0.0)
    limit = RateLimit(1, clock=lambda: clock.now)
    transactions = [Transaction([], {}, 10_000, False) for _ in range(3)]
    found = limit.paced(transactions, stop=cast("threading.Event", clock))
    assert (next(found), next(found)) == (transactions[0], None)
    limit.change(10_000)
    assert (next(found), limit.holding) == (transactions[1], False)
    begun = clock.now
    assert (next(found), limit.holding) == (None, True)
    limit.change(0)
    assert (next(found), limit.holding) == (transactions[2], False)
    assert clock.now - begun <= 1.0


def test_nothing_is_held_back_any_more_once_records_are_read_again() -> None:
    """After a failover: the transactions of before are not asked for any more."""
    clock = Clock(0.0)
    limit = RateLimit(1, clock=lambda: clock.now)
    stop = threading.Event()
    item = Transaction([], {}, 10, False)
    former = limit.paced([item, item], stop=stop)
    assert (next(former), next(former)) == (item, None)
    assert limit.holding
    del former
    assert list(limit.paced([item], stop=stop)) == [item]
    assert not limit.holding
