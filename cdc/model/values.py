"""Defines the JSON form of each MySQL value in a record, formats values for display, and converts them to Python
objects.

A value is ``"Null"`` or an object with one key, its tag:

    SignedInteger, UnsignedInteger, Bit, Year   a whole number
    Float, Double                               a number; a Float is written as the double with the same value
    Decimal                                     text, with the column's number of digits after the point
    String                                      text
    Text                                        {"charset", "base64"}: text of a character set that has no exact codec
    Enum                                        the member's text, or its number if its charset has no codec; 0 = error
    Set                                         a list of member texts, or the bit mask if the charset has no codec
                                                or a member is empty
    Blob                                        base64; BINARY(n) padded to n bytes
    Date                                        {"year", "month", "day"}, zeros included
    Time                                        {"negative", "hour", "minute", "second", "subsecond"}
    DateTime                                    {"year", "month", "day", "hour", "minute", "second", "subsecond"}
    Timestamp                                   {"unix_time", "subsecond"}; unix_time 0 is the zero timestamp
    Json                                        the document
    JsonTyped                                   a document with members of SQL types, as a tree: {"array": [node, …]},
                                                {"object": {key: node, …}}, SignedInteger, UnsignedInteger, Decimal,
                                                Date, Time, DateTime, LocalTimestamp (as DateTime, in no time zone),
                                                Opaque {"type": MySQL's field type, "base64"}, or plain JSON
    Geometry, Vector                            base64 of the stored bytes

subsecond counts microseconds.

This module also makes text from a database safe to print: it replaces invisible characters, and characters that control
a terminal.
"""

import base64
import json
import re
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

__all__ = ["NULL", "UNSEEN", "Value", "display", "python_value", "visible"]

# Control characters, surrogates, and characters that change the direction of the surrounding text.
UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def visible(text: str, *, keep: str = "") -> str:
    """Returns ``text`` as one line. Each invisible character, except the characters in ``keep``, is replaced by a
    picture (␀ … ␡) or an escape.
    """
    return UNSEEN.sub(lambda match: match[0] if match[0] in keep else _picture(ord(match[0])), text)


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"\\u{code:04x}"


Value = Any  # the JSON described above; a narrower type would require a check at each access
NULL = "Null"


def _clock(parts: dict[str, int]) -> str:
    fraction = f".{parts['subsecond']:06d}" if parts["subsecond"] else ""
    return f"{parts['hour']:02d}:{parts['minute']:02d}:{parts['second']:02d}{fraction}"


def _day(parts: dict[str, int]) -> str:
    return f"{parts['year']:04d}-{parts['month']:02d}-{parts['day']:02d}"


def display(value: Value) -> str:
    """Writes one value as text on one line, such as ``NULL``, ``'text'``, ``1999-03-30``, ``x'00ff'``."""
    if value == NULL:
        return "NULL"
    ((tag, content),) = value.items()
    if tag in ("String", "Enum") and isinstance(content, str):
        return "'" + content.replace("'", "''") + "'"
    if tag == "Date":
        return _day(content)
    if tag == "DateTime":
        return f"{_day(content)} {_clock(content)}"
    if tag == "Time":
        return ("-" if content["negative"] else "") + _clock(content)
    if tag == "Timestamp":
        fraction = f".{content['subsecond']:06d}" if content["subsecond"] else ""
        return f"{content['unix_time']}{fraction}"
    if tag in ("Blob", "Geometry", "Vector"):
        return f"x'{base64.b64decode(content).hex()}'"
    if tag == "Text":
        return f"_{content['charset']} x'{base64.b64decode(content['base64']).hex()}'"
    if tag == "Set" and isinstance(content, list):
        return "'" + ",".join(content).replace("'", "''") + "'"
    if tag in ("Json", "JsonTyped"):
        return json.dumps(content, ensure_ascii=False)
    return str(content)


# Converts the values in records to Python objects.
#
#     NULL                                         None
#     integers, BIT, YEAR                          int
#     FLOAT, DOUBLE                                float
#     DECIMAL                                      Decimal, with the column's number of digits after the point
#     text types, ENUM                             str; bytes if Python has no exact codec for the character set
#     SET                                          tuple of str; int if the record contains the members' bit mask
#     BINARY, BLOB, GEOMETRY, VECTOR               bytes, as the server stores them
#     DATE, DATETIME                               date, datetime without a time zone
#     TIMESTAMP, TIME                              datetime in UTC, timedelta
#     JSON                                         Python's JSON types; members of SQL types get the types above
#
# MySQL allows dates that Python lacks: with a zero in the year, month or day, or, with ``ALLOW_INVALID_DATES``, such as
# February 31. A DATE, DATETIME or TIMESTAMP with such a date becomes a str, in the form in which the server shows it.

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
    """Returns the Python value of a node of a JSON document that contains SQL values (``JsonTyped``)."""
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
