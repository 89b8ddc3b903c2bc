"""How long the leader's transactions took on their way, counted: what is known of each, in a form that adds up.

A transaction has four times, each by another machine's clock: the leader's commit, its producer asking Kafka to commit
the record, the follower's commit, the follower's producer asking Kafka to commit the follower's record. What lies
between two of them is a **stage**. Clocks that differ make it longer or shorter by the difference, so it can be
negative; it is told as it comes out. Kafka's times are in ms, cut off, not rounded.

Lengths are put in **bins** 4.4 % wide, those within 64 µs of zero in one, and what is kept of a bin is its count, sum
and maximum: by stage, and by the **stretch** of time of the leader's commit or by table. A stretch is a power of two
of µs long and begins at a multiple of that, so two short ones make a long one: what was counted for a part of the
transactions can be added to what was counted for the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.spark.input.records import FOLLOWER, LEADER

__all__ = ["BINS_AN_OCTAVE", "STAGES", "WHOLE", "ZERO_US", "Transit", "matched", "transit"]

WHOLE = "leader to follower"
_BETWEEN = {
    "leader to Kafka": ("ts_us", "stored_us"),
    "Kafka to follower": ("stored_us", "applied_us"),
    "follower to Kafka": ("applied_us", "recaptured_us"),
    WHOLE: ("ts_us", "applied_us"),
}
STAGES = tuple(_BETWEEN)

ZERO_US = 64
BINS_AN_OCTAVE = 16
_MOST_STRETCHES = 64  # that lie whole in the time from the first commit to the last
_BLOCK_BITS = 10  # sequences are matched within blocks of so many bits


@dataclass(frozen=True, slots=True)
class Transit:
    """Of ``transactions`` of the leader, committed from ``first_us`` to ``last_us``, how many took how long.

    ``bins`` has a row for each ``stage`` (its place in STAGES), ``bin``, and either ``stretch`` (its number: the start
    divided by ``stretch_us``) or ``table``, the other being NULL; with the ``count``, ``sum`` and ``max`` of lengths in
    µs.
    """

    transactions: int
    first_us: int
    last_us: int
    bins: DataFrame

    @property
    def stretch_us(self) -> int:
        """How long a stretch is: as short as can be with no more of them than can be told apart."""
        return _stretch_us(self.first_us, self.last_us)


def transit(
    transactions: DataFrame, arrivals: DataFrame, *, upto: int, after: int = -1, before: Transit | None = None
) -> Transit | None:
    """What the leader's transactions took from sequence ``after`` (exclusive) up to ``upto``, added to ``before``.

    None where there is none. ``arrivals`` says when sequences of either side were in Kafka (module arrivals).
    """
    leader = transactions.where(f"side = '{LEADER}' AND state = 'whole' AND final > {after} AND final <= {upto}")
    seen = leader.agg(F.count("*").alias("count"), F.min("ts_us").alias("first"), F.max("ts_us").alias("last")).first()
    if seen is None or not seen["count"]:
        return before
    first = seen["first"] if before is None else min(before.first_us, seen["first"])
    last = seen["last"] if before is None else max(before.last_us, seen["last"])
    applied = transactions.where(f"kind = 'applied' AND since < {upto} AND upto > {after}")
    stretch_us = _stretch_us(first, last)
    bins = _grouped(_counted(_times(leader, applied, arrivals), stretch_us))
    if before is not None:
        bins = _summed(bins.unionByName(_longer(before, stretch_us)))
    return Transit(seen["count"] + (before.transactions if before else 0), first, last, bins)


def _stretch_us(first_us: int, last_us: int) -> int:
    return 1 << ((last_us - first_us) // _MOST_STRETCHES).bit_length()


def _longer(before: Transit, stretch_us: int) -> DataFrame:
    return before.bins.withColumn("stretch", F.expr(f"stretch DIV {stretch_us // before.stretch_us}"))


def _times(leader: DataFrame, applied: DataFrame, arrivals: DataFrame) -> DataFrame:
    """Each of the ``leader``'s transactions with its four times, NULL where nobody knows them."""
    arrived = {
        side: arrivals.where(f"side = '{side}'").select("since", "upto", F.struct("since", "at_us").alias("mark"))
        for side in (LEADER, FOLLOWER)
    }
    theirs = applied.select(F.col("final").alias("sequence"), F.struct("ts_us", "since", "upto").alias("asked"))
    theirs = matched(theirs, {"stored": arrived[FOLLOWER]})
    # A checkpoint stands for every sequence after the one before it.
    mark = F.struct("asked.since", F.col("asked.ts_us").alias("at_us"), F.col("stored.at_us").alias("recaptured_us"))
    reached = theirs.select("asked.since", "asked.upto", mark.alias("mark"))
    ours = leader.select(F.col("final").alias("sequence"), F.struct("ts_us", "tables").alias("asked"))
    ours = matched(ours, {"stored": arrived[LEADER], "applied": reached})
    times = {"stored_us": "stored.at_us", "applied_us": "applied.at_us", "recaptured_us": "applied.recaptured_us"}
    return ours.select("asked.*", *(F.col(field).alias(name) for name, field in times.items()))


def matched(asked: DataFrame, marks: Mapping[str, DataFrame]) -> DataFrame:
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
    begun = [F.desc(F.coalesce(*(f"{name}.{field}" for name in marks))) for field in ("at_us", "since")]
    down = Window.partitionBy("block").orderBy(F.desc("sequence"), F.col("asked").isNotNull(), *begun)
    down = down.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    newest = {name: F.last(name, ignorenulls=True).over(down) for name in marks}
    matched = both.withColumns(newest).where("asked IS NOT NULL")
    return matched.withColumns({name: F.when(F.expr(f"{name}.since < sequence"), F.col(name)) for name in marks})


def _counted(times: DataFrame, stretch_us: int) -> DataFrame:
    """How many transactions took about as long, by stretch and by the tables they touched together."""
    lengths = ", ".join(f"{at}, {end} - {start}" for at, (start, end) in enumerate(_BETWEEN.values()))
    stack = F.expr(f"stack({len(_BETWEEN)}, {lengths})").alias("stage", "us")
    stretch = F.expr(f"ts_us DIV {stretch_us}").alias("stretch")
    lines = times.select(stretch, "tables", stack).where("us IS NOT NULL")
    octaves = F.log2(F.abs("us") / ZERO_US) * BINS_AN_OCTAVE
    bin_ = F.when(F.abs("us") < ZERO_US, 0).otherwise(F.signum("us") * (F.floor(octaves) + 1)).cast("int")
    return lines.groupBy("stretch", "tables", "stage", bin_.alias("bin")).agg(
        F.count("*").alias("count"), F.sum("us").alias("sum"), F.max("us").alias("max")
    )


def _grouped(counts: DataFrame) -> DataFrame:
    """The counts added up for each stretch and for each table that they belong to."""
    group = "named_struct('stretch', {}, 'table', {})"
    stretch, table = group.format("stretch", "string(NULL)"), group.format("bigint(NULL)", "t")
    groups = F.explode(F.expr(f"concat(array({stretch}), transform(tables, t -> {table}))")).alias("of")
    grouped = counts.select(groups, "stage", "bin", "count", "sum", "max")
    return _summed(grouped.select("of.*", "stage", "bin", "count", "sum", "max"))


def _summed(bins: DataFrame) -> DataFrame:
    return bins.groupBy("stretch", "table", "stage", "bin").agg(
        F.sum("count").alias("count"), F.sum("sum").alias("sum"), F.max("max").alias("max")
    )
