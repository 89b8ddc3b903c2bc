"""Reads and writes entries of the commit log. Entries are JSON. The producer reads whole entries, other readers read
parts of them.

Each entry contains the ``version`` of its format, except the oldest entries. The version increases with a change that
older readers would misread. Packed entries have version 2, entries of a stream with chunks of tables have version 3,
and entries of a stream with repairs have version 4. Entries of a stream that was once written without Kafka
transactions have version 5, and entries of a leader with ``lower_case_table_names = 1`` have version 6. Entries have
version 7 while a table waits to be copied because its rows can't be read. An older reader can thus read all entries
that do not use a newer feature.

Large entries are packed into a fraction of their bytes, because Kafka accepts messages of up to 1 MB by default, and an
entry is written with each commit. A GTID set of 100 000 intervals needs 1 MB, and so do the counts of 10 000
partitions. A packed entry keeps ``version`` and ``next_sequence``, because the audit reads them in SQL. Everything else
is JSON, compressed, in base64. In this JSON, each number of the GTID set is replaced by its distance from the previous
number (``uuid:5-7:12`` is ``uuid:5+2:5``), because distances compress to a quarter of the size. Each partition is named
once, with its count and its newest sequence.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

from cdc.errors import PromiseError, UserError
from cdc.model.position import Partition, Position, partition_of

__all__ = [
    "PACKED",
    "VERSION",
    "Commits",
    "Entry",
    "Mark",
    "Partial",
    "PreparedXa",
    "distances",
    "numbers",
    "packed",
    "unpacked",
]

PACKED = "packed"
_KEPT = ("version", "next_sequence")
_LEVEL = 1  # the compression level of zlib; level 6 takes five times as long, and its result is a fifth smaller


def packed(body: dict[str, Any]) -> dict[str, Any]:
    """Returns the packed form of the entry ``body``, which is compressed. The entry must contain a version."""
    rest = {key: value for key, value in body.items() if key not in (*_KEPT, "gtid_set", "counts", "last")}
    counts, last = body["counts"], body.get("last", {})
    rest["partitions"] = {name: (counts.get(name), last.get(name)) for name in counts | last}
    rest["gtid_distances"] = distances(body["gtid_set"])
    text = zlib.compress(json.dumps(rest, separators=(",", ":")).encode(), _LEVEL)
    return {key: body[key] for key in _KEPT} | {PACKED: b64encode(text).decode("ascii")}


def unpacked(body: dict[str, Any], *, gtids: bool) -> dict[str, Any]:
    """Unpacks the entry whose packed form is ``body``. Unpacking the GTID set takes most of the time, so the GTID set
    is left out unless ``gtids`` is true.

    Raises ValueError, LookupError, AttributeError or TypeError if ``body`` is not a packed form.
    """
    try:
        rest: dict[str, Any] = json.loads(zlib.decompress(b64decode(body[PACKED], validate=True)))
    except zlib.error as error:
        raise ValueError(str(error)) from None
    set_ = rest.pop("gtid_distances")
    found = {"gtid_set": numbers(set_)} if gtids else {}
    both = rest.pop("partitions").items()
    counts, last = ({name: pair[at] for name, pair in both if pair[at] is not None} for at in (0, 1))
    return {key: body[key] for key in _KEPT} | rest | found | {"counts": counts, "last": last}


def distances(gtid_set: str) -> str:
    """Rewrites a GTID set: each number is replaced by its distance from the previous number."""
    return ",".join(map(_distances, gtid_set.split(",")))


def numbers(text: str) -> str:
    """Restores the GTID set from the ``text`` that ``distances`` returned."""
    return ",".join(map(_numbers, text.split(",")))


# The cache helps because most sources in a large GTID set do not change from one commit to the next.
@lru_cache(maxsize=16)
def _distances(source: str) -> str:
    name, *parts = source.split(":")
    written, last = [name], 0
    for part in parts:
        low, _, high = part.partition("-")
        if not low.isdigit():
            written.append(part)  # the part is a GTID tag, no interval
            continue
        number = int(low)
        written.append(f"{number - last}+{int(high) - number}" if high else f"{number - last}")
        last = int(high or low)
    return ":".join(written)


def _numbers(source: str) -> str:
    name, *parts = source.split(":")
    written, last = [name], 0
    for part in parts:
        if not part[0].isdigit():
            written.append(part)  # the part is a GTID tag, no interval
            continue
        distance, _, more = part.partition("+")
        low = last + int(distance)
        last = low + int(more or 0)
        written.append(f"{low}-{last}" if more else f"{low}")
    return ":".join(written)


VERSION = 7
# the format version of entries with each of these features
_PACKED, _COPIED, _REPAIRED, _MARKED, _FOLDED, _UNREADABLE = 2, 3, 4, 5, 6, 7
_NOT_PACKED = 1
_LARGE = 32_768  # entries with at least this number of bytes are packed
_LEFT_OUT = frozenset(
    {
        "prepared",
        "last",
        "shown",
        "fragmented",
        "copy",
        "server_version",
        "marks",
        "folds_names",
        "debezium",
        "debezium_partial",
    }
)  # These fields are omitted if they are empty.


_ROW_FILTERS = "row_filters"


class PreparedXa(NamedTuple):
    """A prepared XA transaction in the leader's binlog. ``gtid`` is None without GTIDs. ``file`` and ``offset`` are the
    position of its first event. ``sql_mode`` is the SQL mode under which its rows were written (``Begin.sql_mode``).
    """

    gtid: str | None
    file: str
    offset: int
    sql_mode: str | None = None


class Mark(NamedTuple):
    """The start of a producer without Kafka transactions (module kafka.fragments). ``epoch`` is the epoch of that
    producer, and ``offset`` is the offset of its mark in the topic, or -1 until that offset is known.
    """

    epoch: int
    offset: int


@dataclass(frozen=True, slots=True)
class Partial:
    """The part of a leader's ``transaction`` that is committed to Kafka. It has ``rows`` rows in ``records`` records.

    ``rows`` is None in an entry of an older cdc, which counts only records. ``newest`` is the ``content_sum`` of the
    last committed row. A producer that resumes the transaction on another server compares this sum, because that
    server may have logged the transaction with other rows, for example with the rows that foreign keys have changed.
    ``unordered`` is the sum of the checksums of those committed rows that another server may log in another order; it
    is left out of the JSON if it is 0.
    """

    transaction: str
    records: int
    rows: int | None
    newest: int = 0
    unordered: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """The state that is committed to Kafka: all events before ``position`` (and in ``gtid_set``), and all sequences
    below ``next_sequence``.

    ``counts`` counts the records of each ``topic/partition``; ``instance`` identifies the process that wrote the entry.
    ``gtids_complete`` is true if ``gtid_set`` contains all earlier transactions; reading can then resume by GTIDs
    alone. ``prepared`` are the unfinished XA transactions by xid. ``last`` is the newest sequence in each
    ``topic/partition``; it is empty in layout "single", which has one partition. ``shown`` is the position of the
    newest binlog event that was written to Kafka although it belongs to no record. ``fragmented`` is true if a record
    was written as several messages, so that readers must join them. ``copy`` is the state of table copies, running and
    finished (module producer.copy.state). ``server_version`` is the leader's version. ``marks`` are the starts without
    Kafka transactions, in the order of their epochs. ``folds_names`` is true if the leader has
    ``lower_case_table_names`` 1. ``debezium`` is the newest sequence of which a message in Debezium's format is in each
    ``topic/partition``, and ``debezium_partial`` counts such messages in the transaction of ``partial``. The ten fields
    in ``_LEFT_OUT`` are left out of the JSON if they are empty. ``filters`` are the filters of the producer that wrote
    the entry, in the form of ``Filters.listed``.
    ``origin`` are the GTIDs of the transactions before the first record; None if it is possible that some of them have
    no GTID. ``filters`` and ``origin`` are None in entries of older versions of cdc; ``origin`` is also None in newer
    entries of a log that an older version began.
    """

    next_sequence: int
    position: Position
    gtid_set: str
    server_uuid: str
    partial: Partial | None = None
    counts: dict[str, int] = field(default_factory=dict)
    instance: str = ""
    gtids_complete: bool = False
    prepared: dict[str, PreparedXa] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    shown: Position | None = None
    fragmented: bool = False
    filters: dict[str, list[str]] | None = None
    origin: str | None = None
    copy: dict[str, Any] | None = None
    server_version: str = ""
    marks: tuple[Mark, ...] = ()
    folds_names: bool = False
    debezium: dict[str, int] = field(default_factory=dict)
    debezium_partial: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> bytes:
        # An entry goes with each commit. asdict, which copies all values, would take three quarters of the time.
        body = {name: getattr(self, name) for name in _NAMES}
        body |= {"position": self.position._asdict(), "shown": self.shown and self.shown._asdict()}
        body["partial"] = self.partial and asdict(self.partial)
        body = {key: value for key, value in body.items() if value or key not in _LEFT_OUT}
        body = {key: value for key, value in body.items() if value is not None or key not in ("filters", "origin")}
        if self.filters and "rows" in self.filters:
            # In a field of its own, because an older version of cdc refuses a field that it does not know.
            body["filters"] = {key: listed for key, listed in self.filters.items() if key != "rows"}
            body[_ROW_FILTERS] = self.filters["rows"]
        if self.partial and not self.partial.unordered:
            del body["partial"]["unordered"]  # so that an older version of cdc can read the entry
        copied = _REPAIRED if (self.copy or {}).get("repairs") else _COPIED
        body["version"] = _MARKED if self.marks else copied if self.copy else _NOT_PACKED
        body["version"] = _FOLDED if self.folds_names else body["version"]
        body["version"] = _UNREADABLE if (self.copy or {}).get("unreadable") else body["version"]
        text = _text(body)
        return text if len(text) < _LARGE else _text(packed(body | {"version": max(body["version"], _PACKED)}))

    @property
    def epoch(self) -> int:
        """The epoch of the newest start without Kafka transactions; 0 if there was no such start."""
        return self.marks[-1].epoch if self.marks else 0

    @property
    def partitions(self) -> list[Partition]:
        """The partitions that contain records, or may receive the next record."""
        return [partition_of(name) for name in self.counts]

    @classmethod
    def parse(cls, text: bytes, *, where: str) -> Self:
        """Reads a whole entry. ``where`` (topic and offset) is used only in errors.

        Raises PromiseError if ``text`` is not an entry, UserError for fields that only a newer version of cdc has.
        """
        body = _body(text, where=where, gtids=True)
        body.pop("version", None)
        if rows := body.pop(_ROW_FILTERS, None):
            body["filters"] = (body.get("filters") or {}) | {"rows": rows}
        if isinstance(partial := body.get("partial"), dict) and partial.pop("cut", None) is not None:
            # An older version of cdc wrote this entry. The entry counts only records; its field "cut" described how
            # the rows were split into records.
            partial["rows"] = None
        unknown = _unknown(cls, body) + (_unknown(Partial, body["partial"]) if body.get("partial") else [])
        body = {key: value for key, value in body.items() if key not in unknown}
        try:
            body["position"] = Position(**body["position"])
            if body["partial"] and not unknown:
                body["partial"] = Partial(**body["partial"])
            body["prepared"] = {xid: PreparedXa(*fields_) for xid, fields_ in body.get("prepared", {}).items()}
            if "shown" in body:
                body["shown"] = Position(**body["shown"])
            body["marks"] = _marks(body)
            entry = cls(**body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_entry(error, text, where=where) from None
        if unknown:
            # The producer would write its next entry without these fields, so their content would be lost.
            raise _newer(f"it has {', '.join(map(repr, unknown))}", where=where)
        return entry


_NAMES = tuple(each.name for each in fields(Entry))


def _marks(body: Mapping[str, Any]) -> tuple[Mark, ...]:
    return tuple(Mark(*map(int, mark)) for mark in body.get("marks", ()))


def _unknown(kind: type[Entry] | type[Partial], body: object) -> list[str]:
    """Returns the names of the fields in ``body`` that ``kind`` does not have."""
    known = {each.name for each in fields(kind)}
    return [key for key in body if key not in known] if isinstance(body, dict) else []


@dataclass(frozen=True, slots=True)
class Commits:
    """The part of an entry that readers need. All sequences below ``next_sequence`` are committed, in these
    ``partitions``. If ``fragmented`` is true, some records are split into fragments.

    ``gtid_set`` contains the GTIDs of all transactions that the producer has read, including transactions without
    records, unless it was not to be unpacked (``parse``); ``origin`` contains the GTIDs of the transactions before the
    first record; it is None if they are unknown.
    If only a part of the newest transaction is committed, ``of_open`` is the number of the committed records of this
    part. ``written_at`` is the time at which the producer wrote the entry, in seconds since 1970; it is None if the
    topic does not store this time. ``server_version`` is the leader's version; it is empty in entries that an older
    version of cdc wrote. ``marks`` are the starts without Kafka transactions. ``folds_names`` is true if the names in
    the records are in lower case, since the leader has ``lower_case_table_names = 1``. ``leaves_rows_out`` is true if
    the producer leaves rows of some tables out. ``copying`` are the tables whose copy has not ended: their rows may be
    missing or different on a follower that has applied all records.
    """

    next_sequence: int
    partitions: tuple[Partition, ...]
    fragmented: bool = False
    gtid_set: str = ""
    origin: str | None = None
    of_open: int = 0
    written_at: float | None = None
    server_version: str = ""
    marks: tuple[Mark, ...] = ()
    folds_names: bool = False
    leaves_rows_out: bool = False
    copying: tuple[tuple[str, str], ...] = ()

    def silence(self, *, now: float) -> float | None:
        """Seconds from the producer's last entry until ``now``; None if the time of that entry is unknown."""
        return None if self.written_at is None else max(0.0, now - self.written_at)

    @classmethod
    def parse(cls, text: bytes, *, where: str, gtids: bool = False) -> Self:
        """Reads an entry of the commit log. The GTID set of a packed entry is empty unless ``gtids`` is true. Raises
        PromiseError if ``text`` is not an entry, UserError for an entry of a newer version of cdc.

        Unknown fields are ignored, because a new field that readers must know increases the version.
        """
        body = _body(text, where=where, gtids=gtids)
        try:
            partitions = tuple(sorted(partition_of(name) for name in body["counts"]))
            gtid_set, origin = str(body.get("gtid_set", "")), body.get("origin")
            of_open = int((body.get("partial") or {}).get("records", 0))
            whole = cls(int(body["next_sequence"]), partitions, bool(body.get("fragmented")), gtid_set, origin, of_open)
            folds = bool(body.get("folds_names"))
            version = str(body.get("server_version", ""))
            rows = bool(body.get(_ROW_FILTERS))
            marks, copying = _marks(body), _copying(body.get("copy") or {})
            return replace(
                whole, server_version=version, marks=marks, folds_names=folds, leaves_rows_out=rows, copying=copying
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _no_entry(error, text, where=where) from None


def _copying(copy: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Returns the tables that are left to copy, from the state of table copies."""
    listed = [*copy.get("fresh", ()), *copy.get("again", ())]
    return tuple(dict.fromkeys((str(database), str(table)) for database, table in listed))


def _text(body: dict[str, Any]) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _body(text: bytes, *, where: str, gtids: bool) -> dict[str, Any]:
    """Parses and unpacks an entry of a known version. ``where`` (topic and offset) is used only in errors. The GTID set
    is unpacked only if ``gtids`` is true.

    Raises UserError for an entry of a newer version of cdc, PromiseError if ``text`` is not a JSON object.
    """
    try:
        body: dict[str, Any] = json.loads(text)
        version = int(body.get("version", 0))
        if version <= VERSION and PACKED in body:
            body = unpacked(body, gtids=gtids)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _no_entry(error, text, where=where) from None
    if version > VERSION:
        raise _newer(f"it is of version {version}, this cdc knows those up to {VERSION}", where=where)
    return body


def _newer(what: str, *, where: str) -> UserError:
    """Returns the error for an entry that only a newer version of ``cdc`` can read; ``what`` is the reason."""
    return UserError(
        f"this entry of the commit log was written by a newer cdc: {what}",
        code="CDC-COMMIT-LOG-NEWER",
        where=where,
        hint="upgrade this cdc to the version that wrote it, or a later one",
    )


def _no_entry(error: Exception, text: bytes, *, where: str) -> PromiseError:
    """Returns the error for a message that is not an entry of the commit log."""
    return PromiseError(
        f"not an entry of the commit log ({error}): {text[:80]!r}",
        code="CDC-COMMIT-LOG-INVALID",
        where=where,
        hint="something else writes to this topic; start over with a new one",
    )
