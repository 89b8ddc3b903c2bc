"""Converts values of a database to text that is safe to show: visible, short, without control characters. Pure.

Also formats times and durations in µs for the page, the terminal and the sentences of a report.
"""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc.model.values import NULL, display, visible

__all__ = [
    "DAY",
    "HOUR",
    "MINUTE",
    "MS",
    "SECOND",
    "Cut",
    "clock",
    "cut",
    "day",
    "differing",
    "duration",
    "moment",
    "time_of",
    "value_text",
    "visible",
]

MS, SECOND = 1_000, 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
_UNITS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MS, "ms"))


def time_of(us: float) -> datetime:
    """Converts a time in µs since 1970 to a datetime in UTC."""
    # Seconds and µs are converted separately: a float of the seconds since 1970 has too few digits for exact µs.
    return datetime.fromtimestamp(int(us) // SECOND, UTC).replace(microsecond=int(us) % SECOND)


def moment(us: int) -> str:
    """Formats a time in µs since 1970 in UTC, with seconds."""
    return f"{time_of(us):%Y-%m-%d %H:%M:%S} UTC"


def day(us: int) -> str:
    """Formats the day of a time in µs since 1970, in UTC."""
    return f"{time_of(us):%Y-%m-%d}"


def clock(us: int) -> str:
    """Formats a time in µs since 1970 in UTC, with ms."""
    return f"{time_of(us):%Y-%m-%d %H:%M:%S.%f}"[:-3]


def duration(us: float) -> str:
    """Formats a duration in µs with three digits and a unit, such as ``3.2 ms``, ``-1.5 s`` or ``250 µs``."""
    for size, unit in _UNITS:
        if abs(us) >= size:
            return f"{_digits(us / size)} {unit}"
    return f"{us:.0f} µs" if us else "0"


def _digits(number: float) -> str:
    text = f"{number:.{max(0, 2 - math.floor(math.log10(abs(number))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_SHOWN = 160
_AROUND = 24


@dataclass(frozen=True, slots=True)
class Cut:
    """A text in three parts; its ``middle`` differs from the middle of another text.

    ``length`` is the length of the whole text in characters if its parts may be shortened, else None.
    """

    before: str
    middle: str
    after: str
    length: int | None = None


def value_text(text: str | None) -> str:
    """Formats a value of an image for readers; images contain JSON texts, and None for NULL."""
    return visible(display(NULL if text is None else json.loads(text)))


def cut(text: str, length: int = _SHOWN) -> str:
    """Cuts a text after ``length`` characters, and adds the length of the whole text; a shorter text is not changed."""
    return text if len(text) <= length else f"{text[:length]}… ({len(text):,} characters)"


def differing(one: str, other: str) -> tuple[Cut, Cut]:
    """Splits two texts so that their differing parts are in the middle; long texts are shortened around these parts."""
    before = _alike(one, other)
    after = _alike(one[before:][::-1], other[before:][::-1])
    first, second = (_around(text, before, len(text) - after) for text in (one, other))
    return first, second


def _alike(one: str, other: str) -> int:
    """Returns the length of the beginning that both texts share, in characters."""
    at = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        at += 1
    return at


def _around(text: str, start: int, end: int) -> Cut:
    """Splits ``text`` so that the part from ``start`` to ``end`` is in the middle."""
    before, middle, after = text[:start], text[start:end], text[end:]
    if len(text) <= _SHOWN:
        return Cut(before, middle, after)
    if len(before) > _AROUND:
        before = "…" + before[-_AROUND:]
    if len(middle) > _SHOWN:
        middle, after = middle[:_SHOWN] + "…", ""
    if len(after) > _AROUND:
        after = after[:_AROUND] + "…"
    return Cut(before, middle, after, len(text))
