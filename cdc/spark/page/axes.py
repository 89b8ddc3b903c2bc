"""Axes of plots: where a length or a time stands, which marks its axis has, and what they say. Pure."""

import math
from dataclasses import dataclass

from cdc.spark.report.units import DAY, HOUR, MINUTE, MS, SECOND, duration, time_of

__all__ = ["Axis", "lengths", "round_counts", "times"]

_ZERO_US = 64.0
_LENGTHS = (
    100, MS, 10 * MS, 100 * MS, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 10 * HOUR, DAY, 10 * DAY, 100 * DAY
)  # fmt: skip
_STEPS = (
    *(unit * count for unit in (1, MS) for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(unit * count for unit in (SECOND, MINUTE) for count in (1, 2, 5, 10, 20, 30)),
    *(HOUR * count for count in (1, 2, 4, 6, 12)),
    *(DAY * count for count in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)),
)
_MARKS = 6


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis that runs from 0 to 1 between two values; ``marks`` are values with what is written there.

    ``bent``: of lengths, which are as far from one another as their logarithms are, beyond 64 µs on either side of 0.
    """

    low: float
    high: float
    marks: list[tuple[float, str]]
    bent: bool = False

    def at(self, value: float) -> float:
        """Where ``value`` stands; what lies outside stands at the end."""
        low, high, here = (_bent(each) if self.bent else each for each in (self.low, self.high, value))
        return min(1.0, max(0.0, (here - low) / (high - low)))


def _bent(us: float) -> float:
    if abs(us) <= _ZERO_US:
        return us / _ZERO_US
    return math.copysign(1 + math.log2(abs(us) / _ZERO_US), us)


def lengths(low_us: float, high_us: float) -> Axis:
    """An axis for lengths of time that holds both and is never too short to read."""
    low, high = _wider(low_us, -1), _wider(high_us, 1)
    signed = sorted({0, *_LENGTHS, *(-each for each in _LENGTHS)})
    marks = [each for each in signed if low <= each <= high]
    if len(marks) < 3:
        finer = {sign * each * times for each in _LENGTHS for times in (1, 2, 5) for sign in (1, -1)} | {0}
        marks = [each for each in sorted(finer) if low <= each <= high]
    while len(marks) > 8:
        marks = marks[::2]
    return Axis(low, high, [(each, duration(each)) for each in marks], bent=True)


def _wider(us: float, sign: int) -> float:
    """Further out in the direction of ``sign``, by about a factor of 1.5."""
    there = _bent(us) + sign * 0.6
    return there * _ZERO_US if abs(there) <= 1 else math.copysign(_ZERO_US * 2 ** (abs(there) - 1), there)


def times(low_us: float, high_us: float) -> Axis:
    """An axis for times in µs since 1970, marked at round ones, as UTC has them."""
    high_us = max(high_us, low_us + 1)
    step = next((each for each in _STEPS if (high_us - low_us) / each <= _MARKS), _STEPS[-1])
    first = math.ceil(low_us / step) * step
    marks = range(first, math.floor(high_us) + 1, step)
    return Axis(low_us, high_us, [(each, _mark(each, step)) for each in marks])


def round_counts(most: int) -> Axis:
    """An axis from 0 up to a round number that ``most`` does not reach beyond."""
    power = 10 ** (len(str(max(1, most))) - 1)
    high = next(times * power for times in (1, 2, 4, 5, 10) if times * power >= most)
    marks = [0, high // 2, high] if high % 2 == 0 else [0, high]
    return Axis(0, high, [(each, f"{each:,}") for each in marks])


def _mark(us: int, step: int) -> str:
    at = time_of(us)
    if step >= DAY:
        return f"{at:%Y-%m-%d}"
    if step >= MINUTE:
        return f"{at:%H:%M}"
    if step >= SECOND:
        return f"{at:%H:%M:%S}"
    return f"{at:%H:%M:%S.%f}"[: -3 if step >= MS else None]
