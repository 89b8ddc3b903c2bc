"""Formats numbers, durations, sizes and times for display; an unknown value is a dash. Pure."""

from datetime import UTC, datetime

__all__ = ["clock", "count", "duration", "moment", "of_rows", "rate", "size"]

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
_THOUSAND = 1000


def count(value: float | None) -> str:
    """Formats a whole number with separators."""
    return "–" if value is None else f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Formats a rate in records per second."""
    if value is None:
        return "–"
    return f"{value:,.1f}/s" if 0 < value < 10 else f"{value:,.0f}/s"


def duration(seconds: float | None) -> str:
    """Formats a duration in one or two units."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s" if seconds else "0 s"
    whole = round(seconds)
    for unit, length, part, part_length in (("d", 86_400, "h", 3_600), ("h", 3_600, "min", 60), ("min", 60, "s", 1)):
        if whole >= length:
            rest = whole % length // part_length
            return f"{whole // length:,} {unit} {rest} {part}" if rest else f"{whole // length:,} {unit}"
    return f"{whole} s"


def size(value: float | None) -> str:
    """Formats a number of bytes."""
    if value is None:
        return "–"
    for unit in _UNITS[:-1]:
        if value < _THOUSAND:
            return f"{value:,.0f} {unit}" if unit == _UNITS[0] else f"{value:,.1f} {unit}"
        value /= _THOUSAND
    return f"{value:,.1f} {_UNITS[-1]}"


def moment(seconds: float | None) -> str:
    """Formats a time, given in seconds since 1970, in UTC."""
    return "–" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(seconds: float) -> str:
    """Formats a time, given in seconds since 1970, in UTC with milliseconds."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def of_rows(done: int, estimated: float | None) -> str:
    """Formats the progress of a copy, in rows."""
    return f"{done:,} of about {estimated:,.0f} rows" if estimated else f"{done:,} rows"
