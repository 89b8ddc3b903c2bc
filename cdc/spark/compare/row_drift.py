"""Compares both sides' folds: finds the rows that differ, with cause and evidence, and rows with discontinuities.

Keyed rows are missing (only the leader has the row), extra (only the follower has it), or different (both have it, with
other values). A column that one image lacks counts as NULL in this image. A row that neither fold contains has drifted,
too, if one side deleted it and the other side never changed it: the row is older than the topic, and one side still has
it.

Keyless rows are a multiset: equal images are counted, and the difference in count is the number of rows missing or
extra.

If only one side has changed a row of a table older than the topics, the other side has the before image of the first
change. So the row is different only until it is changed back. The same holds for a row that both sides had before an
ALTER and that only one side has changed later.

A row did not drift if the leader deleted it, its topic never contained it, and the consumer found it missing. A row did
not drift if the leader did not have it at the row's last repair: after this repair, the follower does not have the row,
either. For rows of tables that were copied into the leader's stream see ``compare.copied_tables``.

Samples of drifted rows contain rows of each table, so that a table with many drifted rows does not hide other tables.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.spark.compare.causes import with_causes
from cdc.spark.compare.copied_tables import KIND_OF_COPIED, NO_COPIES, Copied, with_copies
from cdc.spark.compare.fold import IDENTITY
from cdc.spark.compare.tally import Table
from cdc.spark.ddl.definitions import Unmatched
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.small_data import beside, in_one_part
from cdc.spark.streams.contents import changes_at, offsets

__all__ = [
    "JOINED",
    "ORDER",
    "Discontinuity",
    "DriftedRow",
    "as_folded",
    "compare",
    "compared",
    "discontinuities",
    "drifted_rows",
    "evenly",
    "fold_of",
    "in_order",
    "key_lines",
    "not_equal",
    "sampled",
    "with_last_changes",
    "with_offsets",
]

ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")
_MOST_TABLES = 1_000  # a sample contains rows of at least this number of tables, if that many tables have drifted rows

Row = TypeVar("Row")


def sampled(drifted: DataFrame, tables: int, *, most: int) -> DataFrame:
    """Selects about ``most`` of the ``drifted`` rows, in no order. ``tables`` is the number of tables with such rows.

    The sample has at least one row of each of the first 1,000 tables.
    """
    share = max(1, most // max(1, tables))
    along = Window.partitionBy("database", "table").orderBy(*ORDER[2:])
    # If the rank is the only filter, Spark keeps no more than ``most`` rows of each table.
    ranked = drifted.withColumn("rank", F.row_number().over(along)).where(F.col("rank") <= most)
    shared = F.col("rank") > share
    return ranked.orderBy(shared, *ORDER).limit(max(most, min(tables, _MOST_TABLES))).drop("rank")


def evenly(names: Sequence[Row], most: int) -> list[int]:
    """Selects the indexes of ``most`` rows, so that each table has its share; ``names`` are the rows' tables."""
    seen: dict[Row, int] = {}
    turns = []
    for at, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        turns.append((seen[name], at))
    return sorted(at for _, at in sorted(turns)[:most])


_SIDES = ("leader", "follower")
_FOLDED = ("net", "image", "last", "era", "marked", "breaks", "broken", "found", "stood")
JOINED = [*IDENTITY, *(f"{side}_{name}" for side in _SIDES for name in _FOLDED)]
# SQL that is true if side {0} has not changed the row in its log, or not since an ALTER after which side {1} has
# changed the row. If both sides had the same row before, side {0} then has the before image of {1}'s first change. An
# ALTER may add and drop columns; all other columns keep their values.
_AS_FOUND = """
    keyed AND {1}_found IS NOT NULL AND NOT leader_marked.kind <=> 'conflict' AND
        CASE WHEN {0}_last IS NULL THEN older AND NOT copied AND {1}_stood IS NULL
            ELSE {0}_era < {1}_era AND {0}_image = {1}_stood
                AND NOT exists({1}_stood, p -> exists({1}_found, q -> q.column = p.column AND q.value != p.value)) END
"""
_NOW = "IF(coalesce({found}, false), {1}_found, {0}_image)"
_KIND = f"""
    CASE
        WHEN unknown OR NOT comparable THEN NULL
        WHEN leader_image = follower_image AND keyed THEN NULL
        WHEN leader_image IS NOT NULL AND follower_image IS NOT NULL AND keyed THEN 'different'
        WHEN leader_image IS NOT NULL AND keyed THEN 'missing'
        WHEN follower_image IS NOT NULL AND keyed THEN 'extra'
        WHEN keyed AND leader_marked.kind = 'chunk' AND leader_marked.sequence = leader_last.sequence THEN NULL
        WHEN copied AND keyed THEN {KIND_OF_COPIED}
        WHEN keyed AND follower_last IS NULL AND leader_marked.kind = 'conflict'
            AND leader_marked.sequence = leader_last.sequence THEN NULL
        WHEN keyed AND leader_last IS NOT NULL AND follower_last IS NOT NULL THEN NULL
        WHEN leader_net > follower_net THEN 'missing'
        WHEN leader_net < follower_net THEN 'extra'
    END
"""
_DIFFERING = """
    IF(kind = 'different', array_sort(array_distinct(transform(
        array_union(array_except(leader_image, follower_image), array_except(follower_image, leader_image)),
        p -> p.column))), array())
"""
_FOREIGN = """
    IF(follower_marked.kind = 'foreign', struct(
        follower_marked.sequence, follower_marked.file, follower_marked.position,
        follower_marked.transaction, follower_marked.ts_us), NULL)
"""


@dataclass(frozen=True, slots=True)
class DriftedRow:
    """One drifted identity; images and identity map columns to their values as JSON text, without NULLs.

    ``rows`` is 1 in a keyed table, and the difference in count in a keyless table. ``leader_last`` and
    ``follower_last`` are the last changes on each side (sequence, file, position), None if there are no changes;
    ``foreign`` is the last foreign write of the row (its position, transaction and ts_us). ``cause`` is one of the
    causes in ``compare.causes``, and ``evidence`` is one line that shows it. ``since_us`` is the commit time, in µs
    since 1970, of the last change on either side: the row has had its present difference since then, or since a later
    statement; None if the time of either side's last change is unknown.
    """

    database: str
    table: str
    kind: str
    rows: int
    keyed: bool
    identity: dict[str, str]
    columns: list[str]
    leader_image: dict[str, str] | None
    follower_image: dict[str, str] | None
    leader_last: dict[str, Any] | None
    follower_last: dict[str, Any] | None
    foreign: dict[str, Any] | None
    cause: str
    evidence: str
    since_us: int | None = None


_COLUMNS = tuple(name for name in DriftedRow.__dataclass_fields__ if name != "since_us")


@dataclass(frozen=True, slots=True)
class Discontinuity:
    """A keyed row with changes whose before image was not the image added last; ``times`` counts these changes,
    ``last`` is the newest of these changes.

    ``partition`` and ``offset`` are the place of the record of ``last`` in Kafka; None if this audit did not read it.
    """

    side: str
    database: str
    table: str
    identity: dict[str, str]
    times: int
    last: dict[str, Any]
    partition: str | None = None
    offset: int | None = None


def compare(leader: DataFrame, follower: DataFrame, copied: Copied = NO_COPIES) -> DataFrame:
    """Compares both folds with a full outer join. ``kind`` is NULL for equal rows, and for rows that are not compared.

    The join needs no shuffle: both folds are grouped by the columns that they are joined on.
    """
    named = [_named(side, rows) for side, rows in (("leader", leader), ("follower", follower))]
    # Spark does not notice that the results of this join, and of the joins in a fold, are in one partition. So the
    # results are put into one partition again.
    one, other = map(in_one_part, named)
    joined = in_one_part(one.join(other, IDENTITY, "full_outer"))
    counts = {name: F.coalesce(name, F.lit(0)) for side in _SIDES for name in (f"{side}_net", f"{side}_breaks")}
    return compared(joined.withColumns(counts), copied)


def compared(joined: DataFrame, copied: Copied = NO_COPIES) -> DataFrame:
    """Compares both sides' images in ``joined``, rows with both sides' columns of a fold (``JOINED``), and adds columns
    with the result."""
    joined = with_copies(joined, copied)
    now = {
        f"{one}_image": F.expr(_NOW.format(one, other, found=_AS_FOUND.format(one, other)))
        for one, other in (_SIDES, reversed(_SIDES))
    }
    joined = joined.withColumns({f"{side}_folded": F.col(f"{side}_image") for side in _SIDES} | now)
    found = {"kind": _KIND, "rows": "IF(keyed, 1, abs(leader_net - follower_net))"}
    # A keyed row's net is off by one after an unlogged change; its image shows whether the row exists.
    there = "IF(unknown, 0L, IF(keyed, IF({0}_image IS NOT NULL, 1L, 0L), {0}_net))"
    found |= {f"{side}_rows": there.format(side) for side in _SIDES}
    joined = joined.withColumns({name: F.expr(sql) for name, sql in found.items()})
    found = {"columns": _DIFFERING}
    for side in _SIDES:
        content = f"IF(keyed, xxhash64(identity, {side}_image), xxhash64(identity, {side}_net))"
        found[f"{side}_hash"] = f"IF({side}_rows != 0, {content}, 0L)"
    return joined.withColumns({name: F.expr(sql) for name, sql in found.items()})


def as_folded(comparison: DataFrame) -> DataFrame:
    """Restores both sides' folds from a comparison: returns the comparison's rows with the columns ``JOINED``."""
    return comparison.select(*(
        F.col(f"{name.removesuffix('_image')}_folded").alias(name) if name.endswith("_image") else name
        for name in JOINED
    ))  # fmt: skip


def not_equal(comparison: DataFrame) -> DataFrame:
    """Selects the rows of a comparison that are listed, not only counted: drifted rows, and rows with
    discontinuities.
    """
    return comparison.where("comparable AND (kind IS NOT NULL OR leader_breaks + follower_breaks > 0)")


def _named(side: str, rows: DataFrame) -> DataFrame:
    """Prefixes each column of one side's fold with the name of the side. In a keyless table, the image of a row that
    exists is its identity.
    """
    image = F.expr("IF(keyed, image, IF(net > 0, identity, NULL))")
    fields = {name: F.col(name) for name in _FOLDED} | {"image": image}
    return rows.select(*IDENTITY, *(field.alias(f"{side}_{name}") for name, field in fields.items()))


def fold_of(joined: DataFrame, side: str) -> DataFrame:
    """Selects one side's fold from rows with both sides' columns."""
    there = joined.where(f"{side}_last IS NOT NULL")
    return there.select(*IDENTITY, *(F.col(f"{side}_{name}").alias(name) for name in _FOLDED))


def drifted_rows(
    comparison: DataFrame,
    statements: Sequence[Unmatched] = (),
    names: Collection[tuple[str, str]] = (),
    transactions: DataFrame | None = None,
) -> DataFrame:
    """Selects the drifted rows, with the fields of DriftedRow except ``since_us``. For the other arguments see
    ``with_causes``.
    """
    rows = with_causes(comparison.where("kind IS NOT NULL"), statements, names, transactions)
    rows = rows.withColumn("foreign", F.expr(_FOREIGN))
    for name in ("identity", "leader_image", "follower_image"):
        rows = rows.withColumn(name, F.map_from_entries(name))
    return rows.select(*_COLUMNS)


def key_lines(drifted: DataFrame, tables: Sequence[Table], *, most: int) -> Iterator[str]:
    """Yields the keys of ``drifted_rows`` as JSON lines. For each table it yields all keys or none, and for all tables
    together at most ``most`` keys.

    ``tables`` contains the counts of rows; tables with the fewest drifted rows come first.
    """
    listed, total = [], 0
    for table in sorted(tables, key=lambda each: each.drifted):
        total += table.drifted
        if table.drifted and total <= most:
            listed.append({"database": table.database, "table": table.table})
    if not listed:
        return
    names = beside(local_frame(drifted.sparkSession, listed, "database STRING, table STRING"))
    columns = F.to_json(F.struct("database", "table", "keyed", "identity")).alias("line")
    for row in drifted.join(names, ["database", "table"]).select(columns).toLocalIterator():
        yield row["line"]


def discontinuities(comparison: DataFrame, sides: Iterable[str], *, limit: int) -> list[Discontinuity]:
    """Collects, for each side in ``sides``, the first ``limit`` rows with a before image that differs from the row's
    previous image.
    """
    found = []
    for side in sides:
        rows = comparison.where(f"{side}_breaks > 0").orderBy(f"{side}_broken.sequence").limit(limit)
        for row in rows.withColumn("identity", F.map_from_entries("identity")).collect():
            last = row[f"{side}_broken"].asDict()
            found.append(
                Discontinuity(side, row["database"], row["table"], row["identity"], row[f"{side}_breaks"], last)
            )
    return found


def with_offsets(records: DataFrame, found: Iterable[Discontinuity]) -> list[Discontinuity]:
    """Adds partition and offset to the discontinuities in ``found`` whose record is in ``records``."""
    listed = list(found)
    known = {
        side: offsets(records, side, [each.last["sequence"] for each in listed if each.side == side])
        for side in {each.side for each in listed}
    }
    nowhere = (None, None)
    return [
        replace(each, partition=partition, offset=offset)
        for each in listed
        for partition, offset in [known[each.side].get(each.last["sequence"], nowhere)]
    ]


def with_last_changes(records: DataFrame, transactions: DataFrame, rows: Sequence[DriftedRow]) -> list[DriftedRow]:
    """Adds ``since_us`` to ``rows``, and puts their columns in the order of the table, the key first.

    ``transactions`` contains the times of changes that are not in ``records``.
    """
    lasts = [{side: getattr(row, f"{side}_last") for side in _SIDES} for row in rows]
    wanted = {side: {each[side]["sequence"] for each in lasts if each[side]} for side in _SIDES}
    changes = changes_at(records, transactions, wanted)
    found = []
    for row, both in zip(rows, lasts, strict=True):
        places = [(side, last["sequence"]) for side, last in both.items() if last]
        # A change whose time is unknown may be older or newer than the other side's change: then ``since_us`` is
        # unknown, too.
        complete = all(place in changes.times for place in places)
        since_us = max(map(changes.times.__getitem__, places), default=None) if complete else None
        order = next((changes.columns[place] for place in places if place in changes.columns), ())
        found.append(replace(in_order(row, order), since_us=since_us))
    return found


def in_order(row: DriftedRow, order: Sequence[str]) -> DriftedRow:
    """Sorts the columns of ``row`` in this ``order``; columns that are not in ``order`` follow, sorted by name."""
    at = {name: number for number, name in reversed(list(enumerate(order)))}

    def place(name: str) -> tuple[int, str]:
        return at.get(name, len(order)), name

    def ordered(image: dict[str, str]) -> dict[str, str]:
        return {name: image[name] for name in sorted(image, key=place)}

    return replace(
        row,
        identity=ordered(row.identity),
        columns=sorted(row.columns, key=place),
        leader_image=row.leader_image and ordered(row.leader_image),
        follower_image=row.follower_image and ordered(row.follower_image),
    )
