"""Writes values of records as SQL literals, names as identifiers, and conditions that find a row by its key, or by all
its values if it has no key.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cdc.consumer.literals.json_documents import document, same_document, typed_document
from cdc.consumer.literals.scalars import SCALARS, from_base64, hexadecimal, quoted
from cdc.model.record import Record, Uri
from cdc.model.values import NULL, Value

__all__ = [
    "DEFAULT",
    "NONE_ROUNDED",
    "Rounded",
    "equal",
    "exact",
    "found_rounded",
    "identifier",
    "is_document",
    "key_indexes",
    "literal",
    "matcher",
    "number_table",
    "quoted",
    "seconds",
    "table_name",
    "to_copy",
]

# Writes SQL for columns FLOAT(M,D) and DOUBLE(M,D): the condition that finds a number, and a derived table from which
# numbers are copied.
#
# The server rounds a literal or computed value for such a column to D digits, but does not round a value that it copies
# from another column. So a value on the leader may have more digits than the follower would store from a literal, or be
# larger than M digits allow. A search in an index does not find such a value by its literal, since the server rounds
# the literal first.

_FLOATS = ("Float", "Double")


@dataclass(frozen=True, slots=True)
class Rounded:
    """The type of a column FLOAT(M,D) or DOUBLE(M,D). ``type`` is its name without the digits ("FLOAT UNSIGNED"),
    ``digits`` is M, and ``decimals`` is D.
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
        raise ValueError(f"a record has no such number: {error}") from None


def found_rounded(name: str, number: str, column: Rounded) -> str:
    """Returns the condition that the column ``name`` equals the number of this literal; the server can use an index for
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
    """Returns SQL for a table of one row that contains these numbers (literals) in columns of these types. The columns
    are named ``prefix`` plus a number, beginning with 0.
    """
    columns = [
        f"{prefix}{index} {column.type} PATH '$[{index}]' ERROR ON EMPTY ERROR ON ERROR"
        for index, (column, _) in enumerate(numbers)
    ]
    return f"JSON_TABLE(JSON_ARRAY({','.join(text for _, text in numbers)}),'$' COLUMNS ({','.join(columns)}))"


_DOCUMENTS = frozenset({"Json", "JsonTyped"})
_LITERALS = SCALARS | {"Json": document, "JsonTyped": typed_document}
# An ENUM may have the member '', and the text of its error value is '', too. Only the numbers differ: the error value
# has the number 0.
_EMPTY_MEMBER: Value = {"Enum": ""}
# The default of a column. It is not a value of a record, and is recognised by its identity.
DEFAULT: Value = {"Default": None}
_SIGN = 1 << 63  # in comparisons, a SET value that contains the 64th member is negative


def identifier(name: str) -> str:
    """Quotes the name of a database, table or column."""
    return "`" + name.replace("`", "``") + "`"


def table_name(uri: Uri) -> str:
    """Returns the qualified, quoted name of the table in a URI."""
    return f"{identifier(uri.database)}.{identifier(uri.table or '')}"


def seconds(microseconds: int) -> str:
    """Writes microseconds since 1970 as a value of the session variable ``timestamp``, in seconds."""
    whole, part = divmod(int(microseconds), 1_000_000)
    return f"{whole}.{part:06d}"


def literal(value: Value) -> str:
    """Returns the literal that stores exactly this value. Raises ValueError for an invalid value."""
    if value == NULL:
        return "NULL"
    if value is DEFAULT:
        return "DEFAULT"
    try:
        ((tag, content),) = value.items()
        return _LITERALS[tag](content)
    except (AttributeError, KeyError, OSError, OverflowError, TypeError) as error:
        # OSError and OverflowError mean that a time is out of range.
        raise ValueError(f"not a value of a record ({type(error).__name__}: {error}): {str(value)[:80]}") from None


def equal(column: str, value: Value, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> str:
    """Returns the condition that a column of a key equals ``value``. It compares in the column's own collation, so that
    the server can use an index.

    ``rounded`` contains the columns FLOAT(M,D) and DOUBLE(M,D) of the table.
    """
    name = identifier(column)
    if value == NULL:
        return f"{name} IS NULL"
    if column in rounded and (number := to_copy(value)) is not None:
        return found_rounded(name, number, rounded[column])
    if value == _EMPTY_MEMBER:
        return f"{name}='' AND {name}+0<>0"
    mask = value.get("Set", 0) if isinstance(value, dict) else 0
    if isinstance(mask, int) and mask >= _SIGN:
        return f"{name}={mask - 2 * _SIGN}"
    return f"{name}={literal(value)}"


def exact(column: str, value: Value) -> str:
    """Returns the condition that a column has exactly this value, not only an equal value.

    The condition begins with a plain equality if the server may use an index for it.
    """
    name = identifier(column)
    if value == NULL:
        return f"{name} IS NULL"
    text = literal(value)
    ((tag, content),) = value.items()
    if tag == "String":
        # Different texts can be equal in a collation, so their bytes are compared, in the same character set.
        return f"{name}={text} AND CAST(CONVERT({name} USING utf8mb4) AS BINARY)={hexadecimal(content.encode())}"
    if tag == "Text":
        return f"{name}={text} AND CAST({name} AS BINARY)={from_base64(content['base64'])}"
    if tag in ("Float", "Double"):
        # The server compares a column FLOAT(m,d) by its decimal digits, but a sum as a double; so 0 is added to the
        # column. 0.0 and -0.0 are equal numbers, so the sign of a zero is compared as text.
        sign = f" AND LEFT(CAST({name} AS CHAR),1){_minus(content)}'-'" if content == 0 else ""
        return f"{name}+0e0={text}{sign}"
    if tag in _DOCUMENTS:
        return same_document(name, text)
    if tag == "Vector":
        return f"HEX({name})=HEX({text})"  # there is no equality operator for vectors
    return equal(column, value)


def is_document(value: Value) -> bool:
    """Whether the value is a JSON document."""
    return isinstance(value, dict) and not value.keys().isdisjoint(_DOCUMENTS)


def _minus(content: float) -> str:
    return "=" if str(float(content)).startswith("-") else "<>"


def matcher(record: Record, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Callable[[list[Value]], str]:
    """Returns a function that writes a condition. The condition finds the row with the given before-image: by its key,
    or by all its exact values if the table has no key.
    """
    if record.key is not None:
        key = [(index, record.columns[index]) for index in key_indexes(record)]
        return lambda image: " AND ".join([equal(column, image[index], rounded) for index, column in key])
    columns = record.columns
    return lambda image: " AND ".join(map(exact, columns, image)) + " LIMIT 1"


def key_indexes(record: Record) -> list[int]:
    """Returns the indexes of the key's columns in the record's images."""
    return [record.columns.index(column) for column in record.key or ()]
