"""How long after its leader commit the follower had each transaction."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.topics import LEADER

__all__ = ["Lag", "apply_lag"]

_STEPS_AN_OCTAVE = 2


@dataclass(frozen=True, slots=True)
class Lag:
    """Over ``transactions`` leader transactions, in µs by both servers' clocks: percentiles and a histogram.

    The histogram counts transactions per bar; a bar's upper bound is √2 times that of the bar before.
    """

    transactions: int
    p50_us: int
    p95_us: int
    p99_us: int
    max_us: int
    histogram: list[tuple[int, int]]


def apply_lag(transactions: DataFrame, *, upto: int) -> Lag | None:
    """The lag of the leader's transactions up to sequence ``upto``; None where none was applied.

    A checkpoint stands for every sequence after the one before it, so a transaction counts from the first follower
    commit that covers its last record.
    """
    applied = transactions.where("kind = 'applied' AND since < upto")
    covered = applied.select(F.explode(F.sequence(F.col("since") + 1, "upto")).alias("final"), "ts_us")
    reached = covered.groupBy("final").agg(F.min("ts_us").alias("reached_us"))
    leader = transactions.where(f"side = '{LEADER}' AND state = 'whole'").where(F.col("final") <= upto)
    lags = leader.join(reached, "final").select((F.col("reached_us") - F.col("ts_us")).alias("us"))
    bar = F.ceil(F.log2(F.greatest("us", F.lit(1))) * _STEPS_AN_OCTAVE).alias("bar")
    whole = lags.agg(
        F.count("*").alias("count"),
        F.percentile_approx("us", [0.5, 0.95, 0.99], 10_000).alias("percentiles"),
        F.max("us").alias("max"),
    ).first()
    if whole is None or not whole["count"]:
        return None
    bars = lags.groupBy(bar).count().orderBy("bar").collect()
    p50, p95, p99 = whole["percentiles"]
    return Lag(
        transactions=whole["count"],
        p50_us=p50,
        p95_us=p95,
        p99_us=p99,
        max_us=whole["max"],
        histogram=[(round(2 ** (row["bar"] / _STEPS_AN_OCTAVE)), row["count"]) for row in bars],
    )
