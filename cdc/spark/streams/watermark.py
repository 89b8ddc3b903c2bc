"""Transactions of both topics, and the watermark: the leader sequence that the follower's last state stands for.

The consumer commits its checkpoint row with the rows it applies, and runs a leader's DDL under a GTID made of the
leader's name and the record's sequence (``cdc.position.ddl_gtid``). So each follower transaction says by itself what
it is, whatever its rows or text look like:

    applied       carries a checkpoint row that the consumer moved on, or has a DDL GTID: the follower then is the
                  leader at ``upto``
    moved         carries a checkpoint row that something else moved: the follower says so, yet it is a foreign write
    bookkeeping   touches nothing but the consumer's own database, as the consumer does without a checkpoint
    foreign       all others: a write that did not come through the consumer

Where the consumer moves the checkpoint it moves it on, and names the leader's transaction at which it then is: a row
that stays where it is, or names another one, was not moved by it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.model.gtid import ddl_uuid
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.streams.bookkeeping import checkpoint, not_the_consumers
from cdc.spark.streams.consumer_notes import FOREIGN

__all__ = ["ForeignWrite", "Watermark", "foreign_writes", "hole", "joined", "transactions", "watermark"]

_TOLD = "(touched IS NOT NULL OR kept IS NOT NULL)"
_TABLES_LISTED = 20
_QUERY_SHOWN = 200
_PLACES = ["sequence", "file", "position", "partition", "offset"]


_KIND = f"""
    CASE
        WHEN side != '{FOLLOWER}' OR state != 'whole' THEN NULL
        WHEN upto = since AND (upto >= 0 OR size(tables) > 0) THEN 'foreign'
        WHEN upto IS NOT NULL THEN 'applied'
        WHEN size(tables) = 0 AND size(kept) = 0 THEN 'bookkeeping'
        ELSE 'foreign'
    END
"""
_STANDS = "kind IN ('applied', 'moved')"  # it tells where the follower is
# What only the search for what something else moved needs.
_FOR_THE_SEARCH = ("kept", "claim")


@dataclass(frozen=True, slots=True)
class Watermark:
    """The leader sequence the follower is at: -1 when nothing is applied yet, None without any checkpoint.

    ``highest`` is the highest it ever was at, ``begins`` where it was when its log begins, ``open_from`` the follower's
    sequence where an open transaction begins, ``foreign`` the number of foreign transactions, ``torn`` of torn ones
    on either side.
    """

    sequence: int | None
    highest: int | None
    begins: int | None
    open_from: int | None
    foreign: int
    torn: int


@dataclass(frozen=True, slots=True)
class ForeignWrite:
    """A follower transaction that did not come through the consumer; ``ts_us`` is its commit time in µs since 1970."""

    transaction: str
    file: str
    position: int
    ts_us: int
    tables: list[str]
    rows: int
    statement: str | None


def transactions(records: DataFrame, *, resource: str, ends: Mapping[str, int]) -> DataFrame:
    """One row a transaction of the valid ``records``; persisted.

    ``resource`` is the leader whose checkpoints count, ``ends`` the last sequence of each side. ``state`` is whole,
    torn, or open for one that the topic's end cuts in two: the producer writes large transactions in parts. ``since``
    and ``upto`` are leader sequences, exclusive and inclusive: what an applied transaction of the follower brought.
    ``kind`` is what this module's docstring tells, NULL for the leader's.
    """
    narrow = _narrow(records, resource)
    alone = F.expr("index = 0 AND last")
    # Most transactions of many servers are one record: these need not be sorted to find what belongs together.
    grouped = _of_one_record(narrow.where(alone)).unionByName(_grouped(narrow.where(~alone)))
    found = _classified(grouped, resource, ends).persist(StorageLevel.MEMORY_AND_DISK)
    twice, unproven = _looked_over(found)
    if twice:
        found.unpersist()
        found = _classified(_grouped(narrow), resource, ends).persist(StorageLevel.MEMORY_AND_DISK)
    return (_with_moved(found, records) if unproven else found).drop(*_FOR_THE_SEARCH)


def _looked_over(transactions: DataFrame) -> tuple[bool, bool]:
    """Whether any transaction may be there twice, those with the same hash, and whether any checkpoint names another
    transaction of the leader's than ends where it is, which takes a closer look. A sound stream has neither.
    """
    once = "named_struct('hash', xxhash64(side, transaction), 'times', 1, 'ends', 0, 'claims', 0)"
    place = "named_struct('hash', xxhash64({}, {}), 'times', 0, 'ends', {}, 'claims', {})"
    ends = place.format("final", "transaction", 1, 0)
    claims = place.format("upto", "claim", 0, 1)
    each = f"""
        CASE WHEN side = '{LEADER}' THEN array({once}, {ends})
            WHEN kind = 'applied' AND claim IS NOT NULL THEN array({once}, {claims}) ELSE array({once}) END
    """
    told = transactions.select(F.explode(F.expr(each)).alias("of")).select("of.*")
    told = told.groupBy("hash").agg(*(F.sum(name).alias(name) for name in ("times", "ends", "claims")))
    twice, unproven = told.agg(
        F.expr("bool_or(times > 1)"), F.expr("bool_or(claims > 0 AND ends = 0)")
    ).collect()[0]  # fmt: skip
    return bool(twice), bool(unproven)


def _with_moved(transactions: DataFrame, records: DataFrame) -> DataFrame:
    """Those are ``moved`` that name another transaction than the leader's record has at which they say they are."""
    told = records.where(f"valid AND side = '{LEADER}'")
    told = told.select(F.col("sequence").alias("upto"), F.col("transaction").alias("there"))
    claims = transactions.where("kind = 'applied' AND claim IS NOT NULL").select("side", "transaction", "upto", "claim")
    moved = claims.join(told, "upto").where("there != claim").select("side", "transaction", F.lit(True).alias("moved"))
    joined = transactions.join(moved.distinct(), ["side", "transaction"], "left")
    return joined.withColumns({
        "kind": F.expr("IF(moved, 'moved', kind)"),
        "tables": F.expr("IF(moved, array_union(tables, kept), tables)"),
    }).select(*transactions.columns).persist(StorageLevel.MEMORY_AND_DISK)  # fmt: skip


def _narrow(records: DataFrame, resource: str) -> DataFrame:
    touched = F.when(F.col("database") != CHECKPOINT_DATABASE, F.concat_ws(".", "database", "table"))
    # Sorting by transaction is what this takes when they are many: what the rows hold must not be carried along.
    return records.where("valid").select(
        *("side", "transaction", "sequence", "index", "last", "file", "position", "partition", "offset", "ts_us"),
        touched.alias("touched"),
        F.expr(not_the_consumers(resource)).alias("kept"),
        F.expr("coalesce(size(rows), 0)").alias("rows"),
        F.substring("query", 1, _QUERY_SHOWN).alias("statement"),
        F.expr(checkpoint(resource)).alias("checkpoint"),
    )


def _grouped(narrow: DataFrame) -> DataFrame:
    return narrow.groupBy("side", "transaction").agg(
        F.count("*").alias("records"),
        F.min(F.struct(*_PLACES)).alias("start"),
        F.max("sequence").alias("final"),
        F.min("ts_us").alias("ts_us"),
        F.expr("min(index) = 0 AND min(sequence - index) = max(sequence - index)").alias("contiguous"),
        F.expr("count_if(last)").alias("lasts"),
        F.expr("max(index) = max(IF(last, index, -1))").alias("ends_in_last"),
        F.collect_set("touched").alias("tables"),
        F.collect_set("kept").alias("kept"),
        F.sum(F.expr(f"IF({_TOLD}, rows, 0)")).alias("rows"),
        F.min(F.expr(f"IF({_TOLD}, statement, NULL)")).alias("statement"),
        F.min("checkpoint.since").alias("checkpoint_since"),
        F.max("checkpoint.upto").alias("checkpoint_upto"),
        F.max_by("checkpoint.claim", "checkpoint.upto").alias("claim"),
    )


def _of_one_record(narrow: DataFrame) -> DataFrame:
    """What ``_grouped`` has of transactions that are one whole record each."""
    return narrow.select(
        *("side", "transaction"),
        F.lit(1).cast("bigint").alias("records"),
        F.struct(*_PLACES).alias("start"),
        F.col("sequence").alias("final"),
        "ts_us",
        F.lit(True).alias("contiguous"),
        F.lit(1).cast("bigint").alias("lasts"),
        F.lit(True).alias("ends_in_last"),
        F.expr("IF(touched IS NULL, array(), array(touched))").alias("tables"),
        F.expr("IF(kept IS NULL, array(), array(kept))").alias("kept"),
        F.expr(f"IF({_TOLD}, bigint(rows), 0L)").alias("rows"),
        F.expr(f"IF({_TOLD}, statement, NULL)").alias("statement"),
        F.col("checkpoint.since").alias("checkpoint_since"),
        F.col("checkpoint.upto").alias("checkpoint_upto"),
        F.col("checkpoint.claim").alias("claim"),
    )


def _classified(grouped: DataFrame, resource: str, ends: Mapping[str, int]) -> DataFrame:
    at_end = F.concat_ws("/", "side", "final").isin([f"{side}/{end}" for side, end in ends.items()])
    state = (
        F.when(F.expr("contiguous AND lasts = 1 AND ends_in_last"), "whole")
        .when(F.expr("contiguous AND lasts = 0") & at_end, "open")
        .otherwise("torn")
    )
    # Only the follower runs DDL under these GTIDs; they count from 1, sequences from 0.
    number = f"try_cast(regexp_extract(transaction, '^{ddl_uuid(resource)}:([0-9]+)$', 1) AS BIGINT)"
    statement = F.when(F.col("side") == FOLLOWER, F.expr(number) - 1)
    classified = grouped.withColumns(
        {
            "state": state,
            "since": F.coalesce("checkpoint_since", statement - 1),
            "upto": F.greatest("checkpoint_upto", statement),
        }
    )
    classified = classified.withColumn("kind", F.expr(_KIND))
    tables = F.expr(f"IF({FOREIGN}, array_union(tables, kept), tables)").alias("tables")
    return classified.select(
        "side",
        "transaction",
        "records",
        "start",
        "final",
        "ts_us",
        tables,
        "rows",
        "statement",
        "state",
        "since",
        "upto",
        "kind",
        *_FOR_THE_SEARCH,
    )


def watermark(transactions: DataFrame) -> Watermark:
    """Where the follower is, by its last applied transaction; and what else one pass over all of them tells."""
    row = transactions.agg(
        F.max_by("upto", F.when(F.expr(_STANDS), F.col("final"))).alias("sequence"),
        F.max(F.when(F.expr(_STANDS), F.col("upto"))).alias("highest"),
        F.min_by("since", F.when(F.expr(_STANDS), F.col("final"))).alias("begins"),
        F.min(F.when(F.expr(f"state = 'open' AND side = '{FOLLOWER}'"), F.col("start.sequence"))).alias("open_from"),
        F.expr(f"count_if({FOREIGN})").alias("foreign"),
        F.expr("count_if(state = 'torn')").alias("torn"),
    )
    return Watermark(**row.collect()[0].asDict())


def joined(before: Watermark, since: Watermark) -> Watermark:
    """The watermark of transactions of which ``before`` was found earlier, and ``since`` of what came then."""
    latest = before if since.sequence is None else since
    return Watermark(
        sequence=latest.sequence,
        highest=max((each.highest for each in (before, since) if each.highest is not None), default=None),
        begins=since.begins if before.begins is None else before.begins,
        open_from=since.open_from,
        foreign=before.foreign + since.foreign,
        torn=before.torn + since.torn,
    )


def hole(transactions: DataFrame, *, begins: int, reached: int | None = None) -> tuple[int, int] | None:
    """The first leader sequences that the follower's checkpoint passed over unseen, (after, up to); None where none.

    Each applied transaction starts where another one ended, so one that does not has a part of the log missing before.
    Where ``reached`` is given, transactions that are not among these ended there, among others.
    """
    applied = transactions.where(_STANDS)
    said = applied.select(
        F.explode(F.expr("array(struct(upto AS at, true AS end), struct(since AS at, false AS end))"))
    )
    starts = said.select("col.*").groupBy("at").agg(F.expr("bool_or(end)").alias("reached"))
    seen = "reached" if reached is None else f"(reached OR at = {reached})"
    lost = starts.where(f"NOT {seen} AND at > {begins}").agg(F.min("at").alias("upto")).collect()[0]["upto"]
    if lost is None:
        return None
    after = applied.where(f"upto < {lost}").agg(F.max("upto").alias("after")).collect()[0]["after"]
    return (begins if after is None else after), lost


def foreign_writes(transactions: DataFrame, *, limit: int) -> list[ForeignWrite]:
    """The first ``limit`` transactions that did not come through the consumer, in the follower's order."""
    foreign = transactions.where(FOREIGN).orderBy("final").limit(limit)
    return [
        ForeignWrite(
            transaction=row["transaction"],
            file=row["start"]["file"],
            position=row["start"]["position"],
            ts_us=row["ts_us"],
            tables=sorted(row["tables"])[:_TABLES_LISTED],
            rows=row["rows"],
            statement=row["statement"],
        )
        for row in foreign.collect()
    ]
