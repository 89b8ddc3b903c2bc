"""When writes came to the follower that were not the leader's: counts along the time its topic covers."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.streams.consumer_notes import FOREIGN

__all__ = ["foreign_times"]

_PARTS = 120


def foreign_times(transactions: DataFrame, *, first_us: int, last_us: int) -> list[tuple[int, int, int]]:
    """(from, to, count): the foreign transactions between both times, in µs since 1970, in parts of equal length."""
    part_us = (last_us - first_us) // _PARTS + 1
    part = F.expr(f"(ts_us - {first_us}L) DIV {part_us}L")
    found = transactions.where(FOREIGN).groupBy(part.alias("part")).count().orderBy("part").collect()
    starts = ((first_us + row["part"] * part_us, row["count"]) for row in found)
    return [(start, start + part_us, count) for start, count in starts]
