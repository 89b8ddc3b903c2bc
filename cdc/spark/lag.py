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
from collections.abc import Iterable, Mapping
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
_NO_NAME = "''"
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
    for row in _quantiles(_binned(times, seen["first"], stretch_us)).collect():
        found[row["kind"]].append(row)
    if not any(STAGES[row["stage"]] == WHOLE for row in found["all"]):
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
    arrived = {
        side: arrivals.where(f"side = '{side}'").select("since", "upto", F.struct("since", "at_us").alias("mark"))
        for side in (LEADER, FOLLOWER)
    }
    theirs = applied.select(F.col("final").alias("sequence"), F.struct("ts_us", "since", "upto").alias("asked"))
    theirs = _matched(theirs, {"stored": arrived[FOLLOWER]})
    # A checkpoint stands for every sequence after the one before it.
    mark = F.struct("asked.since", F.col("asked.ts_us").alias("at_us"), F.col("stored.at_us").alias("recaptured_us"))
    reached = theirs.select("asked.since", "asked.upto", mark.alias("mark"))
    ours = leader.select(F.col("final").alias("sequence"), F.struct("ts_us", "tables").alias("asked"))
    ours = _matched(ours, {"stored": arrived[LEADER], "applied": reached})
    times = {"stored_us": "stored.at_us", "applied_us": "applied.at_us", "recaptured_us": "applied.recaptured_us"}
    return ours.select("asked.*", *(F.col(field).alias(name) for name, field in times.items()))


def _matched(asked: DataFrame, marks: Mapping[str, DataFrame]) -> DataFrame:
    """``asked`` (sequence, asked) with the first mark of each kind that covers the sequence, NULL without one.

    Marks (since, upto, mark, which has ``since`` and ``at_us`` too) cover what is after ``since`` up to ``upto``, and
    follow one another. All are sorted in blocks of sequences, so it takes no join by ranges, nor a row a sequence.
    """
    block = f"shiftright({{}}, {_BLOCK_BITS})"
    blocks = F.explode(F.expr(f"sequence({block.format('since + 1')}, {block.format('upto')})")).alias("block")
    both = asked.select(F.expr(block.format("sequence")).alias("block"), "sequence", "asked")
    for name, covering in marks.items():
        placed = covering.select(blocks, F.col("upto").alias("sequence"), F.col("mark").alias(name))
        both = both.unionByName(placed, allowMissingColumns=True)
    # From the highest sequence down: a mark comes before what it covers; of those that end alike the earliest counts.
    begun = [F.desc(F.coalesce(*(f"{name}.{field}" for name in marks))) for field in ("since", "at_us")]
    down = Window.partitionBy("block").orderBy(F.desc("sequence"), F.col("asked").isNotNull(), *begun)
    down = down.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    newest = {name: F.last(name, ignorenulls=True).over(down) for name in marks}
    matched = both.withColumns(newest).where("asked IS NOT NULL")
    return matched.withColumns({name: F.when(F.expr(f"{name}.since < sequence"), F.col(name)) for name in marks})


def _binned(times: DataFrame, first_us: int, stretch_us: int) -> DataFrame:
    """How many transactions took about as long (``bin``), and what they took in sum and at most.

    By stage and by group (kind, name): all, each stretch of time, each table. The transactions themselves are counted
    once; only then are the counts added up for every group they belong to.
    """
    lengths = ", ".join(f"{at}, {end} - {start}" for at, (start, end) in enumerate(_BETWEEN.values()))
    stack = F.expr(f"stack({len(_BETWEEN)}, {lengths})").alias("stage", "us")
    stretch = F.expr(f"int((ts_us - {first_us}) DIV {stretch_us})").alias("stretch")
    lines = times.select(stretch, "tables", stack).where("us IS NOT NULL")
    octaves = F.log2(F.abs("us") / _ZERO_US) * _BINS_AN_OCTAVE
    bin_ = F.when(F.abs("us") < _ZERO_US, 0).otherwise(F.signum("us") * (F.floor(octaves) + 1)).cast("int")
    counts = lines.groupBy("stretch", "tables", "stage", bin_.alias("bin")).agg(
        F.count("*").alias("count"), F.sum("us").alias("sum"), F.max("us").alias("max")
    )
    group = "named_struct('kind', '{}', 'name', {})"
    groups = f"array({group.format('all', _NO_NAME)}, {group.format('time', 'string(stretch)')})"
    groups = f"concat({groups}, transform(tables, t -> {group.format('table', 't')}))"
    grouped = counts.select(F.explode(F.expr(groups)).alias("group"), "stage", "bin", "count", "sum", "max")
    return grouped.groupBy("group.kind", "group.name", "stage", "bin").agg(
        F.sum("count").alias("count"), F.sum("sum").alias("sum"), F.max("max").alias("max")
    )


def _quantiles(bins: DataFrame) -> DataFrame:
    """Per group and stage the fields of Quantiles; of the group "all" also the bins, for a histogram."""
    quantiles = F.expr("percentile(sum / count, array(0.5, 0.95, 0.99), count)")
    bars = F.collect_list(F.when(F.col("kind") == "all", F.struct("bin", "count")))
    return bins.groupBy("kind", "name", "stage").agg(
        F.sum("count").alias("count"), quantiles.alias("quantiles"), F.max("max").alias("max"), bars.alias("bins")
    )


def _read(row: Row) -> Quantiles:
    p50, p95, p99 = (round(us) for us in row["quantiles"])
    return Quantiles(row["count"], p50, p95, p99, row["max"])


def _by_stage(whole: Iterable[Row], parts: Iterable[Row], first_us: int, stretch_us: int) -> dict[str, Stage]:
    over_time: dict[str, list[Stretch]] = {name: [] for name in STAGES}
    for row in parts:
        over_time[STAGES[row["stage"]]].append(Stretch(first_us + int(row["name"]) * stretch_us, _read(row)))
    totals = {STAGES[row["stage"]]: row for row in whole}
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
        tables.setdefault(row["name"], {})[STAGES[row["stage"]]] = _read(row)
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
