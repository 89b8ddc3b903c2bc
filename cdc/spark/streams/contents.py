"""Surveys the contents of both topics: the counts, sequences, times and tables of their records, and the effects of
statements."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import itemgetter, or_, xor

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, TEXT, Act
from cdc.spark.input.records import COPYING, LEADER
from cdc.spark.input.small_data import Query, local_frame
from cdc.spark.streams.row_digests import KEY, SHAPE, UNFIT
from cdc.sql.effects import MAINTAIN

__all__ = [
    "CHUNKS",
    "LEADERS_CHUNKS",
    "Changes",
    "Contents",
    "Shape",
    "changes_at",
    "joined",
    "offsets",
    "statements",
    "survey",
]


# If each sequence from the first to the last occurs once, all hashes cancel out except the hash of the first sequence
# and the hash of the sequence after the last.
_FINGERPRINT = "bit_xor(xxhash64(sequence) ^ xxhash64(try_add(sequence, 1)))"
_OF_ENDS = "xxhash64(min(sequence)), xxhash64(try_add(max(sequence), 1))"
CHUNKS = "valid AND chunk IS NOT NULL AND NOT coalesce(chunk.repair, false)"
"""SQL that is true for records that contain a chunk of a table copy, but not for repairs of some rows."""
LEADERS_CHUNKS = f"{CHUNKS} AND side = '{LEADER}'"
"""SQL that is true for the leader's records that contain a chunk of a table copy."""
_MARKS_COPY = f"{CHUNKS} AND (chunk.after IS NULL OR chunk.upto IS NULL)"
_MARK = "IF(chunk.{} IS NULL, named_struct('action', '{}', 'uri', {none}, 'to', {none}, 'like', {none}), NULL)"
_MARKS = ", ".join(
    _MARK.format(end, action, none="CAST(NULL AS STRING)")
    for end, action in (("after", BEGINS_COPY), ("upto", ENDS_COPY))
)
_IS_STATEMENT = f"""
    valid AND query IS NOT NULL AND affects IS NOT NULL
        AND (side = '{LEADER}' OR NOT coalesce(copying, false) OR transaction NOT LIKE '{COPYING}%')
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of a table's records from sequence ``first`` to ``last``: their columns and their key.

    ``number`` is the hash of both; it is None if no digests can be computed from these records
    (``streams.row_digests``). ``key`` is the hash of the key; it is None for a table without a key.
    """

    number: int | None
    key: int | None
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Contents:
    """Describes one topic's records: their number, the number of broken records, the first and last sequence (None in
    an empty topic), and the resources and tables that occur.

    ``first_us`` and ``last_us`` are the earliest and the latest commit time. ``noted``, ``conflicts`` and ``copied``
    are true if the topic contains, respectively, the consumer's ledger, its table of conflicts, and its note of the
    base copy. ``silent_keys`` is true if the server does not log changes that its foreign keys make. ``unchecked`` maps
    each table to the last sequence of rows that were changed with foreign key checks off. ``own`` is true if the topic
    contains records of a database with the name of the consumer's own database, ``chunks`` if it contains chunks of
    table copies. The state of an audit contains these fields.

    The number of ``rows``, the ``fingerprint`` of the sequences, and each table's ``shapes`` are only known for records
    that were read together. Except for collisions of 64 bits, the fingerprint is 0 only if each sequence from the first
    to the last occurs an odd number of times.
    """

    records: int
    broken: int
    first: int | None
    last: int | None
    first_us: int | None
    last_us: int | None
    resources: frozenset[str]
    tables: frozenset[tuple[str, str]]
    noted: bool = False
    conflicts: bool = False
    silent_keys: bool = False
    unchecked: Mapping[tuple[str, str], int] = field(default_factory=dict)
    rows: int = 0
    fingerprint: int | None = None
    shapes: Mapping[tuple[str, str], Sequence[Shape]] = field(default_factory=dict)
    own: bool = False
    copied: bool = False
    chunks: bool = False

    @property
    def end(self) -> int:
        """The last sequence, -1 in an empty topic."""
        return -1 if self.last is None else self.last

    @property
    def keyless(self) -> bool:
        """Whether there are records of tables without a key."""
        return any(each.key is None for found in self.shapes.values() for each in found)


def survey(records: DataFrame) -> Query[Mapping[str, Contents]]:
    """Maps each side to the contents of its topic, without the consumer's own tables; a side whose topic is empty is
    absent."""
    shape = F.expr(f"IF(rows IS NULL, NULL, {SHAPE})").alias("shape")
    groups = records.groupBy("side", "valid", "resource", "database", "table", shape).agg(
        F.count("*").alias("records"),
        F.sum(F.expr("coalesce(size(rows), 0)")).alias("rows"),
        F.min("sequence").alias("first"),
        F.max("sequence").alias("last"),
        F.min("ts_us").alias("first_us"),
        F.max("ts_us").alias("last_us"),
        F.expr("bool_or(IF(chunk IS NULL, coalesce(flags & 16, 0) = 0, NULL))").alias("silent"),
        F.max(F.expr("IF(flags & 2 != 0, sequence, NULL)")).alias("unchecked"),
        F.expr(_FINGERPRINT).alias("fingerprint"),
        F.expr(f"array({_OF_ENDS})").alias("of_ends"),
        F.expr(f"min({KEY})").alias("key"),
        F.expr(f"bool_or({UNFIT})").alias("unfit"),
        F.expr("bool_or(chunk IS NOT NULL)").alias("chunks"),
    )
    return Query(groups, _by_side)


def _by_side(groups: Sequence[Row]) -> Mapping[str, Contents]:
    return {
        side: _contents([group for group in groups if group["side"] == side])
        for side in sorted({group["side"] for group in groups})
    }


def _contents(rows: Sequence[Row]) -> Contents:
    """Adds up the contents of one side from its groups of records."""
    valid = [row for row in rows if row["valid"]]
    of_tables: dict[tuple[str, str], list[Row]] = {}
    for row in valid:
        if row["table"] is not None:
            of_tables.setdefault((row["database"], row["table"]), []).append(row)
    tables = [name for name in of_tables if name[0] != CHECKPOINT_DATABASE]
    return Contents(
        records=sum(row["records"] for row in rows),
        broken=sum(row["records"] for row in rows if not row["valid"]),
        first=min((row["first"] for row in valid), default=None),
        last=max((row["last"] for row in valid), default=None),
        first_us=min((row["first_us"] for row in valid), default=None),
        last_us=max((row["last_us"] for row in valid), default=None),
        resources=frozenset(row["resource"] for row in valid),
        tables=frozenset(tables),
        noted=(CHECKPOINT_DATABASE, "ledger") in of_tables,
        conflicts=(CHECKPOINT_DATABASE, "conflicts") in of_tables,
        silent_keys=any(row["silent"] for name in tables for row in of_tables[name]),
        unchecked={name: max(found) for name in tables if (found := _unchecked(of_tables[name]))},
        rows=sum(row["rows"] for row in rows),
        fingerprint=_fingerprint(valid),
        shapes={name: [_shape(row) for row in of_tables[name] if row["shape"] is not None] for name in tables},
        own=any(row["database"] == CHECKPOINT_DATABASE for row in valid),
        copied=(CHECKPOINT_DATABASE, "copies") in of_tables,
        chunks=any(row["chunks"] for row in valid),
    )


def _fingerprint(groups: Sequence[Row]) -> int:
    """Computes the fingerprint of the sequences in all ``groups``."""
    if not groups:
        return 0
    first, last = min(groups, key=itemgetter("first")), max(groups, key=itemgetter("last"))
    found: int = reduce(xor, (group["fingerprint"] for group in groups), first["of_ends"][0] ^ last["of_ends"][1])
    return found


def _unchecked(groups: Iterable[Row]) -> list[int]:
    return [row["unchecked"] for row in groups if row["unchecked"] is not None]


def _shape(group: Row) -> Shape:
    return Shape(None if group["unfit"] else group["shape"], group["key"], group["first"], group["last"])


def joined(before: Mapping[str, Contents], since: Mapping[str, Contents]) -> Mapping[str, Contents]:
    """Adds up the contents of both topics: ``before`` describes the records of earlier audits, ``since`` the new
    records."""
    both = {side: _and_then(before[side], since[side]) for side in before.keys() & since.keys()}
    return {**before, **since, **both}


def _and_then(one: Contents, two: Contents) -> Contents:
    def found(values: Iterable[int | None]) -> list[int]:
        return [value for value in values if value is not None]

    return Contents(
        records=one.records + two.records,
        broken=one.broken + two.broken,
        first=min(found((one.first, two.first)), default=None),
        last=max(found((one.last, two.last)), default=None),
        first_us=min(found((one.first_us, two.first_us)), default=None),
        last_us=max(found((one.last_us, two.last_us)), default=None),
        resources=one.resources | two.resources,
        tables=one.tables | two.tables,
        noted=one.noted or two.noted,
        conflicts=one.conflicts or two.conflicts,
        silent_keys=one.silent_keys or two.silent_keys,
        unchecked={**one.unchecked, **two.unchecked},
        own=one.own or two.own,
        copied=one.copied or two.copied,
        chunks=one.chunks or two.chunks,
    )


def offsets(records: DataFrame, side: str, sequences: Iterable[int]) -> Mapping[int, tuple[str, int]]:
    """Maps the ``sequences`` of one side that are in ``records`` to their partition and offset."""
    held = records.where(F.col("side") == side).where(F.col("sequence").isin(sorted(set(sequences))))
    return {row["sequence"]: (row["partition"], row["offset"]) for row in held.collect()}


@dataclass(frozen=True, slots=True)
class Changes:
    """The commit ``times`` of changes, in µs since 1970, and the ``columns`` of their rows, with the key's columns
    first. The keys of both mappings are the side and the sequence; either value may be unknown.
    """

    times: Mapping[tuple[str, int], int]
    columns: Mapping[tuple[str, int], Sequence[str]]


def changes_at(records: DataFrame, transactions: DataFrame, wanted: Mapping[str, Collection[int]]) -> Changes:
    """Finds the times and columns of the changes with the ``wanted`` sequences of each side.

    The commit times of earlier audits' records are taken from their ``transactions`` (``streams.transactions``): a
    state keeps all transactions, but few ``records``.
    """
    chosen = [(F.col("side") == side) & F.col("sequence").isin(sorted(each)) for side, each in wanted.items() if each]
    if not chosen:
        return Changes({}, {})
    held = records.where(reduce(or_, chosen)).select("side", "sequence", "ts_us", "key", "columns").collect()
    known = {(row["side"], row["sequence"]): row["ts_us"] for row in held}
    columns = {
        (row["side"], row["sequence"]): [*(row["key"] or ()), *(row["columns"] or ())] for row in held if row["columns"]
    }
    others = [(side, sequence) for side, each in wanted.items() for sequence in each if (side, sequence) not in known]
    if others:
        names = local_frame(records.sparkSession, [{"side": side, "sequence": at} for side, at in others],
                            "side STRING, sequence BIGINT").alias("wanted")  # fmt: skip
        within = F.expr("wanted.side = made.side AND wanted.sequence BETWEEN made.start.sequence AND made.final")
        found = transactions.alias("made").join(F.broadcast(names), within)
        known |= {(row[0], row[1]): row[2] for row in found.select("wanted.*", "made.ts_us").collect()}
    return Changes({place: ts_us for place, ts_us in known.items() if ts_us is not None}, columns)


def statements(records: DataFrame) -> Query[Mapping[str, list[Act]]]:
    """Collects the effects of each side's statements, and the beginnings and ends of its table copies
    (``streams.integrity``), unordered; compared with rows they are few, and fit into the driver.

    Statements that a producer writes when it copies a table did not run on its server. In the follower's topic they are
    left out. A statement that the server ran stays in the result even if its table is copied again: its transaction is
    a transaction of the server.
    """
    acts = (
        records.where(f"({_IS_STATEMENT}) OR ({_MARKS_COPY})")
        .select(
            *("side", "resource", "database", "table", "sequence"),
            F.posexplode(F.expr(f"IF(query IS NULL, array({_MARKS}), affects)")).alias("place", "affect"),
            *("transaction", "file", "position", "ts_us"),
            F.expr(f"coalesce(substring(query, 1, {TEXT}), '')").alias("text"),
            F.expr("query IS NOT NULL AND coalesce(copying, false)").alias("copying"),
        )
        # Maintenance changes no definition and no row; an effect is NULL if a chunk does not begin or end its copy.
        .where(f"affect.action != '{MAINTAIN}'")
        .select(
            *("side", "resource", "database", "table", "sequence", "place", "affect.*"),
            *("transaction", "file", "position", "ts_us", "text", "copying"),
        )
    )
    return Query(acts, _acts_by_side)


def _acts_by_side(rows: Sequence[Row]) -> Mapping[str, list[Act]]:
    found: dict[str, list[Act]] = {}
    for side, resource, database, table, sequence, place, action, uri, *fields in rows:
        of_copy = str(Uri(resource, database, table)) if uri is None else uri
        found.setdefault(side, []).append(Act(sequence, place, action, of_copy, *fields))
    return found
