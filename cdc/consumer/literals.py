"""Values of a record as SQL literals, names as SQL identifiers, and the conditions that find a value again.

Written for a session with NO_BACKSLASH_ESCAPES, character set utf8mb4 and time zone +00:00 (see ``session``), so that
a quote is the only character that needs escaping. Syntax: MySQL manual, "Literal Values".
"""

import base64
import json
import re
import time
from collections.abc import Callable
from typing import Any

from cdc.record import Uri
from cdc.values import NULL, Value

__all__ = ["equal", "exact", "identifier", "literal", "quoted", "table_name"]

_CHARSET = re.compile(r"[a-z0-9_]+")


def identifier(name: str) -> str:
    """A database, table or column name, quoted."""
    return "`" + name.replace("`", "``") + "`"


def table_name(uri: Uri) -> str:
    """The full quoted name of the table that a record's URI names."""
    return f"{identifier(uri.database)}.{identifier(uri.table or '')}"


def quoted(text: str) -> str:
    """Text as a string literal."""
    return "'" + text.replace("'", "''") + "'"


def literal(value: Value) -> str:
    """The literal that stores exactly this value. Raises ValueError for what is not a value of a record."""
    if value == NULL:
        return "NULL"
    try:
        ((tag, content),) = value.items()
        return _LITERALS[tag](content)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a value of a record ({type(error).__name__}: {error}): {str(value)[:80]}") from None


def equal(column: str, value: Value) -> str:
    """The condition by which a key finds its row: equality as the key's own collation has it, so an index serves."""
    if value == NULL:
        return f"{identifier(column)} IS NULL"
    return f"{identifier(column)}={literal(value)}"


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
        return f"{name}={text} AND CAST(CONVERT({name} USING utf8mb4) AS BINARY)={_hex(content.encode())}"
    if tag == "Text":
        return f"{name}={text} AND CAST({name} AS BINARY)={_bytes(content['base64'])}"
    if tag in ("Float", "Double"):
        # FLOAT(m,d) compares by its digits; a sum of doubles does not. Zeros are equal, only their text has the sign.
        sign = f" AND CAST({name} AS CHAR)={quoted(_zero(content))}" if content == 0 else ""
        return f"{name}+0e0={text}{sign}"
    if tag in ("Json", "JsonTyped"):
        # JSON equality says 1 = 1.0; the server's own text of a document tells them apart.
        return f"CAST(CAST({name} AS CHAR) AS BINARY)=CAST(CAST({text} AS CHAR) AS BINARY)"
    if tag == "Enum" and content in ("", 0):
        # The error value reads as '' like a member '' does; only their numbers differ.
        return f"{name}+0=0" if content == 0 else f"{name}='' AND {name}+0<>0"
    return f"{name}={text}"


def _zero(content: float) -> str:
    return "-0" if str(float(content)).startswith("-") else "0"


def _hex(data: bytes) -> str:
    return f"x'{data.hex()}'"


def _bytes(content: str) -> str:
    return _hex(base64.b64decode(content, validate=True))


def _integer(content: int) -> str:
    return str(int(content))


def _double(content: float) -> str:
    # The shortest text that reads back as the same double; the exponent makes it a DOUBLE literal, not a DECIMAL one.
    text = repr(float(content))
    return text if "e" in text else text + "e0"


def _decimal(content: str) -> str:
    if not re.fullmatch(r"-?\d+(\.\d+)?", content, re.ASCII):
        raise ValueError(f"not a decimal: {content[:80]!r}")
    return content


def _text(content: dict[str, str]) -> str:
    if not _CHARSET.fullmatch(content["charset"]):
        raise ValueError(f"not a character set: {content['charset'][:80]!r}")
    return f"_{content['charset']} {_bytes(content['base64'])}"


def _enum(content: str | int) -> str:
    return quoted(content) if isinstance(content, str) else str(int(content))


def _set(content: list[str] | int) -> str:
    return quoted(",".join(content)) if isinstance(content, list) else str(int(content))


def _json(content: Any) -> str:
    return f"CAST({quoted(json.dumps(content, ensure_ascii=False))} AS JSON)"


def _typed_json(content: Any) -> str:
    return f"CAST({_node(content)} AS JSON)"


def _node(node: Any) -> str:
    """A node of a typed document as an expression whose value has the node's type inside of JSON_ARRAY and the like."""
    if not isinstance(node, dict):
        return _json(node)
    ((tag, content),) = node.items()
    if tag == "array":
        return f"JSON_ARRAY({','.join(map(_node, content))})"
    if tag == "object":
        return f"JSON_OBJECT({','.join(f'{quoted(key)},{_node(value)}' for key, value in content.items())})"
    if tag == "Decimal":
        text = _decimal(content)
        scale = len(text.partition(".")[2])
        return f"CAST({text} AS DECIMAL(65,{scale}))"
    kinds = {"Date": "DATE", "Time": "TIME(6)", "DateTime": "DATETIME(6)"}
    return f"CAST({_LITERALS[tag](content)} AS {kinds[tag]})"


def _clock(parts: dict[str, int]) -> str:
    fraction = f".{parts['subsecond']:06d}" if parts["subsecond"] else ""
    return f"{parts['hour']:02d}:{parts['minute']:02d}:{parts['second']:02d}{fraction}"


def _day(parts: dict[str, int]) -> str:
    return f"{parts['year']:04d}-{parts['month']:02d}-{parts['day']:02d}"


def _date(content: dict[str, int]) -> str:
    return f"'{_day(content)}'"


def _datetime(content: dict[str, int]) -> str:
    return f"'{_day(content)} {_clock(content)}'"


def _time(content: dict[str, int]) -> str:
    return f"'{'-' if content['negative'] else ''}{_clock(content)}'"


def _timestamp(content: dict[str, int]) -> str:
    seconds, fraction = content["unix_time"], content["subsecond"]
    # unix_time 0 is the zero timestamp: the type begins at one second past the epoch.
    if seconds == 0:
        return "'0000-00-00 00:00:00'"
    text = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    return f"'{text}.{fraction:06d}'" if fraction else f"'{text}'"


_LITERALS: dict[str, Callable[[Any], str]] = {
    "SignedInteger": _integer,
    "UnsignedInteger": _integer,
    "Bit": _integer,
    "Year": _integer,
    "Float": _double,
    "Double": _double,
    "Decimal": _decimal,
    "String": quoted,
    "Text": _text,
    "Enum": _enum,
    "Set": _set,
    "Blob": _bytes,
    "Date": _date,
    "Time": _time,
    "DateTime": _datetime,
    "Timestamp": _timestamp,
    "Json": _json,
    "JsonTyped": _typed_json,
    "Geometry": _bytes,
    "Vector": _bytes,
}
