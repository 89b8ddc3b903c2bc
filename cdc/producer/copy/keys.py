"""Checks key values against a table's columns, and writes them as SQL literals.

The leader compares such a literal in the same way as the values of its own rows, in a session with the time zone +00:00
and a sql_mode that accepts every date.

The keys come from an audit's report. The report may contain a follower's value that the leader's column can't store, or
be older than the table's definition. Then the rows with these keys are not read at all.
"""

import json
import re
from base64 import b64decode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from cdc.model.charset import latin1_encode
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.producer.decode.changes import Table

__all__ = ["Keys", "has_key", "key_literals", "unfit"]

_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Keys(NamedTuple):
    """Keys of rows of ``table``; ``values`` contains for each row the JSON texts of its key values, in the order of the
    key's ``columns``."""

    table: Table
    columns: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]


def key_literals(columns: Sequence[CopiedColumn], values: Sequence[str]) -> tuple[str, ...]:
    """Writes a literal for each value, given as JSON text. Raises ValueError for a value that the key can't contain."""
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
    # The literal has the column's own character set: otherwise the server might convert the column, and could not use
    # the column's index.
    data = latin1_encode(content) if column.charset == "latin1" else content.encode()
    return f"_{column.charset} x'{data.hex()}'"


def _text(column: CopiedColumn, content: dict[str, str]) -> str:
    return f"_{column.charset} x'{b64decode(content['base64'], validate=True).hex()}'"


def _blob(column: CopiedColumn, content: str) -> str:
    return f"x'{b64decode(content, validate=True).hex()}'"


def _year(column: CopiedColumn, content: int) -> str:
    return f"'{content:04d}'"  # as a number, 0 might be read as 2000


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


_INTEGER = frozenset({"SignedInteger", "UnsignedInteger"})
_TAGS = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _INTEGER),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), frozenset({"String", "Text"})),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), frozenset({"Blob"})),
    "decimal": frozenset({"Decimal"}),
    "year": frozenset({"Year"}),
    "date": frozenset({"Date"}),
    "time": frozenset({"Time"}),
    "datetime": frozenset({"DateTime"}),
    "timestamp": frozenset({"Timestamp"}),
}
# Maps each character set whose text is unchanged in records to its highest character. For latin1, ``key_literals``
# checks the characters instead.
_HIGHEST = {"utf8mb4": "\U0010ffff", "utf8mb3": "\uffff", "utf8": "\uffff", "ascii": "\x7f", "latin1": "\U0010ffff"}


def unfit(definition: TableDefinition, keys: Keys) -> str | None:
    """Returns the reason why ``keys`` don't fit the table's key; None if they fit."""
    if keys.columns != definition.key:
        return f"its key is ({', '.join(definition.key)}), the report's ({', '.join(keys.columns)})"
    if definition.whole:
        return "its key names no range of rows"
    for key in keys.values:
        for column, value in zip(definition.key_columns, key, strict=True):
            if not _fits(column, json.loads(value)):
                return f"{value[:80]} is no value of its column {column.name} ({column.type})"
    return None


def has_key(definition: TableDefinition, after: tuple[str, ...] | None, before: tuple[CopiedColumn, ...] = ()) -> bool:
    """Whether a chunk can begin after the key values ``after`` (JSON texts) even if the table's key was changed after
    they were read.

    ``before`` are the key columns to which these values belong, if these columns are known.
    """
    if not after:
        return True  # the chunk begins at the table's beginning
    columns = definition.key_columns
    if definition.whole or before not in ((), columns):
        return False
    if len(columns) != len(after) or not all(map(_fits, columns, map(json.loads, after))):
        return False
    try:
        key_literals(columns, after)
    except (ValueError, OverflowError):
        return False
    return True


def _fits(column: CopiedColumn, value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _TAGS.get(column.type, ()):
        return False
    ((tag, content),) = value.items()
    if tag == "Text":
        return isinstance(content, dict) and content.get("charset") == column.charset
    if tag == "String":
        return isinstance(content, str) and max(content, default="") <= _HIGHEST.get(column.charset, "")
    return True
