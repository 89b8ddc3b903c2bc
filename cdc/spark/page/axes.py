"""Computes the axes of plots: the position of a value, and the marks with their texts. Pure."""

import math
from dataclasses import dataclass

from cdc.spark.report.units import DAY, HOUR, MINUTE, MS, SECOND, duration, time_of

__all__ = ["Axis", "count_axis", "duration_axis", "time_axis"]

_ZERO_US = 64.0
_DURATIONS = (
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
    """An axis that maps the values from ``low`` to ``high`` to 0 to 1; ``marks`` are values with their texts.

    ``logarithmic``: for durations, whose distances are those of their logarithms, but linear from -64 µs to 64 µs.
    """

    low: float
    high: float
    marks: list[tuple[float, str]]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The position of ``value`` from 0 to 1; a value outside the axis gets the nearer end."""
        low, high, here = (_scaled(each) if self.logarithmic else each for each in (self.low, self.high, value))
        return min(1.0, max(0.0, (here - low) / (high - low)))


def _scaled(us: float) -> float:
    """A duration on the logarithmic scale."""
    if abs(us) <= _ZERO_US:
        return us / _ZERO_US
    return math.copysign(1 + math.log2(abs(us) / _ZERO_US), us)


def duration_axis(low_us: float, high_us: float) -> Axis:
    """A logarithmic axis for durations that contains both, with a margin."""
    low, high = _wider(low_us, -1), _wider(high_us, 1)
    signed = sorted({0, *_DURATIONS, *(-each for each in _DURATIONS)})
    marks = [each for each in signed if low <= each <= high]
    if len(marks) < 3:
        finer = {sign * each * times for each in _DURATIONS for times in (1, 2, 5) for sign in (1, -1)} | {0}
        marks = [each for each in sorted(finer) if low <= each <= high]
    while len(marks) > 8:
        marks = marks[::2]
    return Axis(low, high, [(each, duration(each)) for each in marks], logarithmic=True)


def _wider(us: float, sign: int) -> float:
    """A duration moved in the direction of ``sign`` by about a factor of 1.5."""
    scaled = _scaled(us) + sign * 0.6
    return scaled * _ZERO_US if abs(scaled) <= 1 else math.copysign(_ZERO_US * 2 ** (abs(scaled) - 1), scaled)


def time_axis(low_us: float, high_us: float) -> Axis:
    """An axis for times in µs since 1970, with marks at round times in UTC."""
    high_us = max(high_us, low_us + 1)
    step = next((each for each in _STEPS if (high_us - low_us) / each <= _MARKS), _STEPS[-1])
    first = math.ceil(low_us / step) * step
    marks = range(first, math.floor(high_us) + 1, step)
    return Axis(low_us, high_us, [(each, _mark(each, step)) for each in marks])


def count_axis(most: int) -> Axis:
    """An axis from 0 to a round number that is at least ``most``."""
    power = 10 ** (len(str(max(1, most))) - 1)
    high = next(times * power for times in (1, 2, 4, 5, 10) if times * power >= most)
    marks = [0, high // 2, high] if high % 2 == 0 else [0, high]
    return Axis(0, high, [(each, f"{each:,}") for each in marks])


def _mark(us: int, step: int) -> str:
    """The text of a mark, as precise as the distance between marks requires."""
    at = time_of(us)
    if step >= DAY:
        return f"{at:%Y-%m-%d}"
    if step >= MINUTE:
        return f"{at:%H:%M}"
    if step >= SECOND:
        return f"{at:%H:%M:%S}"
    return f"{at:%H:%M:%S.%f}"[: -3 if step >= MS else None]
