"""Counts how long the leader's transactions took (transit times), from transactions and arrivals.

A transaction has four times, each from another machine's clock: the leader's commit; the request of the leader's
producer to Kafka to commit the record; the follower's commit; and the request of the follower's producer to Kafka to
commit the follower's record. The interval between two of these times is a **stage**. If the two clocks differ, the
stage appears longer or shorter by the difference, and may even be negative; it is reported as it is. Kafka's times are
in ms, truncated, not rounded.

The lengths of stages are counted in **bins** 4.4 % wide, with one bin for lengths within 64 µs of zero. Each bin has a
count, a sum and a maximum. There are bins for each stage and table, and for each stage and **stretch** of time in which
the leader committed. The length of a stretch, in µs, is a power of two, and it begins at a multiple of its length. So
two short stretches make a long one, and counts can be added to the counts of earlier transactions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import Query, in_one_part

__all__ = ["BINS_AN_OCTAVE", "STAGES", "WHOLE", "ZERO_US", "Commits", "Transit", "commits", "matched", "transit"]

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
_MOST_STRETCHES = 64  # maximum number of stretches that lie completely between the first commit and the last
# SQL that is true for complete transactions of the leader, without records of table copies, which the leader never
# committed.
_OF_LEADER = f"side = '{LEADER}' AND state = 'whole' AND transaction NOT LIKE 'copy:%'"
_BLOCK_BITS = 10  # sequences are matched within blocks; the sequences in a block differ only in this number of low bits


@dataclass(frozen=True, slots=True)
class Transit:
    """The counted transit times of the leader's transactions that were committed from ``first_us`` to ``last_us``;
    ``transactions`` is their number.

    ``bins`` has one row for each bin of a stage in a stretch of time, and one row for each bin of a stage and a table.
    ``stage`` is the index in STAGES. ``stretch`` is the start of the stretch divided by ``stretch_us``, NULL in the
    rows for tables; ``table`` is NULL in the rows for stretches. ``count``, ``sum`` and ``max`` describe the lengths in
    the bin, in µs. The state of an audit contains all fields.
    """

    transactions: int
    first_us: int
    last_us: int
    bins: DataFrame

    @property
    def stretch_us(self) -> int:
        """The length of a stretch: the shortest length with which no more than _MOST_STRETCHES lie completely between
        the first commit and the last."""
        return _stretch_us(self.first_us, self.last_us)


@dataclass(frozen=True, slots=True)
class Commits:
    """The leader's complete transactions: their number, and the sequences and commit times of the first and the
    last."""

    transactions: int
    first: int | None
    last: int | None
    first_us: int | None
    last_us: int | None

    def within(self, after: int, upto: int) -> bool:
        """Whether all transactions end after the sequence ``after`` and not after ``upto``."""
        return self.first is None or self.last is None or (self.first > after and self.last <= upto)


def commits(transactions: DataFrame) -> Query[Commits]:
    """Finds the first and last commits of the leader."""
    found = transactions.where(_OF_LEADER).agg(
        F.count("*").alias("transactions"),
        *(of("final").alias(name) for of, name in ((F.min, "first"), (F.max, "last"))),
        *(of("ts_us").alias(f"{name}_us") for of, name in ((F.min, "first"), (F.max, "last"))),
    )
    return Query(found, lambda rows: Commits(**rows[0].asDict()))


def transit(
    transactions: DataFrame,
    arrivals: DataFrame,
    *,
    upto: int,
    after: int = -1,
    before: Transit | None = None,
    known: Commits | None = None,
) -> Transit | None:
    """Counts the transit times of the leader's transactions after sequence ``after`` up to ``upto``, and adds these
    counts to ``before``.

    Returns None if there are no transactions. ``arrivals`` contains the times at which sequences of either side were in
    Kafka (``lag.arrivals``). ``known`` describes the leader's commits in all of ``transactions``.
    """
    leader = transactions.where(f"{_OF_LEADER} AND final > {after} AND final <= {upto}")
    span = known if known and known.within(after, upto) else commits(leader).result()
    if span.first_us is None or span.last_us is None:
        return before
    first = span.first_us if before is None else min(before.first_us, span.first_us)
    last = span.last_us if before is None else max(before.last_us, span.last_us)
    applied = transactions.where(f"kind = 'applied' AND since < least({upto}, upto) AND upto > {after}")
    stretch_us = _stretch_us(first, last)
    bins = _grouped(_counted(_times(leader, applied, arrivals), stretch_us))
    if before is not None:
        bins = _summed(in_one_part(bins.unionByName(_longer(before, stretch_us))))
    return Transit(span.transactions + (before.transactions if before else 0), first, last, bins)


def _stretch_us(first_us: int, last_us: int) -> int:
    return 1 << ((last_us - first_us) // _MOST_STRETCHES).bit_length()


def _longer(before: Transit, stretch_us: int) -> DataFrame:
    return before.bins.withColumn("stretch", F.expr(f"stretch DIV {stretch_us // before.stretch_us}"))


def _times(leader: DataFrame, applied: DataFrame, arrivals: DataFrame) -> DataFrame:
    """Returns each of the ``leader``'s transactions with its four times; unknown times are NULL."""
    arrived = {
        side: arrivals.where(f"side = '{side}'").select("since", "upto", F.struct("since", "at_us").alias("mark"))
        for side in (LEADER, FOLLOWER)
    }
    on_follower = applied.select(F.col("final").alias("sequence"), F.struct("ts_us", "since", "upto").alias("item"))
    on_follower = matched(on_follower, {"stored": arrived[FOLLOWER]})
    # A checkpoint covers the sequences after the previous checkpoint.
    mark = F.struct("item.since", F.col("item.ts_us").alias("at_us"), F.col("stored.at_us").alias("recaptured_us"))
    reached = on_follower.select("item.since", "item.upto", mark.alias("mark"))
    on_leader = leader.select(F.col("final").alias("sequence"), F.struct("ts_us", "tables").alias("item"))
    on_leader = matched(on_leader, {"stored": arrived[LEADER], "applied": reached})
    times = {"stored_us": "stored.at_us", "applied_us": "applied.at_us", "recaptured_us": "applied.recaptured_us"}
    return on_leader.select("item.*", *(F.col(field).alias(name) for name, field in times.items()))


def matched(items: DataFrame, marks: Mapping[str, DataFrame]) -> DataFrame:
    """Adds to each of the ``items`` (sequence, item), for each kind of marks, the first mark that covers its sequence,
    or NULL if no mark covers it.

    ``marks`` have the columns since, upto and mark; ``mark`` is a struct that contains ``since`` and ``at_us``, too. A
    mark covers the sequences after ``since`` up to ``upto``; marks of one kind follow one another. Items and marks are
    sorted together in blocks of sequences. This method needs neither a join on ranges nor a row for each sequence.
    """
    block = f"shiftright({{}}, {_BLOCK_BITS})"
    blocks = F.explode(F.expr(f"sequence({block.format('since + 1')}, {block.format('upto')})")).alias("block")
    both = items.select(F.expr(block.format("sequence")).alias("block"), "sequence", "item")
    for name, covering in marks.items():
        in_blocks = covering.select(blocks, F.col("upto").alias("sequence"), F.col("mark").alias(name))
        both = both.unionByName(in_blocks, allowMissingColumns=True)
    # In descending order, a mark comes before the sequences that it covers. If marks have the same end, the earliest
    # mark comes last, so that it counts.
    latest_first = [F.desc(F.coalesce(*(f"{name}.{field}" for name in marks))) for field in ("at_us", "since")]
    down = Window.partitionBy("block").orderBy(F.desc("sequence"), F.col("item").isNotNull(), *latest_first)
    down = down.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    newest = {name: F.last(name, ignorenulls=True).over(down) for name in marks}
    matched = in_one_part(both).withColumns(newest).where("item IS NOT NULL")
    return matched.withColumns({name: F.when(F.expr(f"{name}.since < sequence"), F.col(name)) for name in marks})


def _counted(times: DataFrame, stretch_us: int) -> DataFrame:
    """Counts the transactions in each bin of lengths, by stretch and by the set of tables that they changed."""
    lengths = ", ".join(f"{at}, {end} - {start}" for at, (start, end) in enumerate(_BETWEEN.values()))
    stack = F.expr(f"stack({len(_BETWEEN)}, {lengths})").alias("stage", "us")
    stretch = F.expr(f"ts_us DIV {stretch_us}").alias("stretch")
    lengths_of = times.select(stretch, "tables", stack).where("us IS NOT NULL")
    octaves = F.log2(F.abs("us") / ZERO_US) * BINS_AN_OCTAVE
    bin_ = F.when(F.abs("us") < ZERO_US, 0).otherwise(F.signum("us") * (F.floor(octaves) + 1)).cast("int")
    return lengths_of.groupBy("stretch", "tables", "stage", bin_.alias("bin")).agg(
        F.count("*").alias("count"), F.sum("us").alias("sum"), F.max("us").alias("max")
    )


def _grouped(counts: DataFrame) -> DataFrame:
    """Adds the counts up, by stretch and by table."""
    group = "named_struct('stretch', {}, 'table', {})"
    stretch, table = group.format("stretch", "string(NULL)"), group.format("bigint(NULL)", "t")
    groups = F.explode(F.expr(f"concat(array({stretch}), transform(tables, t -> {table}))")).alias("of")
    grouped = counts.select(groups, "stage", "bin", "count", "sum", "max")
    return _summed(grouped.select("of.*", "stage", "bin", "count", "sum", "max"))


def _summed(bins: DataFrame) -> DataFrame:
    return bins.groupBy("stretch", "table", "stage", "bin").agg(
        F.sum("count").alias("count"), F.sum("sum").alias("sum"), F.max("max").alias("max")
    )
