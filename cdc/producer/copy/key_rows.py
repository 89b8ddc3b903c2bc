"""Reads the rows with some keys, which an audit's report names, from the leader.

A value of such a key may be the follower's, so it need not be one that the leader's column can have, nor may the report
be of the table of today: then its rows are not read at all.
"""

import json
from dataclasses import replace
from typing import Any

from cdc.errors import PromiseError, UserError
from cdc.producer.copy.chunk import Keys
from cdc.producer.copy.chunk_reader import ChunkReader, ReadChunk, TableChanged
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.producer.copy.key_literals import key_literals

__all__ = ["has_key", "read_keys", "unfit"]

_MOST = 500  # keys of a chunk: many alternatives make the server choose to read the whole table
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
# The highest character of the character sets whose text records have as it is; of latin1 key_literals knows them.
_HIGHEST = {"utf8mb4": "\U0010ffff", "utf8mb3": "\uffff", "utf8": "\uffff", "ascii": "\x7f", "latin1": "\U0010ffff"}

Found = tuple[TableDefinition, ReadChunk | None, tuple[tuple[str, ...], ...]]


def read_keys(definition: TableDefinition, reader: ChunkReader, keys: Keys, *, max_bytes: int) -> Found:
    """The table, which ``definition`` is, the rows of the first of ``keys``, with about ``max_bytes``, and these keys.

    No rows where the table was altered meanwhile, or can't be read by these keys (then it has a refusal).
    Raises Disconnected.
    """
    refusal = definition.refusal or unfit(definition, keys)
    part = keys.values[:_MOST]
    if refusal is not None:
        return replace(definition, refusal=refusal), None, part
    try:
        while (chunk := reader.read_keys(definition, part, max_bytes=max_bytes if len(part) > 1 else 1 << 62)) is None:
            part = part[: len(part) // 2]
    except TableChanged:
        return definition, None, part
    except (ValueError, OverflowError, UserError, PromiseError) as error:
        # To ask again for the same would end the same, for ever.
        return replace(definition, refusal=str(error)), None, part
    return definition, chunk, part


def unfit(definition: TableDefinition, keys: Keys) -> str | None:
    """Why ``keys`` are none of the table's key, None where they are."""
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
    """Whether a chunk can begin behind ``after``, values of its key as JSON texts: the key may be another one now.

    ``before`` are the columns of the key that the values are of, where they are known.
    """
    if not after:
        return True  # at the table's beginning
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
