"""Samples of drifted rows: of each table its share, so that a table with many does not hide the others."""

from collections.abc import Sequence
from typing import TypeVar

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

__all__ = ["ORDER", "evenly", "sampled"]

ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")
_MOST_TABLES = 1_000  # with a sample

Row = TypeVar("Row")


def sampled(drifted: DataFrame, tables: int, *, most: int) -> DataFrame:
    """About the first ``most`` of the ``drifted`` rows, which are of so many ``tables``, in no order.

    There is at least one of each table, but of the first 1,000 at most.
    """
    share = max(1, most // max(1, tables))
    along = Window.partitionBy("database", "table").orderBy(*ORDER[2:])
    # Spark keeps only so many rows of each table when it is filtered by the rank alone.
    ranked = drifted.withColumn("rank", F.row_number().over(along)).where(F.col("rank") <= most)
    shared = F.col("rank") > share
    return ranked.orderBy(shared, *ORDER).limit(max(most, min(tables, _MOST_TABLES))).drop("rank")


def evenly(names: Sequence[Row], most: int) -> list[int]:
    """The places of ``most`` rows, so that each table has its share; ``names`` are the rows' tables."""
    seen: dict[Row, int] = {}
    turns = []
    for at, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        turns.append((seen[name], at))
    return sorted(at for _, at in sorted(turns)[:most])
