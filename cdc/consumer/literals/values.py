"""Values of a record as SQL literals, names as SQL identifiers, and the conditions that find a value again."""

from cdc.consumer.literals.json_documents import document, same_document, typed_document
from cdc.consumer.literals.scalars import SCALARS, from_base64, hexadecimal, quoted
from cdc.model.record import Uri
from cdc.model.values import NULL, Value

__all__ = ["equal", "exact", "identifier", "literal", "quoted", "seconds", "table_name"]

_LITERALS = SCALARS | {"Json": document, "JsonTyped": typed_document}
# The error value of an ENUM, its number 0, reads as '' like a member '' does; only their numbers differ.
_EMPTY_MEMBER: Value = {"Enum": ""}
_SIGN = 1 << 63  # a SET with its 64th member is a negative number where it is compared


def identifier(name: str) -> str:
    """A database, table or column name, quoted."""
    return "`" + name.replace("`", "``") + "`"


def table_name(uri: Uri) -> str:
    """The full quoted name of the table that a record's URI names."""
    return f"{identifier(uri.database)}.{identifier(uri.table or '')}"


def seconds(microseconds: int) -> str:
    """A time since 1970, as the variable ``timestamp`` takes it."""
    whole, part = divmod(int(microseconds), 1_000_000)
    return f"{whole}.{part:06d}"


def literal(value: Value) -> str:
    """The literal that stores exactly this value. Raises ValueError for what is not a value of a record."""
    if value == NULL:
        return "NULL"
    try:
        ((tag, content),) = value.items()
        return _LITERALS[tag](content)
    except (AttributeError, KeyError, OSError, OverflowError, TypeError) as error:
        # Times past what a clock can show give the second and the third of these.
        raise ValueError(f"not a value of a record ({type(error).__name__}: {error}): {str(value)[:80]}") from None


def equal(column: str, value: Value) -> str:
    """The condition by which a key finds its row: equality as the key's own collation has it, so an index serves."""
    name = identifier(column)
    if value == NULL:
        return f"{name} IS NULL"
    if value == _EMPTY_MEMBER:
        return f"{name}='' AND {name}+0<>0"
    mask = value.get("Set", 0) if isinstance(value, dict) else 0
    if isinstance(mask, int) and mask >= _SIGN:
        return f"{name}={mask - 2 * _SIGN}"
    return f"{name}={literal(value)}"


def exact(column: str, value: Value) -> str:
    """The condition that holds for this very value, bit for bit, and for no value that is merely equal to it.

    Where an index may serve, plain equality stands in front of the exact comparison.
    """
    name = identifier(column)
    if value == NULL:
        return f"{name} IS NULL"
    text = literal(value)
    ((tag, content),) = value.items()
    if tag == "String":
        # Collations call different texts equal: the bytes decide, in one character set for both sides.
        return f"{name}={text} AND CAST(CONVERT({name} USING utf8mb4) AS BINARY)={hexadecimal(content.encode())}"
    if tag == "Text":
        return f"{name}={text} AND CAST({name} AS BINARY)={from_base64(content['base64'])}"
    if tag in ("Float", "Double"):
        # FLOAT(m,d) compares by its digits; a sum of doubles does not. Zeros are equal, only their text has the sign.
        sign = f" AND LEFT(CAST({name} AS CHAR),1){_minus(content)}'-'" if content == 0 else ""
        return f"{name}+0e0={text}{sign}"
    if tag in ("Json", "JsonTyped"):
        return same_document(name, text)
    if tag == "Vector":
        return f"HEX({name})=HEX({text})"  # vectors know no equality
    return equal(column, value)


def _minus(content: float) -> str:
    return "=" if str(float(content)).startswith("-") else "<>"
