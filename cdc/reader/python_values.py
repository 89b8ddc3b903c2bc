"""Converts the values in records to Python objects. Pure.

======================  ===============================================================================
MySQL                   Python
======================  ===============================================================================
NULL                    None
integers, BIT, YEAR     int
FLOAT, DOUBLE           float
DECIMAL                 decimal.Decimal, with the column's number of digits after the point
text types, ENUM        str; bytes for text in a character set that Python has no exact codec for
SET                     tuple of str; int where a record contains the members' bit mask
BINARY, BLOB            bytes; so are GEOMETRY and VECTOR, as the server stores them
DATE, DATETIME          datetime.date, datetime.datetime without a zone
TIMESTAMP               datetime.datetime in UTC
TIME                    datetime.timedelta
JSON                    None, bool, int, float, str, list and dict, and for members of SQL types the types above
======================  ===============================================================================

Python has no date with a zero in its year, month or day, and none such as February 31, which the server allows with
``ALLOW_INVALID_DATES``: such a DATE, DATETIME or TIMESTAMP is a str, as the server shows it.
"""

from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from cdc.model.values import NULL, Value, display

__all__ = ["python_value"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def python_value(value: Value) -> Any:
    """Converts a ``value`` in a record (``cdc.model.values``) to a Python object."""
    if value == NULL:
        return None
    ((tag, content),) = value.items()
    convert = _CONVERT.get(tag)
    return content if convert is None else convert(content)


def _date(parts: dict[str, int]) -> date | str:
    try:
        return date(parts["year"], parts["month"], parts["day"])
    except ValueError:
        return display({"Date": parts})


def _datetime(parts: dict[str, int]) -> datetime | str:
    names = {"subsecond": "microsecond"}
    try:
        return datetime(**{names.get(name, name): number for name, number in parts.items()})  # type: ignore[arg-type]
    except ValueError:
        return display({"DateTime": parts})


def _timestamp(parts: dict[str, int]) -> datetime | str:
    if not parts["unix_time"]:
        return "0000-00-00 00:00:00"
    return _EPOCH + timedelta(seconds=parts["unix_time"], microseconds=parts["subsecond"])


def _time(parts: dict[str, Any]) -> timedelta:
    length = timedelta(
        hours=parts["hour"], minutes=parts["minute"], seconds=parts["second"], microseconds=parts["subsecond"]
    )
    return -length if parts["negative"] else length


def _node(node: Any) -> Any:
    """Converts a node of a JSON document with members of SQL types (``JsonTyped``)."""
    if not isinstance(node, dict):
        return node
    ((tag, content),) = node.items()
    if tag == "array":
        return [_node(each) for each in content]
    if tag == "object":
        return {key: _node(each) for key, each in content.items()}
    if tag == "LocalTimestamp":
        return _datetime(content)
    if tag == "Opaque":
        return b64decode(content["base64"])
    return python_value(node)


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "Decimal": Decimal,
    "Set": lambda content: tuple(content) if isinstance(content, list) else content,
    "Text": lambda content: b64decode(content["base64"]),
    "Date": _date,
    "Time": _time,
    "DateTime": _datetime,
    "Timestamp": _timestamp,
    "JsonTyped": _node,
    **dict.fromkeys(("Blob", "Geometry", "Vector"), b64decode),
}
