"""Writes SQL for columns FLOAT(M,D) and DOUBLE(M,D): the condition that finds a number, and a derived table from which
numbers are copied.

The server rounds a literal or computed value for such a column to D digits, but does not round a value that it copies
from another column. So a value on the leader may have more digits than the follower would store from a literal, or be
larger than M digits allow. A search in an index does not find such a value by its literal, since the server rounds the
literal first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdc.consumer.literals.scalars import SCALARS
from cdc.model.values import Value

__all__ = ["NONE_ROUNDED", "Rounded", "found_rounded", "number_table", "to_copy"]

_FLOATS = ("Float", "Double")


@dataclass(frozen=True, slots=True)
class Rounded:
    """The type of such a column. ``type`` is its name without the digits ("FLOAT UNSIGNED"), ``digits`` is M, and
    ``decimals`` is D.
    """

    type: str
    digits: int
    decimals: int


NONE_ROUNDED: Mapping[str, Rounded] = {}


def to_copy(value: Value) -> str | None:
    """Returns the literal of a floating-point number; None for any other value. Raises ValueError for an invalid
    number.
    """
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
    """Writes the condition that the column ``name`` equals the number of this literal; the server can use an index for
    it.

    For the index, the condition contains a range. The range includes the number even after the server has rounded the
    ends of the range. The range is left out if one of its ends is too large for the column, because the server would
    then find nothing.
    """
    unit = 10.0**-column.decimals
    exactly, value = f"{name}+0e0={number}", float(number)
    if abs(value) + 3 * unit >= 10.0 ** (column.digits - column.decimals):
        return exactly
    first, last = (SCALARS["Double"](value + 2 * width) for width in (-unit, unit))
    return f"{name} BETWEEN {first} AND {last} AND {exactly}"


def number_table(numbers: Sequence[tuple[Rounded, str]], *, prefix: str) -> str:
    """Writes SQL for a table of one row that contains these numbers (literals) in columns of these types. The columns
    are named ``prefix`` plus a number, beginning with 0.
    """
    columns = [
        f"{prefix}{index} {column.type} PATH '$[{index}]' ERROR ON EMPTY ERROR ON ERROR"
        for index, (column, _) in enumerate(numbers)
    ]
    return f"JSON_TABLE(JSON_ARRAY({','.join(text for _, text in numbers)}),'$' COLUMNS ({','.join(columns)}))"
