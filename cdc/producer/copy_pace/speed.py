"""Rows and bytes that were copied in; how fast that is, over the last minute, out. Pure but for the time given."""

from typing import NamedTuple

__all__ = ["Copying", "Speed"]

_SECONDS = 60.0
_APART = 1.0  # seconds between two samples


class Copying(NamedTuple):
    """The table that is copied now, with how many ``rows`` of ``estimated`` ones, None where that is not known.

    The speed is 0 where it is not known yet. ``waits_for`` is the follower that has to apply more first.
    """

    table: str
    rows: int
    estimated: int | None
    rows_per_second: float
    bytes_per_second: float
    waits_for: str | None = None

    @property
    def seconds_left(self) -> float | None:
        """For this table; None where that is not known."""
        if self.estimated is None or not self.rows_per_second:
            return None
        return max(0, self.estimated - self.rows) / self.rows_per_second


class Speed:
    """``rows`` and ``size`` are all that were copied, size in bytes. Other threads may ask."""

    def __init__(self, now: float) -> None:
        self.rows = self.size = 0
        self._samples: tuple[tuple[float, int, int], ...] = ((now, 0, 0),)

    def add(self, rows: int, size: int, *, now: float) -> None:
        """So much was copied by ``now``."""
        self.rows += rows
        self.size += size
        if now - self._samples[-1][0] >= _APART:
            recent = [sample for sample in self._samples if sample[0] >= now - _SECONDS]
            self._samples = (*recent, (now, self.rows, self.size))

    def per_second(self, now: float) -> tuple[float, float]:
        """Rows and bytes a second, 0 before that is known."""
        samples = self._samples
        since, rows, size = next((sample for sample in samples if sample[0] >= now - _SECONDS), samples[-1])
        seconds = now - since
        return ((self.rows - rows) / seconds, (self.size - size) / seconds) if seconds >= _APART else (0.0, 0.0)
