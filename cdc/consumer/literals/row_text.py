"""Rows as the texts between an INSERT's parentheses: the hottest path of the consumer. Pure.

What ``literal`` finds out of each value anew, its tag, is mostly the same down a column. So rows are turned into
columns, and a column whose tag is a common one is made into literals as a whole, by a loop that does nothing else:
most of what a value costs in Python is the call of a function for it.

Such a loop either makes what ``literal`` makes of each content, or raises. Then ``literal`` makes the column's texts
value by value and has the last word on what is refused, and why. So contents of any other type must raise, which is
what ``int.__repr__``, ``join`` and the tables of numbers do, and no text gets into SQL but quoted or as a number.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import compress, count, repeat
from operator import itemgetter, ne
from typing import Any

from cdc.consumer.literals.timestamps import timestamp_text
from cdc.consumer.literals.values import literal, quoted
from cdc.model.values import NULL, Value

__all__ = ["row_texts"]

# Looking a number's text up takes half the time of formatting it. A number that is not here is left to ``literal``.
_TWO = {number: f"{number:02d}" for number in range(100)}
_THREE = {number: f"{number:03d}" for number in range(1000)}
_FOUR = {number: f"{number:04d}" for number in range(10_000)}
_BLOCK = 500  # rows at a time, which stay in the processor's cache

_Image = Sequence[Value]


def row_texts(images: Sequence[_Image], places: Sequence[int]) -> list[str]:
    """Of each row the literals of its values at ``places``, joined by commas.

    Raises ValueError for what is not a value of a record.
    """
    texts: list[str] = []
    for first in range(0, len(images), _BLOCK):
        texts += _block(images[first : first + _BLOCK], places)
    return texts


def _block(images: Sequence[_Image], places: Sequence[int]) -> Iterable[str]:
    if not places:
        return [""] * len(images)
    columns = list(zip(*images, strict=True))
    return map(",".join, zip(*[_literals(columns[place]) for place in places], strict=True))


def _literals(column: Sequence[Value]) -> list[str]:
    sample = next((value for value in column if value != NULL), NULL)
    tag = next(iter(sample), "") if isinstance(sample, dict) else ""
    if tag in _COLUMNS:
        # Which value is not like the others, and whether it is one all the same, shows below.
        with suppress(AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError):
            return _alike(column, tag)
    return [literal(value) for value in column]


def _alike(column: Sequence[Value], tag: str) -> list[str]:
    """The literals of a column of values with this tag and NULLs. Raises where there is another."""
    texts = _COLUMNS[tag]
    try:
        return texts(list(map(itemgetter(tag), column)))
    except TypeError:
        found = [literal(NULL)] * len(column)
        places = list(compress(count(), map(ne, column, repeat(NULL))))
        for place, text in zip(places, texts([column[place][tag] for place in places]), strict=True):
            found[place] = text
        return found


def _integers(contents: list[int]) -> list[str]:
    return list(map(int.__repr__, contents))


def _strings(contents: list[str]) -> list[str]:
    text = "".join(contents)
    if "'" in text or "\\" in text:
        return [quoted(content) for content in contents]
    return [f"'{content}'" for content in contents]


# Not with possessive quantifiers: by those Python 3.11.2 takes an empty text for a number.
_NUMBER = r"-?\d+(?:\.\d+)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\n{_NUMBER})*", re.ASCII)


def _decimals(contents: list[str]) -> list[str]:
    """All looked at in one go, as lines of one text; one that has lines itself makes them too many."""
    lines = "\n".join(contents)
    if lines.count("\n") != len(contents) - 1 or not _NUMBERS.fullmatch(lines):
        raise ValueError("not all are decimals")
    return contents


_DATE_PARTS = itemgetter("year", "month", "day")
_PARTS = itemgetter("year", "month", "day", "hour", "minute", "second", "subsecond")
_INSTANT_PARTS = itemgetter("unix_time", "subsecond")


def _dates(contents: list[dict[str, int]]) -> list[str]:
    return [f"'{_FOUR[year]}-{_TWO[month]}-{_TWO[day]}'" for year, month, day in map(_DATE_PARTS, contents)]


def _datetimes(contents: list[dict[str, int]]) -> list[str]:
    two, three, four = _TWO, _THREE, _FOUR
    return [
        f"'{four[year]}-{two[month]}-{two[day]} {two[hour]}:{two[minute]}:{two[second]}"
        f".{three[micros // 1000]}{three[micros % 1000]}'"
        if micros
        else f"'{four[year]}-{two[month]}-{two[day]} {two[hour]}:{two[minute]}:{two[second]}'"
        for year, month, day, hour, minute, second, micros in map(_PARTS, contents)
    ]


def _timestamps(contents: list[dict[str, int]]) -> list[str]:
    texts = []
    for unix_time, micros in map(_INSTANT_PARTS, contents):
        fraction = f".{_THREE[micros // 1000]}{_THREE[micros % 1000]}" if micros and unix_time else ""
        texts.append(f"'{timestamp_text(unix_time)}{fraction}'")
    return texts


_COLUMNS: dict[str, Callable[[list[Any]], list[str]]] = {
    "SignedInteger": _integers,
    "UnsignedInteger": _integers,
    "Bit": _integers,
    "Year": _integers,
    "Decimal": _decimals,
    "String": _strings,
    "Enum": _strings,
    "Date": _dates,
    "DateTime": _datetimes,
    "Timestamp": _timestamps,
}
