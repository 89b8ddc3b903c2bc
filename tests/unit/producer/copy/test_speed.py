"""How fast tables are copied, and how long that takes yet."""

import pytest

from cdc.producer.copy.progress_log import Copying, Speed


def test_the_speed_is_that_of_the_last_minute() -> None:
    speed = Speed(0)
    assert speed.per_second(0.5) == (0, 0)
    for second in range(1, 101):
        rows = 10 if second <= 40 else 20
        speed.add(rows, rows * 100, now=second)
    assert (speed.rows, speed.size) == (1600, 160_000)
    assert speed.per_second(100) == (20, 2000)


def test_a_copy_that_waits_becomes_slower_and_then_has_no_speed() -> None:
    speed = Speed(0)
    speed.add(100, 1000, now=10)
    assert speed.per_second(10) == (10, 100)
    assert speed.per_second(40) == (2.5, 25)
    assert speed.per_second(1000) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "estimated", "per_second", "left"),
    [(10, 110, 5.0, 20.0), (120, 110, 5.0, 0.0), (10, None, 5.0, None), (10, 110, 0.0, None)],
)
def test_the_time_left_is_known_with_an_estimate_and_a_speed(
    rows: int, estimated: int | None, per_second: float, left: float | None
) -> None:
    assert Copying("d.t", rows, estimated, per_second, 0).seconds_left == left
