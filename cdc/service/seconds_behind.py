"""Computes an upper bound for the delay of a reader, without a request to the server from which it reads."""

from dataclasses import dataclass

__all__ = ["Behind"]


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
