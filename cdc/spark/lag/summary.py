"""Computes the lag from counted transit times: how long the leader's transactions took to reach the follower, and then
the topic of the follower's own binlog.

Only counts reach the driver (``lag.transit``): for each stage, table and stretch of time, the number of transactions in
each bin of delays. All delays in a bin count as the mean of the bin, so quantiles are accurate to 5 % or 128 µs; the
maximum is exact.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.spark.lag.transit import BINS_AN_OCTAVE, STAGES, WHOLE, ZERO_US, Transit

__all__ = ["STAGES", "WHOLE", "Lag", "Quantiles", "Stage", "Stretch", "TableLag", "lag"]

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
    return grouped.groupBy("of.kind", "of.name", "stage").agg(
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
