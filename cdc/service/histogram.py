"""Counts durations in the buckets of a Prometheus histogram; called once per batch."""

from bisect import bisect_left
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString

__all__ = ["Histogram"]

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
