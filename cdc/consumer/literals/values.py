"""Writes a record's values as SQL literals, names as identifiers, and both as conditions that find a row by its key, or
by all its values if it has no key.
"""

from collections.abc import Callable, Mapping

from cdc.consumer.literals.json_documents import document, same_document, typed_document
from cdc.consumer.literals.rounded import NONE_ROUNDED, Rounded, found_rounded, to_copy
from cdc.consumer.literals.scalars import SCALARS, from_base64, hexadecimal, quoted
from cdc.model.record import Record, Uri
from cdc.model.values import NULL, Value

__all__ = [
    "DEFAULT",
    "equal",
    "exact",
    "identifier",
    "is_document",
    "key_indexes",
    "literal",
    "matcher",
    "quoted",
    "seconds",
    "table_name",
]

_DOCUMENTS = frozenset({"Json", "JsonTyped"})
_LITERALS = SCALARS | {"Json": document, "JsonTyped": typed_document}
# An ENUM's error value, number 0, has the text '', which a member may have, too; only the numbers differ.
_EMPTY_MEMBER: Value = {"Enum": ""}
# A column's default. It is no value of a record, and is recognised by its identity.
DEFAULT: Value = {"Default": None}
_SIGN = 1 << 63  # a SET with its 64th member compares as a negative number


def identifier(name: str) -> str:
    """A database, table or column name, quoted."""
    return "`" + name.replace("`", "``") + "`"


def table_name(uri: Uri) -> str:
    """The full quoted name of the table in a record's URI."""
    return f"{identifier(uri.database)}.{identifier(uri.table or '')}"


def seconds(microseconds: int) -> str:
    """Microseconds since 1970 as a value of the session variable ``timestamp``, which is in seconds."""
    whole, part = divmod(int(microseconds), 1_000_000)
    return f"{whole}.{part:06d}"


def literal(value: Value) -> str:
    """The literal that stores exactly this value. Raises ValueError for an invalid value."""
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
    """The condition that a column of a key equals ``value``, in the key's own collation so that an index can be used.

    ``rounded`` are the table's columns FLOAT(M,D) and DOUBLE(M,D).
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
    """The condition that holds for exactly this value, not for other values that compare as equal to it.

    Plain equality comes first if an index may help.
    """
    name = identifier(column)
    if value == NULL:
        return f"{name} IS NULL"
    text = literal(value)
    ((tag, content),) = value.items()
    if tag == "String":
        # In a collation different texts can be equal, so bytes are compared, in one character set for both sides.
        return f"{name}={text} AND CAST(CONVERT({name} USING utf8mb4) AS BINARY)={hexadecimal(content.encode())}"
    if tag == "Text":
        return f"{name}={text} AND CAST({name} AS BINARY)={from_base64(content['base64'])}"
    if tag in ("Float", "Double"):
        # A column FLOAT(m,d) is compared by its decimal digits, a sum is compared as a double. Zeros are equal; only
        # their texts show the sign.
        sign = f" AND LEFT(CAST({name} AS CHAR),1){_minus(content)}'-'" if content == 0 else ""
        return f"{name}+0e0={text}{sign}"
    if tag in _DOCUMENTS:
        return same_document(name, text)
    if tag == "Vector":
        return f"HEX({name})=HEX({text})"  # vectors have no equality operator
    return equal(column, value)


def is_document(value: Value) -> bool:
    """Whether the value is a JSON document."""
    return isinstance(value, dict) and not value.keys().isdisjoint(_DOCUMENTS)


def _minus(content: float) -> str:
    return "=" if str(float(content)).startswith("-") else "<>"


def matcher(record: Record, rounded: Mapping[str, Rounded] = NONE_ROUNDED) -> Callable[[list[Value]], str]:
    """Returns a function from a before-image to the condition that finds its row: by the key, or by all exact values if
    the table has no key.
    """
    if record.key is not None:
        key = [(index, record.columns[index]) for index in key_indexes(record)]
        return lambda image: " AND ".join([equal(column, image[index], rounded) for index, column in key])
    columns = record.columns
    return lambda image: " AND ".join(map(exact, columns, image)) + " LIMIT 1"


def key_indexes(record: Record) -> list[int]:
    """The indexes of the key's columns in the record's images."""
    return [record.columns.index(column) for column in record.key or ()]
