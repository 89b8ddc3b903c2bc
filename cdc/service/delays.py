"""Measures delays: counts durations in the buckets of a Prometheus histogram, and computes an upper bound for the delay
of a reader.
"""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

__all__ = ["Behind", "Histogram"]

# The buckets in seconds: the first fits a commit on an idle machine, the last a follower that was away for a day.
_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0,
           86_400.0)  # fmt: skip
_NAMES = (*map(floatToGoString, _BOUNDS), "+Inf")


class Histogram:
    """A histogram of durations in seconds. One thread adds durations; other threads may read the histogram at any
    moment, without a lock.
    """

    def __init__(self) -> None:
        self._counts = [0] * len(_NAMES)
        self.seconds = 0.0

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self._counts)

    def observe(self, seconds: float) -> None:
        """Adds a duration. A bucket contains its own bound, as Prometheus defines it (``le``)."""
        self._counts[bisect_left(_BOUNDS, seconds)] += 1
        self.seconds += seconds

    def metric(self, name: str, what: str) -> HistogramMetricFamily:
        """Returns the metric of this ``name``; its samples are ``…_bucket``, ``…_count`` and ``…_sum``."""
        # The count is taken from the last bucket, so that the two agree even if another thread adds a duration in
        # between.
        buckets = list(zip(_NAMES, map(float, accumulate(self._counts.copy())), strict=True))
        return HistogramMetricFamily(name, what, buckets=buckets, sum_value=self.seconds)


# Computes an upper bound for the delay of a reader, without a request to the server from which it reads.


@dataclass(slots=True)
class Behind:
    """The delay of a reader. ``through_us`` is the leader's commit time of the newest finished transaction, in µs since
    1970.

    ``drained_at`` (``time.monotonic()``) is the last time at which the source was empty and the reader had finished all
    items from it. The reader polls an empty source again at least every ``look_seconds``.
    """

    look_seconds: float
    through_us: int | None = None
    drained_at: float | None = None

    def drained(self, *, monotonic: float) -> bool:
        """Whether the last poll of the source, at most ``look_seconds`` ago, found nothing more."""
        return self.drained_at is not None and monotonic - self.drained_at <= self.look_seconds

    def seconds(self, *, wall: float, monotonic: float) -> float | None:
        """Returns an upper bound for the time that any change of the leader has been waiting, in seconds; None if
        nothing is known yet.

        The result is 0.0 while the source is empty. Otherwise two bounds hold, and the smaller one is returned: a
        waiting change is younger than the newest finished change, and it arrived after the source was last empty.
        ``wall`` is ``time.time()``, which is compared with the leader's clock.
        """
        if self.drained(monotonic=monotonic):
            return 0.0
        bounds: list[float] = []
        if self.drained_at is not None:
            bounds.append(monotonic - self.drained_at)
        if self.through_us is not None:
            # The leader's clock may be ahead, so a commit time in the future counts as now.
            bounds.append(max(0.0, wall - self.through_us / 1_000_000))
        return min(bounds, default=None)
