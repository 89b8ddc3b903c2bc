"""How long each leader transaction took on its way to the follower, and on to the topic of the follower's own binlog.

A transaction has four times, each by another machine's clock: the leader's commit, its producer asking Kafka to commit
the record, the follower's commit, the follower's producer asking Kafka to commit the follower's record. What lies
between two of them is a **stage**. Clocks that differ make it longer or shorter by the difference, so it can be
negative; it is told as it comes out. Kafka's times are in ms, cut off, not rounded.

Only counts reach the driver: per stage, table and stretch of time, how many transactions took about as long. Lengths
are put in bins 4.4 % wide, those within 64 µs of zero in one, and a bin stands for its mean: so the quantiles are right
to 5 % or 128 µs, and the largest is exact.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from cdc.spark.topics import FOLLOWER, LEADER

__all__ = ["STAGES", "WHOLE", "Lag", "Quantiles", "Stage", "Stretch", "TableLag", "lag"]

WHOLE = "leader to follower"
_BETWEEN = {
    "leader to Kafka": ("ts_us", "stored_us"),
    "Kafka to follower": ("stored_us", "applied_us"),
    "follower to Kafka": ("applied_us", "recaptured_us"),
    WHOLE: ("ts_us", "applied_us"),
}
STAGES = tuple(_BETWEEN)

_STRETCHES = 48  # parts of the whole time, each with quantiles of its own
_TABLES_LISTED = 1_000
_ZERO_US = 64
_BINS_AN_OCTAVE = 16
_BINS_A_BAR = 8
_BLOCK_BITS = 10  # sequences are matched within blocks of so many bits


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Of the lengths, in µs, of ``transactions`` transactions."""

    transactions: int
    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """The transactions that the leader committed from ``from_us`` (µs since 1970) up to the next stretch's."""

    from_us: int
    lag: Quantiles


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage over all, as a histogram and over time.

    A bar of the histogram is (from µs, to µs, transactions), its end √2 times its start. Stretches without any
    transaction are left out.
    """

    total: Quantiles
    histogram: list[tuple[int, int, int]]
    over_time: list[Stretch]


@dataclass(frozen=True, slots=True)
class TableLag:
    """The stages of the transactions that touched a table; ``table`` is a database where they are its statements."""

    table: str
    stages: dict[str, Quantiles]


@dataclass(frozen=True, slots=True)
class Lag:
    """Of the ``transactions`` of the leader, committed from ``first_us`` to ``last_us``, that the follower should have.

    A stage counts those of which both times are known, and is absent where there are none. ``stretch_us`` is how long
    the parts of ``over_time`` are. ``tables`` are the slowest by WHOLE's p95, of ``tables_seen``.
    """

    transactions: int
    first_us: int
    last_us: int
    stretch_us: int
    stages: dict[str, Stage]
    tables_seen: int
    tables: list[TableLag]


def lag(transactions: DataFrame, arrivals: DataFrame, *, upto: int) -> Lag | None:
    """The lag of the leader's transactions up to sequence ``upto``; None where none was applied.

    ``arrivals`` says when sequences of either side were in Kafka (module arrivals).
    """
    leader = transactions.where(f"side = '{LEADER}' AND state = 'whole'").where(F.col("final") <= upto)
    seen = leader.agg(F.count("*").alias("count"), F.min("ts_us").alias("first"), F.max("ts_us").alias("last")).first()
    if seen is None or not seen["count"]:
        return None
    stretch_us = (seen["last"] - seen["first"]) // _STRETCHES + 1
    times = _times(leader, transactions.where("kind = 'applied' AND since < upto"), arrivals)
    found: dict[str, list[Row]] = {"all": [], "time": [], "table": []}
    for row in _quantiles(_measured(times, seen["first"], stretch_us)).collect():
        found[row["kind"]].append(row)
    if not any(row["stage"] == WHOLE for row in found["all"]):
        return None
    tables = _by_table(found["table"])
    return Lag(
        transactions=seen["count"],
        first_us=seen["first"],
        last_us=seen["last"],
        stretch_us=stretch_us,
        stages=_by_stage(found["all"], found["time"], seen["first"], stretch_us),
        tables_seen=len(tables),
        tables=tables[:_TABLES_LISTED],
    )


def _times(leader: DataFrame, applied: DataFrame, arrivals: DataFrame) -> DataFrame:
    """Each of the ``leader``'s transactions with its four times, NULL where nobody knows them."""
    ours = leader.select("side", F.col("final").alias("sequence"), F.struct("ts_us", "tables").alias("asked"))
    theirs = applied.select("side", F.col("final").alias("sequence"), F.struct("ts_us", "since", "upto").alias("asked"))
    marks = arrivals.select("side", "since", "upto", F.struct("since", "at_us").alias("mark"))
    ours = _matched(ours, marks.where(f"side = '{LEADER}'"))
    theirs = _matched(theirs, marks.where(f"side = '{FOLLOWER}'"))
    # A checkpoint stands for every sequence after the one before it.
    reached = theirs.select(
        F.lit(LEADER).alias("side"),
        "asked.since",
        "asked.upto",
        F.struct("asked.since", F.col("asked.ts_us").alias("at_us"), F.col("at_us").alias("recaptured_us")).alias(
            "mark"
        ),
    )
    ours = ours.select("side", "sequence", F.struct("asked.*", F.col("at_us").alias("stored_us")).alias("asked"))
    recaptured = F.when(F.col("at_us").isNotNull(), F.col("mark.recaptured_us"))
    return _matched(ours, reached).select(
        "asked.*", F.col("at_us").alias("applied_us"), recaptured.alias("recaptured_us")
    )


def _matched(asked: DataFrame, marks: DataFrame) -> DataFrame:
    """``asked`` (side, sequence, asked) with the first of ``marks`` that covers the sequence, and its ``at_us``.

    ``marks`` (side, since, upto, mark) cover what is after ``since`` up to ``upto``, and follow one another. Both are
    sorted in blocks of sequences, so neither a join by ranges nor a row for each sequence is needed.
    """
    block = f"shiftright({{}}, {_BLOCK_BITS})"
    blocks = F.explode(F.expr(f"sequence({block.format('since + 1')}, {block.format('upto')})"))
    no_mark, nothing_asked = (
        F.lit(None).cast(marks.schema["mark"].dataType),
        F.lit(None).cast(asked.schema["asked"].dataType),
    )
    both = asked.select(
        "side", F.expr(block.format("sequence")).alias("block"), "sequence", "asked", no_mark.alias("mark")
    ).unionByName(
        marks.select(
            "side", blocks.alias("block"), F.col("upto").alias("sequence"), nothing_asked.alias("asked"), "mark"
        )
    )
    # From the highest sequence down: a mark comes before what it covers; of those that end alike the earliest counts.
    order = [F.desc("sequence"), F.col("mark").isNull(), F.desc("mark.since"), F.desc("mark.at_us")]
    down = Window.partitionBy("side", "block").orderBy(*order).rowsBetween(Window.unboundedPreceding, 0)
    matched = both.withColumn("mark", F.last("mark", ignorenulls=True).over(down)).where("asked IS NOT NULL")
    return matched.withColumn("at_us", F.when(F.expr("mark.since < sequence"), F.col("mark.at_us")))


def _measured(times: DataFrame, first_us: int, stretch_us: int) -> DataFrame:
    """A line for each stage of each transaction and each group that it counts in: all, its time, its tables."""
    group = "named_struct('kind', '{}', 'name', {})"
    empty, stretch = "''", f"string((ts_us - {first_us}) DIV {stretch_us})"
    groups = f"array({group.format('all', empty)}, {group.format('time', stretch)})"
    groups = f"concat({groups}, transform(tables, t -> {group.format('table', 't')}))"
    lengths = (f"named_struct('stage', '{name}', 'us', {end} - {start})" for name, (start, end) in _BETWEEN.items())
    known = f"filter(array({', '.join(lengths)}), l -> l.us IS NOT NULL)"
    lines = times.select(F.expr(groups).alias("groups"), F.explode(F.expr(known)).alias("length"))
    return lines.select(F.explode("groups").alias("group"), "length.*").select("group.*", "stage", "us")


def _quantiles(lines: DataFrame) -> DataFrame:
    """Per group and stage the fields of Quantiles; of the group "all" also the bins, for a histogram."""
    octaves = F.log2(F.abs("us") / _ZERO_US) * _BINS_AN_OCTAVE
    bin_ = F.when(F.abs("us") < _ZERO_US, 0).otherwise(F.signum("us") * (F.floor(octaves) + 1)).cast("int")
    group = ["kind", "name", "stage"]
    bins = lines.groupBy(*group, bin_.alias("bin")).agg(
        F.count("*").alias("count"), F.avg("us").alias("mean"), F.max("us").alias("max")
    )
    quantiles = F.expr("percentile(mean, array(0.5, 0.95, 0.99), count)")
    bars = F.collect_list(F.when(F.col("kind") == "all", F.struct("bin", "count")))
    return bins.groupBy(*group).agg(
        F.sum("count").alias("count"), quantiles.alias("quantiles"), F.max("max").alias("max"), bars.alias("bins")
    )


def _read(row: Row) -> Quantiles:
    p50, p95, p99 = (round(us) for us in row["quantiles"])
    return Quantiles(row["count"], p50, p95, p99, row["max"])


def _by_stage(whole: Iterable[Row], parts: Iterable[Row], first_us: int, stretch_us: int) -> dict[str, Stage]:
    over_time: dict[str, list[Stretch]] = {name: [] for name in STAGES}
    for row in parts:
        over_time[row["stage"]].append(Stretch(first_us + int(row["name"]) * stretch_us, _read(row)))
    totals = {row["stage"]: row for row in whole}
    return {
        name: Stage(
            total=_read(totals[name]),
            histogram=_bars((each["bin"], each["count"]) for each in totals[name]["bins"]),
            over_time=sorted(over_time[name], key=lambda stretch: stretch.from_us),
        )
        for name in STAGES
        if name in totals
    }


def _by_table(rows: Iterable[Row]) -> list[TableLag]:
    """The slowest first."""
    tables: dict[str, dict[str, Quantiles]] = {}
    for row in rows:
        tables.setdefault(row["name"], {})[row["stage"]] = _read(row)
    listed = [TableLag(name, stages) for name, stages in tables.items() if WHOLE in stages]
    return sorted(listed, key=lambda each: (-each.stages[WHOLE].p95_us, each.table))


def _bars(bins: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Bins as fewer bars: from and to in µs, and the count."""
    counts: dict[int, int] = {}
    for number, count in bins:
        bar = math.ceil(abs(number) / _BINS_A_BAR) * (1 if number > 0 else -1)
        counts[bar] = counts.get(bar, 0) + count
    return [(*_edges(bar), counts[bar]) for bar in sorted(counts)]


def _edges(bar: int) -> tuple[int, int]:
    if bar == 0:
        return -_ZERO_US, _ZERO_US
    near, far = (round(_ZERO_US * 2 ** ((abs(bar) - step) * _BINS_A_BAR / _BINS_AN_OCTAVE)) for step in (1, 0))
    return (near, far) if bar > 0 else (-far, -near)
