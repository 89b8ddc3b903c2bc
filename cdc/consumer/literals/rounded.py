"""Finds numbers in columns FLOAT(M,D) and DOUBLE(M,D), and writes a table of numbers from which such columns are
copied.

The server rounds a computed value for such a column to D digits, but not a value that it copies from another column. So
a value of the leader may have more digits than a literal stores on the follower, or be larger than M digits allow; and
a search with a literal in an index does not find it, since the literal is rounded before the search.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc.consumer.literals.scalars import SCALARS
from cdc.model.values import Value

__all__ = ["NONE_ROUNDED", "Rounded", "found_rounded", "number_table", "to_copy"]

_FLOATS = ("Float", "Double")


@dataclass(frozen=True, slots=True)
class Rounded:
    """A column's ``type`` without digits ("FLOAT UNSIGNED"), and its numbers of ``digits`` and of ``decimals``."""

    type: str
    digits: int
    decimals: int


NONE_ROUNDED: Mapping[str, Rounded] = {}


def to_copy(value: Value) -> str | None:
    """The literal of a floating-point number; None for any other value. Raises ValueError for an invalid number."""
    if isinstance(value, dict):
        for tag in _FLOATS:
            if tag in value:
                return _number(value[tag])
    return None


def _number(content: object) -> str:
    try:
        return SCALARS["Double"](content)
    except (OverflowError, TypeError) as error:
        raise ValueError(f"not a number of a record: {error}") from None


def found_rounded(name: str, number: str, column: Rounded) -> str:
    """The condition that the column ``name`` equals the number of this literal; an index can be used.

    The range is wide enough to contain the number after its ends are rounded. If the column can't contain an end of the
    range, the server would find nothing.
    """
    unit = 10.0**-column.decimals
    exactly, value = f"{name}+0e0={number}", float(number)
    if abs(value) + 3 * unit >= 10.0 ** (column.digits - column.decimals):
        return exactly
    first, last = (SCALARS["Double"](value + 2 * width) for width in (-unit, unit))
    return f"{name} BETWEEN {first} AND {last} AND {exactly}"


def number_table(numbers: Sequence[tuple[Rounded, str]], *, prefix: str) -> str:
    """SQL for a table of one row, which contains these literals in columns of these types; the columns are called
    ``prefix`` and a number from 0.
    """
    columns = [
        f"{prefix}{index} {column.type} PATH '$[{index}]' ERROR ON EMPTY ERROR ON ERROR"
        for index, (column, _) in enumerate(numbers)
    ]
    return f"JSON_TABLE(JSON_ARRAY({','.join(text for _, text in numbers)}),'$' COLUMNS ({','.join(columns)}))"
