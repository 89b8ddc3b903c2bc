"""Selects records by table, key, time, GTID, kind and sequence. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cdc.browse.entries import KINDS, key_candidates, keys_of, kind_of, objects_of
from cdc.config.table_globs import TableGlobs
from cdc.errors import UserError
from cdc.model.record import Record

__all__ = ["Filter", "gtids", "parsed_kinds", "parsed_time"]


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
    """Returns the GTIDs that a user's ``text`` may mean: the binlog contains UUIDs in lower case."""
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
