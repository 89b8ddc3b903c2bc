"""Writes rows as the comma-separated literals between the parentheses of an INSERT. This is the consumer's hottest
path.

Function calls are most of the cost in Python. The values of a column nearly always have the same type (the tag of a
value in a record). So rows are transposed to columns, and a column of a frequent type is rendered by one loop, without
a function call for each value.

Such a loop returns the same texts as ``literal``, or raises an error. After an error, ``literal`` renders the column
value by value, and raises its own error for an invalid value. So a loop must raise an error for a value of any other
type, as ``int.__repr__``, ``join`` and the tables of numbers do: SQL may contain the text of a value only in quotes, or
as a checked number.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import compress, count, repeat
from operator import itemgetter, ne
from typing import Any

from cdc.consumer.literals.scalars import timestamp_text
from cdc.consumer.literals.values import literal, quoted
from cdc.model.values import NULL, Value

__all__ = ["Tags", "row_texts", "tagged_row_texts"]

# Looking a number's text up in a table is twice as fast as formatting it. Numbers outside of the tables are rendered by
# ``literal``.
_TWO = {number: f"{number:02d}" for number in range(100)}
_THREE = {number: f"{number:03d}" for number in range(1000)}
_FOUR = {number: f"{number:04d}" for number in range(10_000)}
_BLOCK = 500  # rows to render at a time; few enough for the processor's cache

_Image = Sequence[Value]
# The types of a column's values (tags in records), including NULL. "" stands for values of any type that were rendered
# one by one.
Tags = frozenset[str]


def row_texts(images: Sequence[_Image], indexes: Sequence[int]) -> list[str]:
    """Returns, for each row, the literals of its values at ``indexes``, joined by commas.

    Raises ValueError for an invalid value.
    """
    return tagged_row_texts(images, indexes)[0]


def tagged_row_texts(images: Sequence[_Image], indexes: Sequence[int]) -> tuple[list[str], list[Tags]]:
    """Returns the result of ``row_texts``, and the tags of the values at each index."""
    texts: list[str] = []
    tags: list[Tags] = [frozenset()] * len(indexes)
    for first in range(0, len(images), _BLOCK):
        columns = _block(images[first : first + _BLOCK], indexes)
        tags = [known | found for known, (_, found) in zip(tags, columns, strict=True)]
        texts += map(",".join, zip(*[literals for literals, _ in columns], strict=True))
    return (texts if indexes else [""] * len(images)), tags


def _block(images: Sequence[_Image], indexes: Sequence[int]) -> list[tuple[list[str], Tags]]:
    columns = list(zip(*images, strict=True))
    return [_literals(columns[index]) for index in indexes]


def _literals(column: Sequence[Value]) -> tuple[list[str], Tags]:
    sample = next((value for value in column if value != NULL), NULL)
    tag = next(iter(sample), "") if isinstance(sample, dict) else ""
    if tag in _COLUMNS:
        # After an error, ``literal`` renders the values one by one below, and raises an error for an invalid value.
        with suppress(AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError):
            return _column_literals(column, tag)
    return [literal(value) for value in column], frozenset([NULL if sample == NULL else ""])


def _column_literals(column: Sequence[Value], tag: str) -> tuple[list[str], Tags]:
    """Returns the literals of a column in which each value has the type ``tag``, such as Decimal, or is NULL. Raises an
    error for any other value.
    """
    texts = _COLUMNS[tag]
    try:
        return texts(list(map(itemgetter(tag), column))), frozenset([tag])
    except TypeError:
        found = [literal(NULL)] * len(column)
        indexes = list(compress(count(), map(ne, column, repeat(NULL))))
        for index, text in zip(indexes, texts([column[index][tag] for index in indexes]), strict=True):
            found[index] = text
        return found, frozenset([tag, NULL])


def _integers(contents: list[int]) -> list[str]:
    return list(map(int.__repr__, contents))


def _strings(contents: list[str]) -> list[str]:
    text = "".join(contents)
    if "'" in text or "\\" in text:
        return [quoted(content) for content in contents]
    return [f"'{content}'" for content in contents]


# The expression has no possessive quantifiers, because with them Python 3.11.2 matches an empty text.
_NUMBER = r"-?\d+(?:\.\d+)?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\n{_NUMBER})*", re.ASCII)


def _decimals(contents: list[str]) -> list[str]:
    """Returns the contents if all are decimals, otherwise raises ValueError. All are checked at once, as the lines of
    one text; a content with a line break would change the number of lines.
    """
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
