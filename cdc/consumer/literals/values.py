"""Writes values of records as SQL literals, names as identifiers, and conditions that find a row by its key, or by all
its values if it has no key.
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
    """Writes the literal that stores exactly this value. Raises ValueError for an invalid value."""
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
    """Writes the condition that a column of a key equals ``value``. It compares in the column's own collation, so that
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
    """Writes the condition that a column has exactly this value, not only an equal value.

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
