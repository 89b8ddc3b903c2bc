"""Compares both sides' folds: finds the rows that differ, with cause and evidence, and rows with discontinuities in
their history.

Keyed rows are missing (only the leader has the row), extra (only the follower has it), or different (both have it, with
other values). A column that one image lacks counts as NULL in this image. A row that neither fold contains has drifted,
too, if one side deleted it and the other side never changed it: the row is older than the topic, and the other side
still has it. There are two exceptions, in which the follower is known not to have the row: the consumer noted that it
did not find the row when it applied the leader's delete, or a later repair stated that the leader has no such row.

Keyless rows are a multiset: equal images are counted, and the difference in count is the number of rows missing or
extra.

If only one side has changed a row of a table older than the topics, the other side has the before image of the first
change. So the row is different only until it is changed back. The same holds for a row that both sides had before an
ALTER and that only one side has changed later.

For rows of tables that were copied into the leader's stream see ``compare.copied_tables``.

Samples of drifted rows contain rows of each table, so that a table with many drifted rows does not hide other tables.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc.model.names import Uri
from cdc.spark.compare.copied_tables import KIND_OF_COPIED, NO_COPIES, Copied, with_copies
from cdc.spark.compare.fold import IDENTITY
from cdc.spark.compare.tally import Table
from cdc.spark.ddl.definitions import Unmatched
from cdc.spark.input.small_data import beside, in_one_part, local_frame
from cdc.spark.lag import matched
from cdc.spark.streams.contents import changes_at, offsets

__all__ = [
    "BEFORE_CAPTURE",
    "CONFLICT",
    "FOREIGN",
    "JOINED",
    "MISMATCH",
    "MISSING",
    "ORDER",
    "SCHEMA",
    "SKIPPED",
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
    "with_causes",
    "with_last_changes",
    "with_offsets",
]

# Finds the cause of each drifted row, and evidence for it in one line, from the logs and the statements of both sides.
#
#     foreign write           an errant transaction on the follower (not from the consumer) changed the row last, or
#                             emptied its table
#     skipped sequence        an operator skipped the leader's last change of the row on the follower (--skip)
#     conflict converged      the consumer removed the row, since it shared a unique key with a row of the leader
#     before-image mismatch   a before image differs from the last logged image: the row was changed with the binlog off
#     schema drift            only one side has a statement, so the tables differ; or the follower itself changed the
#                             row (by a trigger or a foreign key) in a transaction of the consumer
#     before the capture      the row differed when a late capture of the follower began (``ddl.late_capture``)
#     missing apply           none of these: the follower has applied later changes, but its log lacks this change
#
# Only a row's last change can be the cause, since each change that the consumer applies makes the row equal to the
# leader's row: a foreign write that the leader has overwritten since is not the cause. A keyless row is identified only
# by its content, so for such a row any of these changes counts.

FOREIGN, SKIPPED, CONFLICT = "foreign write", "skipped sequence", "conflict converged"
MISMATCH, SCHEMA, MISSING = "before-image mismatch", "schema drift", "missing apply"
BEFORE_CAPTURE = "before the capture"

_STATEMENTS = (
    "database STRING, table STRING, statements "
    "ARRAY<STRUCT<side: STRING, sequence: BIGINT, alters: BOOLEAN, cause: STRING, evidence: STRING>>"
)
# SQL for the sequence of the row's last change on the leader. If the table was copied into the leader's stream, and
# neither the leader's log nor the copy contains the row, this is the sequence at which the copy began: the leader did
# not have the row then.
_SAID = "coalesce(leader_last.sequence, began)"
# SQL that is true if both sides changed the row, and the follower's last change is in a transaction of the consumer and
# does not remove a row in conflict: it is not marked as a foreign write or a conflict (``streams.consumer_notes``).
_CHANGED_BY_BOTH = f"""
    {_SAID} IS NOT NULL AND follower_last IS NOT NULL
    AND coalesce(follower_marked.sequence != follower_last.sequence, true)
"""
_LAST_ON_FOLLOWER = "(NOT keyed OR follower_marked.sequence = follower_last.sequence)"
_LAST_ON_LEADER = "(NOT keyed OR leader_marked.sequence = leader_last.sequence)"
_AFTER_FOLLOWER = "(NOT keyed OR coalesce(leader_marked.at > follower_last.sequence, true))"
# A conflict explains nothing if the leader changed the row after the conflict, since the consumer had to apply that
# change.
_BY_CONFLICT = f"{_LAST_ON_FOLLOWER} AND (NOT keyed OR coalesce(leader_last.sequence <= follower_marked.at, true))"
# The follower had applied the leader's last change before a late capture began, and its log has no change of the row
# but the copy with which the capture's topic contains the table.
_BEFORE_CAPTURE = """
    captured_at IS NOT NULL AND coalesce(leader_last.sequence <= captured_at, true)
    AND coalesce(follower_marked.kind = 'chunk' AND follower_marked.sequence = follower_last.sequence,
        follower_last IS NULL)
"""
_EXPLAINS = """
    IF(s.alters,
        (s.side = 'follower' AND kind != 'missing' AND follower_last.sequence > s.sequence)
        OR (s.side = 'leader' AND kind != 'extra' AND leader_last.sequence > s.sequence)
        OR (NOT keyed AND (kind = 'missing' AND follower_last IS NULL OR kind = 'extra' AND leader_last IS NULL)),
        (kind = 'missing' AND follower_last IS NULL) OR (kind = 'extra' AND leader_last IS NULL))
"""


def _case(cause: str, *evidence: str) -> str:
    return f"named_struct('cause', '{cause}', 'evidence', concat({', '.join(evidence)}))"


def _position(change: str) -> str:
    return f"{change}.file, ':', {change}.position"


def _foreign() -> str:
    time = "date_format(timestamp_micros(follower_marked.ts_us), 'yyyy-MM-dd HH:mm:ss')"
    did = """
        CASE kind WHEN 'different' THEN concat('changed ', array_join(columns, ', '))
            WHEN 'missing' THEN 'removed it' ELSE 'added it' END
    """
    transaction = "'follower transaction ', follower_marked.transaction"
    return _case(FOREIGN, transaction, "' at '", _position("follower_marked"), "', '", time, "' UTC: '", did)


def _broken(side: str) -> str:
    change = f"{side}_broken"
    return _case(
        MISMATCH, "'the change at '", _position(change), f"' (sequence ', {change}.sequence, ')'",
        f"' found other values than the log of the {side} had left: something changed it with the binlog off'",
    )  # fmt: skip


def _cause() -> str:
    """Returns the SQL CASE for the cause and the evidence of a drifted row. The column ``statement`` contains the
    statement that explains the drift, or NULL."""
    sequence, note = "leader_marked.sequence", "leader_marked.note"
    skipped = _case(SKIPPED, "'record '", sequence, "' was skipped by an operator: '", note)
    removed = _case(
        CONFLICT, "'removed by the consumer at '", _position("follower_marked"), "': '", "follower_marked.note"
    )
    unfound = _case(
        MISMATCH, "'the consumer did not find it (leader sequence '", sequence, "': '", note, "'), '",
        r"'though the follower\'s log has it: its binlog was off when that changed'",
    )  # fmt: skip
    itself = _case(
        SCHEMA, r"'the consumer\'s transaction at '", _position("follower_last"),
        r"' changed it, and the leader did not: a trigger or foreign key of the follower\'s did'",
    )  # fmt: skip
    overwritten = _case(
        SCHEMA, r"'the consumer\'s transaction at '", _position("follower_last"),
        r"' applied the leader\'s change at '", _position("leader_last"), "' (sequence '", "leader_last.sequence",
        r"') and left another row: something on the follower changed it in that transaction (a trigger?)'",
    )  # fmt: skip
    missing = _case(
        MISSING, r"'the leader\'s change at '", _position("leader_last"), "' (sequence '", "leader_last.sequence",
        r"') is not in the follower\'s log, which is past it'",
    )  # fmt: skip
    return f"""
        CASE
            WHEN leader_marked.kind = 'skipped' AND {_LAST_ON_LEADER} AND {_AFTER_FOLLOWER} THEN {skipped}
            WHEN {_BEFORE_CAPTURE} THEN {_as_copied()}
            WHEN follower_marked.kind = 'foreign' AND {_LAST_ON_FOLLOWER} THEN {_foreign()}
            WHEN follower_marked.kind = 'conflict' AND follower_image IS NULL AND {_BY_CONFLICT} THEN {removed}
            WHEN leader_marked.kind = 'conflict' AND {_LAST_ON_LEADER} AND {_AFTER_FOLLOWER} THEN {unfound}
            WHEN statement IS NOT NULL THEN named_struct('cause', statement.cause, 'evidence', statement.evidence)
            WHEN follower_broken.sequence = follower_last.sequence THEN {_broken("follower")}
            WHEN leader_broken.sequence = leader_last.sequence THEN {_broken("leader")}
            WHEN leader_last IS NULL AND follower_last.sequence < applied_at THEN {_unnamed()}
            WHEN leader_last IS NULL THEN {itself}
            WHEN follower_last.sequence >= applied_at THEN {overwritten}
            ELSE {missing}
        END
    """


def _as_copied() -> str:
    there = ("'the follower had it so when it was copied into its topic at '", _position("follower_last"),
             "' (sequence '", "follower_last.sequence", "')'")  # fmt: skip
    absent = "'the follower did not have it when its table was copied into its topic'"
    evidence = f"IF(follower_last IS NULL, {absent}, concat({', '.join(there)}))"
    return _case(BEFORE_CAPTURE, evidence)


def _unnamed() -> str:
    return _case(
        MISSING, r"'the copy of the leader\'s table that begins with sequence '", "began",
        "' does not name the row, which the follower has had since '", _position("follower_last"),
    )  # fmt: skip


def with_causes(
    drifted: DataFrame,
    statements: Sequence[Unmatched],
    tables: Collection[tuple[str, str]],
    transactions: DataFrame | None = None,
) -> DataFrame:
    """Adds the columns ``cause`` and ``evidence`` to the ``drifted`` rows of a comparison.

    ``statements`` are the statements that only one side has, ``tables`` are the (database, table) of all tables with
    rows in either topic. ``transactions`` (``streams.transactions``) show whether the follower applied a change with
    another result; if they are None, such a change counts as not applied ("missing apply").
    """
    drifted = _with_applied_at(drifted, transactions)
    spark = drifted.sparkSession
    by_table = _by_table(spark, statements, tables)
    joined = drifted.join(beside(by_table), ["database", "table"], "left")
    joined = joined.withColumn("statement", F.expr(f"try_element_at(filter(statements, s -> {_EXPLAINS}), -1)"))
    return joined.withColumn("found", F.expr(_cause())).select("*", "found.cause", "found.evidence")


def _with_applied_at(drifted: DataFrame, transactions: DataFrame | None) -> DataFrame:
    """Adds the column ``applied_at``, a sequence in the follower's topic: the start of the transaction in which the
    consumer applied the leader's last change of the row, or began to copy the row's table. The column is NULL if there
    is no such transaction, or if another client made the follower's last change.
    """
    nothing = F.lit(None).cast("bigint").alias("applied_at")
    changed = drifted.where(_CHANGED_BY_BOTH)
    if transactions is None or changed.isEmpty():
        return drifted.select("*", nothing)
    mark = F.struct("since", F.col("ts_us").alias("at_us"), F.col("start.sequence").alias("begins"))
    applied = transactions.where("kind = 'applied'").select("since", "upto", mark.alias("mark"))
    items = changed.select(F.expr(_SAID).alias("sequence"), F.struct(*drifted.columns).alias("item"))
    found = matched(items, {"by": applied}).select("item.*", F.col("by.begins").alias("applied_at"))
    return found.unionByName(drifted.where(f"NOT ({_CHANGED_BY_BOTH})").select("*", nothing))


def _by_table(spark: SparkSession, statements: Sequence[Unmatched], tables: Collection[tuple[str, str]]) -> DataFrame:
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for each in statements:
        for action, database, table in _touched(each, tables):
            alters = action in ("AlterTable", "CreateIndex", "DropIndex")
            line = {"side": each.side, "sequence": each.sequence, "alters": alters}
            line |= {"cause": _cause_of(each, action), "evidence": each.evidence}
            found.setdefault((database, table), []).append(line)
    rows = [{"database": name[0], "table": name[1], "statements": lines} for name, lines in found.items()]
    return local_frame(spark, rows, _STATEMENTS)


def _touched(statement: Unmatched, tables: Collection[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yields (action, database, table) for each table that the statement changed."""
    for act in statement.acts:
        for uri in (act.uri, act.to):
            if uri:
                database, table = Uri.parse(uri)[1:]
                if table is not None:
                    yield act.action, database, table
                elif act.action == "DropDatabase":
                    yield from ((act.action, *name) for name in tables if name[0] == database)


def _cause_of(statement: Unmatched, action: str) -> str:
    if statement.skipped:
        return SKIPPED
    if action != "TruncateTable":
        return SCHEMA
    return FOREIGN if statement.side == "follower" else MISSING


ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")
_MOST_TABLES = 1_000  # a sample contains rows of at least this number of tables, if that many tables have drifted rows

Row = TypeVar("Row")


def sampled(drifted: DataFrame, tables: int, *, most: int) -> DataFrame:
    """Selects about ``most`` of the ``drifted`` rows, in no order. ``tables`` is the number of tables with such rows.

    The sample has at least one row of each of the first 1,000 tables.
    """
    share = max(1, most // max(1, tables))
    along = Window.partitionBy("database", "table").orderBy(*ORDER[2:])
    # The only filter in this step is on the rank. So Spark keeps no more than ``most`` rows of each table in memory.
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
# SQL that is true if side {0} must still have the row in the form in which side {1}'s first change found it, provided
# that both sides had the same row before that change. This is so if side {0} has logged no change of the row, or none
# since an ALTER after which side {1} changed the row. An ALTER may add and drop columns; other columns keep their
# values.
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
        WHEN keyed AND captured_at IS NOT NULL THEN NULL
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
    """A row that has drifted, or equal rows of a keyless table. The images and the identity map columns to their values
    as JSON text, without NULLs.

    ``rows`` is 1 in a keyed table, and the difference in count in a keyless table. ``leader_last`` and
    ``follower_last`` are the last changes on each side (sequence, file, position); None for a side without changes.
    ``foreign`` is the last foreign write of the row (its position, transaction and ts_us). ``cause`` is one of the
    causes in ``compare.row_drift``, and ``evidence`` is one line that shows it. ``since_us`` is the commit time, in µs
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
    """A keyed row with changes whose before image was not the image added last. ``times`` counts these changes, and
    ``last`` is the newest of them.

    ``partition`` and ``offset`` are the place of the record of ``last`` in Kafka. Both are None if this audit did not
    read that record.
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
    """Compares both sides' images in the rows of ``joined``, which have both sides' columns of a fold (``JOINED``).
    Adds columns with the result."""
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
        # unknown, too. So it is for a row that a late capture found different.
        complete = all(place in changes.times for place in places) and row.cause != BEFORE_CAPTURE
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
