"""Computes the lines of the plots of the last hour. The SVG of a plot contains no text: its texts are HTML, so that
they stay readable on a narrow screen.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from cdc.web.overview.answers import Sample
from cdc.web.overview.figures import count, duration, rate

__all__ = ["HEIGHT", "HOUR", "WIDTH", "Plot", "Series", "plots"]

WIDTH, HEIGHT = 600, 120
HOUR = 3600.0  # the number of seconds that a plot covers
_BUCKETS = 180
_STEPS = (1, 2, 5, 10)

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Series:
    """A line. ``newest`` is its newest value as text, ``paths`` are the SVG path data of its parts without gaps."""

    name: str
    newest: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot of several lines over the last hour. ``top`` is the value at the upper edge, as text."""

    title: str
    top: str
    series: tuple[Series, ...]


def plots(samples: Sequence[Sample], *, now: float, followers: Iterable[str] = ()) -> list[Plot]:
    """Computes the plots of a stream: throughput, waiting records, and delay in seconds.

    The named ``followers`` have a line in each legend even before their first figures arrive; otherwise the page's
    layout would change then.
    """
    names = list(dict.fromkeys([*followers, *(name for each in samples for name in each.applied)]))
    rates = {"into Kafka": _rates(samples, lambda each: each.written)}
    rates |= {f"onto {name}": _rates(samples, partial(_applied, name)) for name in names}
    waiting = {name: _waiting(samples, name) for name in names}
    late = {name: [(each.at, each.late[name]) for each in samples if name in each.late] for name in names}
    return [
        _plot("Records a second", rates, now=now, text=rate, most=False),
        _plot("Records waiting for a follower", waiting, now=now, text=count, most=True),
        _plot("Delay on the way to a follower", late, now=now, text=duration, most=True),
    ]


def _applied(name: str, sample: Sample) -> int | None:
    return sample.applied.get(name)


def _rates(samples: Sequence[Sample], value: Callable[[Sample], int | None]) -> list[Point]:
    known = [(each.at, found) for each in samples if (found := value(each)) is not None]
    return [(at, max(0.0, (new - old) / (at - before))) for (before, old), (at, new) in pairwise(known) if at > before]


def _waiting(samples: Sequence[Sample], name: str) -> list[Point]:
    return [
        (each.at, float(max(0, each.written - 1 - each.applied[name])))
        for each in samples
        if each.written is not None and name in each.applied
    ]


def _plot(
    title: str, lines: dict[str, list[Point]], *, now: float, text: Callable[[float | None], str], most: bool
) -> Plot:
    """Computes a plot. An hour is divided into _BUCKETS buckets; if several points fall into one bucket, the plot shows
    their maximum if ``most`` is true, else their mean.
    """
    drawn = {name: _thinned(points, now=now, most=most) for name, points in lines.items()}
    top = _top(value for points in drawn.values() for _, value in points)
    series = (
        Series(name, text(lines[name][-1][1]) if lines[name] else "–", tuple(_paths(points, top)))
        for name, points in drawn.items()
    )
    return Plot(title, text(top), tuple(series))


def _thinned(points: Sequence[Point], *, now: float, most: bool) -> list[Point]:
    """Computes at most one point for each bucket of the hour. A point consists of the bucket's number and the value."""
    buckets: dict[int, list[float]] = {}
    for at, value in points:
        place = math.floor((at - now + HOUR) / HOUR * _BUCKETS)
        if 0 <= place <= _BUCKETS:
            buckets.setdefault(place, []).append(value)
    return [(place, max(found) if most else sum(found) / len(found)) for place, found in sorted(buckets.items())]


def _top(values: Iterable[float]) -> float:
    """Chooses the value at the upper edge: 1, 2 or 5 times a power of ten."""
    largest = max(values, default=0.0)
    if largest <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(step * power for step in _STEPS if step * power >= largest)


def _paths(points: Sequence[Point], top: float) -> Iterable[str]:
    """Yields a path for each run of points that has gaps of at most one empty bucket."""
    run: list[Point] = []
    for point in points:
        if run and point[0] - run[-1][0] > 2:
            yield _path(run, top)
            run = []
        run.append(point)
    if run:
        yield _path(run, top)


def _path(run: Sequence[Point], top: float) -> str:
    places = [(x / _BUCKETS * WIDTH, HEIGHT - min(value / top, 1) * (HEIGHT - 4) - 2) for x, value in run]
    if len(places) == 1:
        places.append((places[0][0] + 1, places[0][1]))  # browsers do not draw a path of a single point
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
