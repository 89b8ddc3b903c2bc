"""Formats times and durations in µs for the page, the terminal and the sentences of a report. Pure."""

import math
from datetime import UTC, datetime

__all__ = ["DAY", "HOUR", "MINUTE", "MS", "SECOND", "clock", "day", "duration", "moment", "time_of"]

MS, SECOND = 1_000, 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MS, "ms"))


def time_of(us: float) -> datetime:
    """A time in µs since 1970 in UTC."""
    # Seconds and µs separately: a float of the seconds since 1970 has too few digits for exact µs.
    return datetime.fromtimestamp(int(us) // SECOND, UTC).replace(microsecond=int(us) % SECOND)


def moment(us: int) -> str:
    """A time in µs since 1970 in UTC, to the second."""
    return f"{time_of(us):%Y-%m-%d %H:%M:%S} UTC"


def day(us: int) -> str:
    """The day of a time in µs since 1970, in UTC."""
    return f"{time_of(us):%Y-%m-%d}"


def clock(us: int) -> str:
    """A time in µs since 1970 in UTC, to the ms."""
    return f"{time_of(us):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def duration(us: float) -> str:
    """A duration in µs with three digits and a unit: ``3.2 ms``, ``-1.5 s``, ``250 µs``."""
    for size, unit in _UNITS:
        if abs(us) >= size:
            return f"{_digits(us / size)} {unit}"
    return f"{us:.0f} µs" if us else "0"


def _digits(number: float) -> str:
    text = f"{number:.{max(0, 2 - math.floor(math.log10(abs(number))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
