"""Implements sets of GTIDs, in MySQL's text form, and the GTIDs under which a consumer executes the leader's
statements.

The MySQL manual, "GTID Format and Storage", describes this text: ``uuid[:tag]:first[-last][:…],…``. A GTID of MariaDB
is ``domain-server-sequence``. MariaDB has no text form for a set of GTIDs, so this module uses MySQL's form, with
``domain-server`` in place of the UUID: ``domain-server:first[-last][:…]``.
"""

import re
import uuid
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from cdc.errors import UserError

__all__ = [
    "LAST",
    "GtidSet",
    "StatementSequences",
    "ddl_uuid",
    "executed_before",
    "former_gtid",
    "given_gtid",
    "gtid_parts",
    "is_gtid",
    "lacking",
    "mariadb_position",
    "newest_of_each_domain",
    "statement_gtid",
    "statement_uuid",
]

_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_GTID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}:(?:[a-z_][a-z0-9_]{0,31}:)?[1-9]\d{0,18}")
_DOMAIN_AND_SERVER = re.compile(r"\d{1,10}-\d{1,10}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_OF_MARIADB = re.compile(r"\d{1,10}-\d{1,10}-[1-9]\d{0,19}", re.ASCII)

Intervals = list[tuple[int, int]]


class GtidSet:
    """A set of GTIDs. For each source (UUID, or UUID:tag) it contains intervals of numbers. The intervals are sorted
    and disjoint, and include both ends.
    """

    __slots__ = ("_sources",)

    def __init__(self, sources: dict[str, Intervals] | None = None) -> None:
        self._sources: dict[str, Intervals] = sources or {}

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses MySQL's text form; white space and case do not matter. Raises UserError for any other text."""
        found: dict[str, Intervals] = {}
        for item in "".join(text.split()).lower().split(","):
            if not item:
                continue
            source, *parts = item.split(":")
            known = _UUID.fullmatch(source) or _DOMAIN_AND_SERVER.fullmatch(source)
            if not known or not parts or _names_nothing(parts):
                raise UserError(
                    f"not a GTID set: {item!r}", code="CDC-GTID-SET", hint="write uuid:first-last, as MySQL shows it"
                )
            key = source
            for part in parts:
                if _TAG.fullmatch(part):
                    key = f"{source}:{part}"
                else:
                    found.setdefault(key, []).append(_interval(part, source=key))
        return cls({source: _merged(intervals) for source, intervals in found.items()})

    def add(self, gtid: str) -> None:
        """Adds one GTID, ``uuid[:tag]:number``; has no effect if the set already contains that GTID."""
        source, number = gtid_parts(gtid)
        gno = int(number)
        intervals = self._sources.get(source)
        if intervals:
            first, last = intervals[-1]
            # A leader commits nearly in order, so usually the GTID only extends the last interval; that interval is
            # changed in place.
            if last == gno - 1:
                intervals[-1] = (first, gno)
                return
        self._sources[source] = _merged([*(intervals or ()), (gno, gno)])

    def __contains__(self, gtid: str) -> bool:
        source, number = gtid_parts(gtid)
        gno, intervals = int(number), self._sources.get(source, [])
        at = bisect_right(intervals, gno, key=lambda interval: interval[0])
        return at > 0 and gno <= intervals[at - 1][1]

    def issubset(self, other: "GtidSet") -> bool:
        """Whether every GTID of this set is also in ``other``."""
        return all(_inside(intervals, other._sources.get(source, [])) for source, intervals in self._sources.items())

    def minus(self, other: "GtidSet") -> "GtidSet":
        """Returns the GTIDs of this set that are not in ``other``."""
        return GtidSet({
            source: _outside(intervals, other._sources.get(source, [])) for source, intervals in self._sources.items()
        })  # fmt: skip

    def of_sources(self, other: "GtidSet") -> "GtidSet":
        """Returns the GTIDs of this set whose source (with its tag) also has GTIDs in ``other``."""
        return GtidSet({source: each for source, each in self._sources.items() if other._sources.get(source)})

    def intervals(self) -> list[tuple[str, Intervals]]:
        """Returns for each source (with its tag) the first and last number of each interval."""
        return [(source, list(each)) for source, each in sorted(self._sources.items()) if each]

    def without(self, gtid: str) -> "GtidSet":
        """Returns this set without the GTID."""
        source, number = gtid_parts(gtid)
        gno = int(number)
        parts = [
            part
            for low, high in self._sources.get(source, [])
            for part in ([(low, gno - 1), (gno + 1, high)] if low <= gno <= high else [(low, high)])
        ]
        return GtidSet(self._sources | {source: [(low, high) for low, high in parts if low <= high]})

    def encode(self) -> bytes:
        """Encodes the set, including tags, in the binary form with which a client requests a binlog dump (MySQL source,
        Gtid_set::encode).
        """
        tagged = any(":" in source for source in self._sources)
        count = sum(1 for intervals in self._sources.values() if intervals)
        parts = [b"\1" + count.to_bytes(6, "little") + b"\1" if tagged else count.to_bytes(8, "little")]
        for source, intervals in sorted(self._sources.items()):
            if not intervals:
                continue
            name, _, tag = source.partition(":")
            parts.append(uuid.UUID(name).bytes)
            if tagged:
                parts.append(bytes([len(tag) << 1]) + tag.encode("ascii"))
            parts.append(len(intervals).to_bytes(8, "little"))
            parts += [number.to_bytes(8, "little") for low, high in intervals for number in (low, high + 1)]
        return b"".join(parts)

    def __bool__(self) -> bool:
        return any(self._sources.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GtidSet) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return ",".join(
            f"{source}:" + ":".join(f"{low}-{high}" if high > low else str(low) for low, high in intervals)
            for source, intervals in sorted(self._sources.items())
            if intervals
        )

    def __repr__(self) -> str:
        return f"GtidSet.parse({str(self)!r})"


def is_gtid(transaction: str) -> bool:
    """Whether a record's ``transaction`` is a GTID. For a leader without GTIDs, records contain a position instead."""
    return _GTID.fullmatch(transaction) is not None or _OF_MARIADB.fullmatch(transaction) is not None


def gtid_parts(gtid: str) -> tuple[str, str]:
    """Splits a GTID into its source and its number; the source is ``uuid[:tag]``, or ``domain-server`` for MariaDB."""
    source, mark, number = gtid.rpartition(":")
    if not mark:
        source, _, number = gtid.rpartition("-")
    return source, number


def executed_before(position: str) -> GtidSet:
    """Returns the set of transactions up to ``position``, a GTID position of MariaDB, which lists the last GTID of each
    domain."""
    gtids = [gtid_parts(gtid.strip()) for gtid in position.split(",") if gtid.strip()]
    return GtidSet.parse(",".join(f"{source}:1-{number}" for source, number in gtids))


def newest_of_each_domain(executed: GtidSet) -> dict[str, tuple[int, str]]:
    """Maps each domain to the highest sequence number in ``executed`` and to the server that logged it."""
    found: dict[str, tuple[int, str]] = {}
    for source, intervals in executed.intervals():
        domain, _, server = source.partition("-")
        found[domain] = max(found.get(domain, (0, "")), (intervals[-1][1], server))
    return found


def mariadb_position(executed: GtidSet) -> str:
    """Returns the GTID position of MariaDB that follows the ``executed`` transactions: the last GTID of each domain."""
    newest = sorted(newest_of_each_domain(executed).items())
    return ",".join(f"{domain}-{server}-{number}" for domain, (number, server) in newest)


def lacking(needed: GtidSet, held: GtidSet) -> GtidSet:
    """Returns the transactions of ``needed`` that are missing in a copy that contains the transactions ``held``. In a
    domain of MariaDB the sequence numbers grow even if several servers log transactions, so the copy lacks only
    transactions after its last number."""
    missing = {}
    last = newest_of_each_domain(held)
    for source, intervals in needed.minus(held).intervals():
        held_up_to, _ = last.get(source.partition("-")[0], (0, "")) if _DOMAIN_AND_SERVER.fullmatch(source) else (0, "")
        missing[source] = [each for each in intervals if each[1] > held_up_to]
    return GtidSet(missing)


def given_gtid(text: str) -> str | None:
    """Returns the GTID that a user gives as ``text``, in lower case; None if ``text`` is not a GTID. A date is not a
    GTID, although it looks like MariaDB's ``domain-server-sequence``."""
    gtid = text.lower()
    return gtid if is_gtid(gtid) and not _DATE.fullmatch(gtid) else None


def _names_nothing(parts: list[str]) -> bool:
    """Whether one of the ``parts`` is a tag that no interval follows."""
    tags = [bool(_TAG.fullmatch(part)) for part in parts]
    return any(one and next_ for one, next_ in zip(tags, [*tags[1:], True], strict=True))


def _interval(text: str, *, source: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first + last).isascii() or not first.isdigit() or not (last or first).isdigit() or int(first) < 1:
        raise UserError(f"not a GTID interval: {text!r} of {source}", code="CDC-GTID-SET", hint="write uuid:first-last")
    low, high = int(first), int(last or first)
    if high < low:
        raise UserError(f"a GTID interval runs backwards: {text}", code="CDC-GTID-SET", where=f"GTID source {source}")
    return low, high


def _merged(intervals: Intervals) -> Intervals:
    """Merges ``intervals``: the result is sorted, and there is a gap between any two intervals."""
    merged: Intervals = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _inside(intervals: Intervals, others: Intervals) -> bool:
    """Whether each interval in ``intervals`` lies within one interval in ``others``. Both lists must be merged
    (``_merged``).
    """
    rest = iter(others)
    around = next(rest, None)
    for low, high in intervals:
        while around is not None and around[1] < low:
            around = next(rest, None)
        if around is None or not around[0] <= low <= high <= around[1]:
            return False
    return True


def _outside(intervals: Intervals, others: Intervals) -> Intervals:
    """Returns the parts of ``intervals`` that no interval in ``others`` contains. Both lists must be merged
    (``_merged``).
    """
    found: Intervals = []
    at = 0
    for first, high in intervals:
        low = first
        while at < len(others) and others[at][1] < low:
            at += 1
        # the last overlapping interval in ``others`` may also overlap the next interval in ``intervals``, so ``at``
        # stays
        inside = at
        while inside < len(others) and others[inside][0] <= high:
            if low < others[inside][0]:
                found.append((low, others[inside][0] - 1))
            low = others[inside][1] + 1
            inside += 1
        if low <= high:
            found.append((low, high))
    return found


# Computes the GTID under which a consumer executes a statement of the leader, and finds the statement that was executed
# under a GTID.
#
# The leader's statements are numbered 1, 2, 3 … in the order in which a follower executes them. So their GTIDs are one
# interval in the follower's ``gtid_executed``. The ledger maps statements to numbers. Earlier versions of ``cdc`` used
# the record's sequence as the number, under another UUID; these GTIDs are still understood.

_NAMESPACE = uuid.UUID("4f3c6a52-5d0e-5c8b-9b53-2f1f5a1ce7d1")
_NUMBERED = uuid.UUID("f62ad9a1-7c0b-54d9-8ef6-0d6d1c0c8f4e")

LAST = (1 << 63) - 2  # the highest number that MySQL accepts


def ddl_uuid(resource: str) -> str:
    """Returns the source (UUID) of the GTIDs under which an earlier version of cdc executed the statements of the
    leader ``resource``."""
    return str(uuid.uuid5(_NAMESPACE, resource))


def former_gtid(resource: str, sequence: int) -> str:
    """Returns the GTID under which an earlier version of cdc executed a statement of the leader ``resource``;
    ``sequence`` is the statement's sequence (from 0).
    """
    return f"{ddl_uuid(resource)}:{sequence + 1}"


def statement_uuid(resource: str) -> str:
    """Returns the source (UUID) of the GTIDs under which a consumer executes the statements of the leader
    ``resource``.
    """
    return str(uuid.uuid5(_NUMBERED, resource))


def statement_gtid(resource: str, number: int) -> str:
    """Returns the GTID of the ``number``-th statement (from 1) of the leader ``resource``. A server executes each GTID
    only once."""
    return f"{statement_uuid(resource)}:{number}"


@dataclass(frozen=True, slots=True)
class StatementSequences:
    """Finds which statement of the leader ``resource`` a follower executed under a GTID.

    ``noted`` maps GTIDs to the sequences of the statements that were executed under them; it is read from the
    follower's ledger. GTIDs of an earlier version of cdc (``former_gtid``) contain the sequence themselves.
    """

    resource: str
    noted: Mapping[str, int] = field(default_factory=dict)

    def of(self, gtid: str) -> int | None:
        """Returns the sequence of the statement that was executed under ``gtid``; None if no statement of this leader
        was executed under it.
        """
        source, _, number = gtid.rpartition(":")
        return int(number) - 1 if source == ddl_uuid(self.resource) else self.noted.get(gtid)
