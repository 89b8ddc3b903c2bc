"""Lists the follower's transactions that did not come through the consumer (foreign writes; MySQL calls them errant
transactions), and counts them over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from cdc.spark.input.small_data import Query
from cdc.spark.streams.transactions import FOREIGN

__all__ = ["ForeignWrite", "all_foreign_writes", "foreign_times", "foreign_writes"]

_TABLES_LISTED = 20
_PARTS = 120


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


def foreign_writes(transactions: DataFrame, *, limit: int) -> Query[list[ForeignWrite]]:
    """Selects the first ``limit`` foreign writes, in the follower's order."""
    return Query(transactions.where(FOREIGN).orderBy("final").limit(limit), _listed)


def all_foreign_writes(transactions: DataFrame) -> DataFrame:
    """Selects all foreign writes, with the fields of ForeignWrite, but with all tables and with the time as a
    timestamp.
    """
    return transactions.where(FOREIGN).select(
        "transaction",
        *("start.sequence", "start.file", "start.position"),
        F.expr("timestamp_micros(ts_us)").alias("committed_at"),
        F.array_sort("tables").alias("tables"),
        *("rows", "statement"),
    )


def _listed(foreign: Sequence[Row]) -> list[ForeignWrite]:
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
        for row in foreign
    ]


def foreign_times(transactions: DataFrame, *, first_us: int, last_us: int) -> Query[list[tuple[int, int, int]]]:
    """Divides the time from ``first_us`` to ``last_us`` (µs since 1970) into intervals of equal length, and counts the
    foreign writes in each interval. Returns (from, to, count) for each interval with foreign writes."""
    part_us = (last_us - first_us) // _PARTS + 1
    part = F.expr(f"(ts_us - {first_us}L) DIV {part_us}L")
    found = transactions.where(FOREIGN).groupBy(part.alias("part")).count()

    def counted(rows: Sequence[Row]) -> list[tuple[int, int, int]]:
        starts = sorted((first_us + row["part"] * part_us, row["count"]) for row in rows)
        return [(start, start + part_us, count) for start, count in starts]

    return Query(found, counted)
