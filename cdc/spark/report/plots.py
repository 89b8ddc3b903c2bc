"""Draws the plots of a report: histograms of lags; and how lags, foreign writes (errant transactions) and verdicts
changed over time.

Also computes the plots' axes: the position of a value, and the marks with their texts.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc.spark.lag import Quantiles, Stage, Stretch
from cdc.spark.report.document import Drawing, Shape
from cdc.spark.report.printable import DAY, HOUR, MINUTE, MS, SECOND, day, duration, time_of

__all__ = [
    "QUANTILES",
    "Axis",
    "Point",
    "count_axis",
    "duration_axis",
    "histogram",
    "over_time",
    "points",
    "time_axis",
    "time_line",
]

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
    """An axis that maps the values from ``low`` to ``high`` to positions from 0 to 1; ``marks`` are values with their
    texts.

    ``logarithmic`` is true for durations: the scale is then logarithmic, but linear from -64 µs to 64 µs.
    """

    low: float
    high: float
    marks: list[tuple[float, str]]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Computes the position of ``value``, from 0 to 1. A value outside of the axis is moved to the nearer end of
        the axis.
        """
        low, high, here = (_scaled(each) if self.logarithmic else each for each in (self.low, self.high, value))
        return min(1.0, max(0.0, (here - low) / (high - low)))


def _scaled(us: float) -> float:
    """Maps a duration to the logarithmic scale."""
    if abs(us) <= _ZERO_US:
        return us / _ZERO_US
    return math.copysign(1 + math.log2(abs(us) / _ZERO_US), us)


def duration_axis(low_us: float, high_us: float) -> Axis:
    """Builds a logarithmic axis for durations that contains both limits, with a margin."""
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
    """Moves a duration in the direction of ``sign`` by about a factor of 1.5."""
    scaled = _scaled(us) + sign * 0.6
    return scaled * _ZERO_US if abs(scaled) <= 1 else math.copysign(_ZERO_US * 2 ** (abs(scaled) - 1), scaled)


def time_axis(low_us: float, high_us: float) -> Axis:
    """Builds an axis for times in µs since 1970, with marks at round times in UTC."""
    high_us = max(high_us, low_us + 1)
    step = next((each for each in _STEPS if (high_us - low_us) / each <= _MARKS), _STEPS[-1])
    first = math.ceil(low_us / step) * step
    marks = range(first, math.floor(high_us) + 1, step)
    return Axis(low_us, high_us, [(each, _mark(each, step)) for each in marks])


def count_axis(most: int) -> Axis:
    """Builds an axis from 0 to a round number that is at least ``most``."""
    power = 10 ** (len(str(max(1, most))) - 1)
    high = next(times * power for times in (1, 2, 4, 5, 10) if times * power >= most)
    marks = [0, high // 2, high] if high % 2 == 0 else [0, high]
    return Axis(0, high, [(each, f"{each:,}") for each in marks])


def _mark(us: int, step: int) -> str:
    """Formats the text of a mark, as precisely as the distance between marks requires."""
    at = time_of(us)
    if step >= DAY:
        return f"{at:%Y-%m-%d}"
    if step >= MINUTE:
        return f"{at:%H:%M}"
    if step >= SECOND:
        return f"{at:%H:%M:%S}"
    return f"{at:%H:%M:%S.%f}"[: -3 if step >= MS else None]


QUANTILES = ("p50", "p95", "p99", "max")

_WIDTH, _HEIGHT = 560, 210
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 14, 34, 40
_BASE = _HEIGHT - _BOTTOM
_HALF_MARK = 34  # half the width of the longest text of a mark

Bar = tuple[int, int, int]
"""A bar of a plot: where it begins, where it ends, and a count."""

Point = tuple[int, int, str, str]
"""A point of a plot: a time in µs since 1970, a count, the class of the point's colour, and a title."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The axes of a plot and their titles."""

    across: Axis
    up: Axis
    across_name: str
    up_name: str
    width: int = _WIDTH

    def x(self, value: float) -> float:
        return _LEFT + self.across.at(value) * (self.width - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _BASE - self.up.at(value) * (_BASE - _TOP)


def histogram(stage: Stage, label: str) -> Drawing:
    """Draws the histogram of the transactions' delays in a stage, and marks the quantiles."""
    across = duration_axis(stage.histogram[0][0], stage.histogram[-1][1])
    up = count_axis(max(count for *_, count in stage.histogram))
    frame = _Frame(across, up, "time taken (log scale)", "transactions")
    bars = [_bar(frame, bar, f"{duration(bar[0])} to {duration(bar[1])}: {bar[2]:,}") for bar in stage.histogram]
    marks = [_upright(frame, _of(stage.total, name), name) for name in QUANTILES]
    quantiles = ", ".join(f"{name} {duration(_of(stage.total, name))}" for name in QUANTILES)
    label = f"{label}: histogram of {stage.total.transactions:,} transactions, {quantiles}"
    return _plot(frame, label, [*bars, *marks, *_legend(frame)])


def over_time(stage: Stage, label: str, *, first_us: int, last_us: int, stretch_us: int) -> Drawing:
    """Draws the quantiles of the transactions in each stretch of time in which the leader committed."""
    lags = [_of(each.lag, name) for each in stage.over_time for name in QUANTILES]
    across = time_axis(first_us, max(last_us, first_us + stretch_us))
    frame = _Frame(
        across, duration_axis(min(lags), max(lags)), _when(first_us, "leader's commit"), "time taken (log scale)"
    )
    # The median is drawn last, so that it is visible where the lines coincide.
    lines = [
        shape for name in reversed(QUANTILES) for shape in _line(frame, stage.over_time, name, stretch_us=stretch_us)
    ]
    label = f"{label} over time: p50, p95, p99 and max of each stretch"
    return _plot(frame, label, [*lines, *_legend(frame)])


def time_line(bars: Sequence[Bar], label: str, *, first_us: int, last_us: int) -> Drawing:
    """Draws bars of counts over the time from ``first_us`` to ``last_us``. The limits of the bars are in µs
    since 1970.
    """
    up = count_axis(max(count for *_, count in bars))
    frame = _Frame(time_axis(first_us, last_us), up, _when(first_us, "follower's commit"), "writes", 2 * _WIDTH)
    return _plot(frame, label, [_bar(frame, bar, f"{bar[2]:,}") for bar in bars])


def points(drawn: Sequence[Point], label: str) -> Drawing:
    """Draws counts over time as points, each in the colour of its verdict."""
    across = time_axis(drawn[0][0], drawn[-1][0])
    frame = _Frame(across, count_axis(max(1, *(count for _, count, *_ in drawn))), _when(drawn[0][0], "audit"),
                   "rows and definitions that differ", 2 * _WIDTH)  # fmt: skip
    circles = [
        _shape("circle", title=title, cx=frame.x(at_us), cy=frame.y(count), r=4, class_=f"verdict {colour}")
        for at_us, count, colour, title in drawn
    ]
    return _plot(frame, label, circles)


def _shape(name: str, text: str = "", title: str = "", **attributes: str | float) -> Shape:
    """Builds an SVG element. The attribute ``class_`` becomes ``class``; floats are written with one decimal, which is
    enough for a pixel.
    """
    named = {key.rstrip("_").replace("_", "-"): _exact(value) for key, value in attributes.items()}
    return Shape(name, named, text, title)


def _exact(value: str | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _when(us: int, what: str) -> str:
    return f"{what}, UTC, from {day(us)}"


def _of(quantiles: Quantiles, name: str) -> int:
    us: int = getattr(quantiles, f"{name}_us")
    return us


def _plot(frame: _Frame, label: str, content: Iterable[Shape]) -> Drawing:
    names = (
        _shape("text", frame.across_name, x=(_LEFT + frame.width - _RIGHT) / 2, y=_HEIGHT - 5, text_anchor="middle"),
        _shape("text", frame.up_name, x=4, y=14),
    )
    base = _shape("line", x1=_LEFT, x2=frame.width - _RIGHT, y1=_BASE, y2=_BASE, class_="axis")
    shapes = (*_grid(frame), *content, base, *_marks(frame), *names)
    return Drawing(label, shapes, frame.width, _HEIGHT, frame.width > _WIDTH)


def _grid(frame: _Frame) -> Iterable[Shape]:
    for value, text in frame.up.marks:
        y = frame.y(value)
        yield _shape("line", x1=_LEFT, x2=frame.width - _RIGHT, y1=y, y2=y, class_="grid")
        yield _shape("text", text, x=_LEFT - 6, y=y + 4, text_anchor="end")


def _marks(frame: _Frame) -> Iterable[Shape]:
    for value, text in frame.across.marks:
        x = frame.x(value)
        yield _shape("line", x1=x, x2=x, y1=_BASE, y2=_BASE + 4, class_="axis")
        inside = min(x, frame.width - _HALF_MARK)
        yield _shape("text", text, x=inside, y=_BASE + 17, text_anchor="middle")


def _bar(frame: _Frame, bar: Bar, title: str) -> Shape:
    start, end, count = bar
    x, y = frame.x(start), min(frame.y(count), _BASE - 1.5)  # even the bar of a single item among a million is visible
    width = max(2.0, frame.x(end) - x - 1)
    return _shape("rect", title=title, x=x, y=y, width=width, height=_BASE - y, class_="bar")


def _upright(frame: _Frame, us: int, name: str) -> Shape:
    x = frame.x(us)
    return _shape("line", x1=x, x2=x, y1=_TOP - 4, y2=_BASE, class_=f"line {name}")


def _line(frame: _Frame, stretches: Sequence[Stretch], name: str, *, stretch_us: int) -> Iterable[Shape]:
    """Draws a line through adjacent stretches; a stretch without neighbours is drawn as a point."""
    path, dots, before = "", [], None
    for each in stretches:
        x, y = frame.x(each.from_us + stretch_us / 2), frame.y(_of(each.lag, name))
        path += f"{'L' if before == each.from_us - stretch_us else 'M'}{x:.1f} {y:.1f}"
        dots.append(_shape("circle", cx=x, cy=y, r=2, class_=f"dot {name}"))
        before = each.from_us
    return _shape("path", d=path, class_=f"line {name}"), *dots


def _legend(frame: _Frame) -> Iterable[Shape]:
    for at, name in enumerate(QUANTILES):
        x = frame.width - _RIGHT - 64 * (len(QUANTILES) - at)
        yield _shape("line", x1=x, x2=x + 22, y1=10, y2=10, class_=f"line {name}")
        yield _shape("text", name, x=x + 27, y=14)
