"""Describes a record as one entry of an index, and selects records by table, key, time, GTID, kind and sequence. Pure.

The text of a row's key consists of the values of its key columns as SQL literals, separated by ``", "``: ``42``, or
``7, 'north'``. The text does not contain the names of the columns, so renaming a column does not change it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from typing import Self

from cdc.config.table_globs import TableGlobs
from cdc.errors import UserError
from cdc.model.names import Uri
from cdc.model.record import COPY, REPAIR, Record, Row
from cdc.model.values import Value, display

__all__ = [
    "KINDS",
    "Entry",
    "Filter",
    "Object",
    "Summary",
    "gtids",
    "key_candidates",
    "key_of",
    "keys_of",
    "kind_of",
    "objects_of",
    "parsed_kinds",
    "parsed_time",
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
    """Returns the text of a key with these ``values``."""
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


# Selects records by table, key, time, GTID, kind and sequence.


@dataclass(frozen=True, slots=True)
class Filter:
    """The conditions that a record must satisfy to pass; an empty filter passes all records.

    ``tables`` are globs over ``db.table``, as in the profile's filters; a name without a database means any database.
    ``key`` is the text of a row's key (see ``key_candidates``). ``since_us`` and ``upto_us`` are times of commits in
    microseconds since 1970, both inclusive. ``gtid`` is the id of a transaction, ``kinds`` is a subset of KINDS.
    ``first`` and ``last`` are sequences, both inclusive. Raises UserError for a glob that can't be read.
    """

    tables: tuple[str, ...] = ()
    key: str = ""
    since_us: int | None = None
    upto_us: int | None = None
    gtid: str = ""
    kinds: frozenset[str] = frozenset()
    first: int | None = None
    last: int | None = None
    globs: TableGlobs | None = field(init=False, repr=False, compare=False, default=None)
    keys: tuple[str, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        tables = [glob if "." in glob or "`" in glob else f"*.{glob}" for glob in self.tables]
        globs = TableGlobs.of(tables, key="--table", names_database=False) if tables else None
        object.__setattr__(self, "globs", globs)
        object.__setattr__(self, "keys", tuple(key_candidates(self.key)) if self.key else ())

    def matches(self, record: Record) -> bool:
        """Whether the record passes."""
        if (self.since_us is not None and record.ts_us < self.since_us) or (
            self.upto_us is not None and record.ts_us > self.upto_us
        ):
            return False
        if (self.first is not None and record.sequence < self.first) or (
            self.last is not None and record.sequence > self.last
        ):
            return False
        if self.gtid and record.transaction not in gtids(self.gtid):
            return False
        if self.kinds and kind_of(record) not in self.kinds:
            return False
        if self.globs and not any(self.globs.match(*each) for each in objects_of(record)):
            return False
        return not self.keys or not set(self.keys).isdisjoint(keys_of(record))


def gtids(text: str) -> tuple[str, ...]:
    """Returns the GTIDs that a user's ``text`` may mean: itself, and in lower case, as the binlog contains UUIDs."""
    return text.strip(), text.strip().lower()


def parsed_kinds(names: Iterable[str]) -> frozenset[str]:
    """Returns the kinds with these names, regardless of case. Raises UserError for a name that is no kind."""
    known = {kind.lower(): kind for kind in KINDS}
    found = set()
    for name in names:
        if name.lower() not in known:
            raise UserError(
                f"{name!r} is no kind of record",
                code="CDC-BROWSE-KIND",
                where="--kind",
                hint=f"the kinds are {', '.join(KINDS)}",
            )
        found.add(known[name.lower()])
    return frozenset(found)


def parsed_time(text: str, *, end: bool = False) -> int:
    """Converts a time to microseconds since 1970. ``text`` is a date (``2026-11-27``), a time (``2026-11-27T10:15``)
    with or without seconds, a fraction and a zone (without a zone: UTC), or a number of seconds since 1970. If ``end``
    is true, returns the last microsecond of this day, minute or second, otherwise the first.

    Raises UserError for any other text.
    """
    text = text.strip()
    if found := _SECONDS.fullmatch(text):
        begin, digits = int(found[1]) * _SECOND, found[2] or ""
        return begin + int(f"{digits:0<6}") + (_precision(digits) - 1 if end else 0)
    found = _TIME.fullmatch(text)
    try:
        if found is None:
            raise ValueError("not a time")
        day, clock, seconds, digits, zone = found.groups()
        moment = datetime.fromisoformat(f"{day}T{clock or '00:00'}:{seconds or '00'}{zone or '+00:00'}")
        begin = (moment - _BEGIN) // timedelta(microseconds=1) + int(f"{digits or '':0<6}")
    except (ValueError, OverflowError):
        raise UserError(
            f"{text!r} is no time",
            code="CDC-BROWSE-TIME",
            where="--since or --upto",
            hint="write 2026-11-27, 2026-11-27T10:15, 2026-11-27T10:15:30.5+01:00 (without a zone: UTC), "
            "or seconds since 1970",
        ) from None
    width = _DAY if clock is None else _MINUTE if seconds is None else _precision(digits or "")
    return begin + (width - 1 if end else 0)


_SECONDS = re.compile(r"(\d{5,12})(?:\.(\d{1,6}))?", re.ASCII)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = 1_000_000
_MINUTE, _DAY = 60 * _SECOND, 86_400 * _SECOND


def _precision(digits: str) -> int:
    """Returns the number of microseconds in one unit of the last of the ``digits``, the decimal digits of a second."""
    return int(10 ** (6 - len(digits)))
