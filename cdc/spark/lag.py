"""Measures how long transactions took from the leader to Kafka, and to the follower.

A transaction has four times, each from another machine's clock: the leader's commit; the request of the leader's
producer to Kafka to commit the record; the follower's commit; and the request of the follower's producer to Kafka to
commit the follower's record. The interval between two of these times is a **stage**. If the two clocks differ, the
stage appears longer or shorter by the difference, and may even be negative; it is reported as it is. Kafka's times are
in ms, truncated, not rounded.

The lengths of stages are counted in **bins** 4.4 % wide, with one bin for lengths within 64 µs of zero. Each bin has a
count, a sum and a maximum. There are bins for each stage and table, and for each stage and **stretch** of time in which
the leader committed. The length of a stretch, in µs, is a power of two, and it begins at a multiple of its length. So
the counts of two short stretches can be added up to the counts of a long one, when more time must be covered.
"""

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from pyspark.sql import DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as F

from cdc.config.profile import Kafka
from cdc.kafka.errors import question_error
from cdc.kafka.partitions import begin_offsets, end_offsets
from cdc.kafka.topics import known_topics
from cdc.model.commit_entry import VERSION
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import FOLLOWER, LEADER, messages
from cdc.spark.input.small_data import Query, in_one_part, local_frame, named
from cdc.spark.input.spans import Span

__all__ = [
    "BINS_AN_OCTAVE",
    "SCHEMA",
    "STAGES",
    "WHOLE",
    "ZERO_US",
    "Commits",
    "Lag",
    "Quantiles",
    "Stage",
    "Stretch",
    "TableLag",
    "Transit",
    "commits",
    "intervals",
    "lag",
    "matched",
    "read_entries",
    "transit",
]

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
# SQL that is true for complete transactions of the leader. It is false for records of table copies, because the leader
# never committed these.
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
    counts to ``before``. Returns ``before`` if there are no such transactions.

    ``arrivals`` contains the times at which sequences of either side were in Kafka. ``known`` describes the leader's
    commits in all of ``transactions``, if the caller has searched for them already.
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
    """Returns for each of the ``leader``'s transactions when it was committed on the leader, was in Kafka, was applied
    on the follower, and was in Kafka again from the follower's binlog; unknown times are NULL."""
    arrived = {
        side: arrivals.where(f"side = '{side}'").select("since", "upto", F.struct("since", "at_us").alias("mark"))
        for side in (LEADER, FOLLOWER)
    }
    on_follower = applied.select(F.col("final").alias("sequence"), F.struct("ts_us", "since", "upto").alias("item"))
    on_follower = matched(on_follower, {"stored": arrived[FOLLOWER]})
    # A checkpoint covers the sequences after the previous checkpoint, up to its own.
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
    sorted together in blocks of sequences, since a join on ranges, or a row for each sequence, would cost more.
    """
    block = f"shiftright({{}}, {_BLOCK_BITS})"
    blocks = F.explode(F.expr(f"sequence({block.format('since + 1')}, {block.format('upto')})")).alias("block")
    both = items.select(F.expr(block.format("sequence")).alias("block"), "sequence", "item")
    for name, covering in marks.items():
        in_blocks = covering.select(blocks, F.col("upto").alias("sequence"), F.col("mark").alias(name))
        both = both.unionByName(in_blocks, allowMissingColumns=True)
    # Items and marks are sorted by descending sequence; the sequence of a mark is its column ``upto``. So a mark comes
    # before the items that it covers, and an item gets the last of the marks that come before it. Marks with the same
    # sequence are sorted by descending time (``at_us``), so that an item gets the mark with the lowest time.
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
    return lengths_of.groupBy(*named("stretch", "tables", "stage"), bin_.alias("bin")).agg(
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
    return bins.groupBy(*named("stretch", "table", "stage", "bin")).agg(
        F.sum("count").alias("count"), F.sum("sum").alias("sum"), F.max("max").alias("max")
    )


# Computes the lag from counted transit times: how long the leader's transactions took to reach the follower, and then
# the topic of the follower's own binlog.
#
# Only counts reach the driver: for each stage, table and stretch of time, the number of transactions in each bin of
# delays. All delays in a bin count as the mean of the bin, so quantiles are accurate to 5 % or 128 µs; the maximum is
# exact.

_TABLES_LISTED = 1_000
_BINS_A_BAR = 8


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The quantiles of delays, in µs; ``transactions`` is the number of transactions."""

    transactions: int
    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of time: ``lag`` describes the transactions that the leader committed from ``from_us`` (µs since 1970)
    until the next stretch begins."""

    from_us: int
    lag: Quantiles


@dataclass(frozen=True, slots=True)
class Stage:
    """The delays of all transactions in one stage: in total, as a histogram, and over time.

    A bar of the histogram is (from µs, to µs, transactions) and ends at √2 times its start. Stretches without
    transactions are left out.
    """

    total: Quantiles
    histogram: list[tuple[int, int, int]]
    over_time: list[Stretch]


@dataclass(frozen=True, slots=True)
class TableLag:
    """The delays, by stage, of the transactions that changed a table. For statements on a database, ``table`` is the
    database."""

    table: str
    stages: dict[str, Quantiles]


@dataclass(frozen=True, slots=True)
class Lag:
    """The lag of the leader's transactions that were committed from ``first_us`` to ``last_us`` and that the follower
    applied; ``transactions`` is their number.

    A stage counts the transactions whose times at both ends of the stage are known; a stage without such transactions
    is absent. ``stretch_us`` is the length of the stretches in ``over_time``. ``tables`` are the slowest tables
    according to WHOLE's p95; ``tables_seen`` is the number of all tables.
    """

    transactions: int
    first_us: int
    last_us: int
    stretch_us: int
    stages: dict[str, Stage]
    tables_seen: int
    tables: list[TableLag]


def lag(transit: Transit) -> Lag | None:
    """Computes the lag from the counts in ``transit``; None if none of its transactions was applied."""
    found: dict[str, list[Row]] = {"all": [], "time": [], "table": []}
    for row in _quantiles(transit.bins).collect():
        found[row["kind"]].append(row)
    if not any(STAGES[row["stage"]] == WHOLE for row in found["all"]):
        return None
    tables = _by_table(found["table"])
    return Lag(
        transactions=transit.transactions,
        first_us=transit.first_us,
        last_us=transit.last_us,
        stretch_us=transit.stretch_us,
        stages=_by_stage(found["all"], found["time"], transit.stretch_us),
        tables_seen=len(tables),
        tables=tables[:_TABLES_LISTED],
    )


def _quantiles(bins: DataFrame) -> DataFrame:
    """Computes the fields of Quantiles for each stage and group. A group is a table, a stretch of time, or all
    transactions together. For all transactions, the result also contains the bins of the histogram.
    """
    group = "named_struct('kind', '{}', 'name', {})"
    whole, time = group.format("all", "''"), group.format("time", "string(stretch)")
    groups = F.explode(F.expr(f"IF(stretch IS NULL, array({group.format('table', 'table')}), array({whole}, {time}))"))
    quantiles = F.expr("percentile(sum / count, array(0.5, 0.95, 0.99), count)")
    bars = F.collect_list(F.when(F.col("of.kind") == "all", F.struct("bin", "count")))
    grouped = bins.select(groups.alias("of"), "stage", "bin", "count", "sum", "max")
    return grouped.groupBy(*named("of.kind", "of.name", "stage")).agg(
        F.sum("count").alias("count"), quantiles.alias("quantiles"), F.max("max").alias("max"), bars.alias("bins")
    )


def _quantiles_of(row: Row) -> Quantiles:
    p50, p95, p99 = (round(us) for us in row["quantiles"])
    return Quantiles(row["count"], p50, p95, p99, row["max"])


def _by_stage(whole: Iterable[Row], parts: Iterable[Row], stretch_us: int) -> dict[str, Stage]:
    over_time: dict[str, list[Stretch]] = {name: [] for name in STAGES}
    for row in parts:
        over_time[STAGES[row["stage"]]].append(Stretch(int(row["name"]) * stretch_us, _quantiles_of(row)))
    totals = {STAGES[row["stage"]]: row for row in whole}
    return {
        name: Stage(
            total=_quantiles_of(totals[name]),
            histogram=_bars((each["bin"], each["count"]) for each in totals[name]["bins"]),
            over_time=sorted(over_time[name], key=lambda stretch: stretch.from_us),
        )
        for name in STAGES
        if name in totals
    }


def _by_table(rows: Iterable[Row]) -> list[TableLag]:
    """Computes the lag of each table; the slowest table is first."""
    tables: dict[str, dict[str, Quantiles]] = {}
    for row in rows:
        tables.setdefault(row["name"], {})[STAGES[row["stage"]]] = _quantiles_of(row)
    listed = [TableLag(name, stages) for name, stages in tables.items() if WHOLE in stages]
    return sorted(listed, key=lambda each: (-each.stages[WHOLE].p95_us, each.table))


def _bars(bins: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Joins bins to wider bars (from µs, to µs, count)."""
    counts: dict[int, int] = {}
    for number, count in bins:
        bar = math.ceil(abs(number) / _BINS_A_BAR) * (1 if number > 0 else -1)
        counts[bar] = counts.get(bar, 0) + count
    return [(*_edges(bar), counts[bar]) for bar in sorted(counts)]


def _edges(bar: int) -> tuple[int, int]:
    if bar == 0:
        return -ZERO_US, ZERO_US
    near, far = (round(ZERO_US * 2 ** ((abs(bar) - step) * _BINS_A_BAR / BINS_AN_OCTAVE)) for step in (1, 0))
    return (near, far) if bar > 0 else (-far, -near)


# Reads the commit log of a topic to find arrivals: the times at which the topic's records were written to Kafka.
#
# A record itself contains the time of its commit on the server. A commit log entry commits in one transaction with its
# records; its time, in ms, is the producer's clock when the producer requested the commit from Kafka. The commit log is
# compacted: if the entry for some records was removed, their arrival is unknown, and they are left out. Each commit
# uses two offsets (the entry and the end of its transaction), so a larger step from one entry to the next shows that
# entries between them were removed.

_ENTRIES = "side STRING, offset BIGINT, next BIGINT, at_us BIGINT"
SCHEMA = "side STRING, since BIGINT, upto BIGINT, at_us BIGINT, offset BIGINT"

_ENDED_SECONDS = 1.0  # seconds to wait for an open entry; the lag is then computed without it


def read_entries(spark: SparkSession, kafka: Kafka, *, side: str, resource: str, begin: int = 0) -> DataFrame:
    """Reads the entries for ``resource``, from which ``intervals`` computes the arrivals. The columns are side, offset,
    next and at_us.

    The log is read from the offset ``begin``. Unless ``begin`` is 0, the entry at ``begin`` only shows where the
    sequences of the next entry begin. Raises UserError if the brokers do not answer.
    """
    found = _span_of_log(kafka, begin)
    if not found.partitions:
        return local_frame(spark, [], _ENTRIES)
    read = messages(spark, found, options=kafka_options(kafka)).where(F.col("key") == F.lit(resource).cast("binary"))
    body = F.col("value").cast("string")
    # Entries of a newer format version may have another meaning, and are left out.
    known = F.coalesce(F.get_json_object(body, "$.version").cast("bigint"), F.lit(0)) <= VERSION
    next_one = F.when(known, F.get_json_object(body, "$.next_sequence").cast("bigint"))
    entries = read.select(
        F.lit(side).alias("side"), "offset", next_one.alias("next"), F.unix_micros("timestamp").alias("at_us")
    )
    return entries.where("next IS NOT NULL")


def intervals(entries: DataFrame) -> DataFrame:
    """Computes the times at which sequences of either side arrived in Kafka, from the ``entries`` of both commit logs.
    The columns of the result are in SCHEMA.

    The sequences of a row, after ``since`` up to ``upto``, arrived at ``at_us`` (µs since 1970); ``offset`` is the
    offset of the entry.
    """
    before = F.lag(F.struct("offset", "next")).over(Window.partitionBy("side").orderBy("offset"))
    found = entries.withColumn("before", before)
    first = F.when(F.col("offset") == 0, 0)
    adjacent = F.when(F.col("offset") - F.col("before.offset") <= 2, F.col("before.next"))
    found = found.withColumn("since", F.coalesce(adjacent, first) - 1)
    found = found.select("side", "since", (F.col("next") - 1).alias("upto"), "at_us", "offset")
    return found.where("since < upto")


def _span_of_log(kafka: Kafka, begin: int) -> Span:
    """Finds the offsets of the commit log from ``begin`` on; an empty span if there is no such topic.

    Raises UserError if the brokers do not answer.
    """
    partition = (kafka.topics().commits, 0)
    properties = {**kafka.properties(), "log_level": 0}
    try:
        if not known_topics(properties, [partition[0]]):
            return Span({})
        # Kafka commits a transaction in one topic after the other: the transaction may still be open in the commit log
        # when its records can already be read.
        written, give_up = (
            end_offsets(properties, [partition], committed=False)[partition],
            time.monotonic() + _ENDED_SECONDS,
        )
        while (end := end_offsets(properties, [partition])[partition]) < written and time.monotonic() < give_up:
            time.sleep(0.05)
        # A log that was deleted and created again, or that lost its newest messages, may be shorter than before.
        first = max(begin_offsets(properties, [partition])[partition], begin if begin < end else 0)
        return Span({partition: (first, end)})
    except KafkaException as error:
        where = f"topic {partition[0]}, Kafka at {kafka.bootstrap_servers}"
        raise question_error(error.args[0], properties, where=where) from None
