"""Turns values of a key, as records have them, into SQL literals that the leader compares as it does its own rows.

The session must have the time zone +00:00 and a sql_mode that takes every date.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cdc.model.charset import latin1_encode
from cdc.producer.copy.definition import CopiedColumn

__all__ = ["key_literals"]

_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def key_literals(columns: Sequence[CopiedColumn], values: Sequence[str]) -> tuple[str, ...]:
    """A literal for each value, the JSON text of which is given. Raises ValueError for what is no value of a key."""
    return tuple(_literal(column, json.loads(value)) for column, value in zip(columns, values, strict=True))


def _literal(column: CopiedColumn, value: Any) -> str:
    try:
        ((tag, content),) = value.items()
        return _LITERALS[tag](column, content)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a value of a key: {str(value)[:80]}") from error


def _integer(column: CopiedColumn, content: int) -> str:
    return str(int(content))


def _decimal(column: CopiedColumn, content: str) -> str:
    if not _DECIMAL.fullmatch(content):
        raise ValueError(f"not a decimal: {content[:80]!r}")
    return content


def _string(column: CopiedColumn, content: str) -> str:
    # In the column's own character set: otherwise the server could convert the column, and not use its index.
    data = latin1_encode(content) if column.charset == "latin1" else content.encode()
    return f"_{column.charset} x'{data.hex()}'"


def _text(column: CopiedColumn, content: dict[str, str]) -> str:
    return f"_{column.charset} x'{b64decode(content['base64'], validate=True).hex()}'"


def _blob(column: CopiedColumn, content: str) -> str:
    return f"x'{b64decode(content, validate=True).hex()}'"


def _year(column: CopiedColumn, content: int) -> str:
    return f"'{content:04d}'"  # the number 0 might be read as 2000


def _day(parts: dict[str, int]) -> str:
    return f"{parts['year']:04d}-{parts['month']:02d}-{parts['day']:02d}"


def _clock(parts: dict[str, int]) -> str:
    return f"{parts['hour']:02d}:{parts['minute']:02d}:{parts['second']:02d}.{parts['subsecond']:06d}"


def _timestamp(column: CopiedColumn, content: dict[str, int]) -> str:
    if not content["unix_time"]:
        return "'0000-00-00 00:00:00'"
    moment = _EPOCH + timedelta(seconds=content["unix_time"])
    return f"'{moment:%Y-%m-%d %H:%M:%S}.{content['subsecond']:06d}'"


_LITERALS: dict[str, Callable[[CopiedColumn, Any], str]] = {
    "SignedInteger": _integer,
    "UnsignedInteger": _integer,
    "Decimal": _decimal,
    "String": _string,
    "Text": _text,
    "Blob": _blob,
    "Year": _year,
    "Date": lambda _, parts: f"'{_day(parts)}'",
    "Time": lambda _, parts: f"'{'-' if parts['negative'] else ''}{_clock(parts)}'",
    "DateTime": lambda _, parts: f"'{_day(parts)} {_clock(parts)}'",
    "Timestamp": _timestamp,
}
