"""How far behind: a bound that holds whatever happened, and 0 only where nothing can be waiting."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.service.delays import Behind

LOOK = 2.0
SECONDS = st.floats(0, 1000)


def test_nothing_is_said_before_anything_is_known() -> None:
    assert Behind(look_seconds=LOOK).seconds(wall=10.0, monotonic=10.0) is None


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1), SECONDS)
def test_it_is_never_less_than_what_waits(history: list[tuple[float, float]], later: float) -> None:
    """``history``: transactions of the leader, each committed and read so long after the one before."""
    behind = Behind(look_seconds=LOOK)
    clock, committed = 0.0, 0.0
    for pause, delay in history:
        committed += pause
        clock = max(clock, committed) + delay
        behind.through_us = int(committed * 1_000_000)
    # The next one is committed at once after the last that was read, and not read yet.
    waits = clock + later - committed
    found = behind.seconds(wall=clock + later, monotonic=0.0)
    assert found is not None
    assert found >= waits - 1e-3


@given(SECONDS, st.none() | SECONDS)
def test_what_waits_came_after_the_source_was_empty(since: float, through: float | None) -> None:
    behind = Behind(look_seconds=LOOK, through_us=None if through is None else int(-through * 1_000_000))
    behind.drained_at = 0.0
    found = behind.seconds(wall=since, monotonic=since)
    assert found == (0.0 if since <= LOOK else since)


def test_a_clock_that_is_behind_the_leaders_gives_no_negative_figure() -> None:
    assert Behind(look_seconds=LOOK, through_us=20_000_000).seconds(wall=10.0, monotonic=0.0) == 0.0
