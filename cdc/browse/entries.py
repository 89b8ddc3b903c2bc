"""Describes a record as one entry of an index: its offset in Kafka, its kind, and the rows that it changes.

Pure. The text of a row's key consists of the values of its key columns as SQL literals, separated by ``", "``: ``42``,
or ``7, 'north'``. The text does not contain the names of the columns, so renaming a column does not change it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Self

from cdc.model.names import Uri
from cdc.model.record import COPY, REPAIR, Record, Row
from cdc.model.values import Value, display

__all__ = [
    "KINDS",
    "Entry",
    "Object",
    "Summary",
    "key_candidates",
    "key_of",
    "keys_of",
    "kind_of",
    "objects_of",
    "row_keys",
]

KINDS = ("Add", "Update", "Delete", "Query", "Copy", "Repair", "Skipped")
"""The kinds of records, as the record format names its operations."""

Object = tuple[str, str]
"""The names of a database and a table; the table's name is empty if the object is the database."""

_SEPARATOR = ", "
_PART = re.compile(r"\s*(?:[^\s=,'\"`]+=)?((?:_\w+ )?x'[0-9a-f]*'|'(?:[^']|'')*'|[^\s,']+)\s*(?:,|$|(?<=\s))")
_MOST_PARTS = 16  # the maximum number of columns of a MySQL key
_MOST_CANDIDATES = 64


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the index, which describes a record.

    ``offset`` is the offset of its first message, ``size`` its length in bytes. ``rows`` counts its rows, and ``keys``
    are the texts of the first few keys. ``ts_us`` is the time of the leader's commit in microseconds since 1970,
    ``gtid`` is the id of its transaction, whose records have the sequences from ``first`` to ``last``; ``last`` is None
    until the transaction's last record is in the index.
    """

    sequence: int
    topic: str
    partition: int
    offset: int
    size: int
    kind: str
    database: str
    table: str
    rows: int
    keys: tuple[str, ...]
    ts_us: int
    gtid: str
    first: int
    last: int | None


@dataclass(frozen=True, slots=True)
class Summary:
    """The part of a record that an index stores: its sequence, transaction and kind, and the rows and objects it
    changes.
    """

    sequence: int
    first: int
    is_last: bool
    gtid: str
    ts_us: int
    kind: str
    objects: tuple[Object, ...]
    rows: int
    keys: tuple[str, ...]

    @classmethod
    def of(cls, record: Record) -> Self:
        """Summarizes ``record``."""
        return cls(
            record.sequence,
            # A transaction's records have consecutive sequences, and are numbered from 0.
            record.sequence - record.index,
            record.last,
            record.transaction,
            record.ts_us,
            kind_of(record),
            tuple(objects_of(record)),
            len(record.rows),
            tuple(keys_of(record)),
        )


def kind_of(record: Record) -> str:
    """Returns the record's kind, one of KINDS."""
    if record.operation == COPY and record.range is not None and record.range.keys is not None:
        return REPAIR
    return record.operation


def key_of(values: Sequence[Value]) -> str:
    """Writes the text of a key with these ``values``."""
    return _SEPARATOR.join(map(display, values))


def keys_of(record: Record) -> Iterator[str]:
    """Yields the keys of the record's rows, each key once, in the order of the rows. Yields nothing for a table without
    a key.

    For an update that changes a row's key, yields both keys. For a repair, also yields the keys without a row.
    """
    if not record.key:
        return iter(())
    places = [record.columns.index(name) for name in record.key]
    return iter(dict.fromkeys(_keys(record, places)))


def _keys(record: Record, places: Sequence[int]) -> Iterator[str]:
    for row in record.rows:
        for image in row:
            if image is not None:
                yield key_of([image[place] for place in places])
    if record.range is not None:
        yield from map(key_of, record.range.keys or ())


def row_keys(record: Record, row: Row) -> tuple[str | None, str | None]:
    """Returns the row's key before and after the change. If there is only one image, both are its key; in a table
    without a key, both are None.
    """
    if not record.key:
        return None, None
    places = [record.columns.index(name) for name in record.key]
    before, after = (None if image is None else key_of([image[place] for place in places]) for image in row)
    return (before if before is not None else after), (after if after is not None else before)


def objects_of(record: Record) -> list[Object]:
    """Lists the tables and databases that the record changes; the index entry of the record names the first of them."""
    found = dict.fromkeys(_affected(record.affects)) if record.affects else {}
    return list(found) or [(record.uri.database, record.uri.table or "")]


def _affected(affects: Sequence[dict[str, str]]) -> Iterator[Object]:
    for each in affects:
        for name in ("uri", "to"):
            if name in each:
                uri = Uri.parse(each[name])
                yield uri.database, uri.table or ""


def key_candidates(text: str) -> list[str]:
    """Lists the keys that a user's ``text`` may mean: text values may lack their quotes, and each value may follow its
    column's name and ``=``, because other programs print keys in this way.
    """
    text = text.strip()
    found = [text, _quoted(text)]
    parts = _parts(text)
    if parts:
        choices = [[part] if part.endswith("'") else [part, _quoted(part)] for part in parts]
        found += map(_SEPARATOR.join, islice(product(*choices), _MOST_CANDIDATES))
    return list(dict.fromkeys(found))


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    at = 0
    while at < len(text) and len(parts) < _MOST_PARTS:
        match = _PART.match(text, at)
        if match is None:
            return []
        parts.append(match[1])
        at = match.end()
    return parts if at >= len(text) else []


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
