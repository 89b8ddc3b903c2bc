"""Keeps the ids of transactions as intervals of numbers for each prefix, like a GTID set, to recognize new ids.

An id consists of a **prefix** and a number: a GTID's prefix is its server's UUID, its tag if there is one, and the
colon; in MariaDB it is domain and server, each with a hyphen. An id without a number is a prefix with the number 0. The
intervals contain each id that occurred, and perhaps others: an id outside of the intervals is new.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.input.small_data import Query

__all__ = ["IdRange", "TransactionIds", "all_new", "id_ranges", "ids_from_json", "ids_to_json", "with_ranges"]

_MOST_RANGES = 20_000  # maximum number of ranges that the driver reads
_MOST_INTERVALS = 1_000  # maximum number of intervals that are kept for a prefix
_EXACT = 4_096  # up to this number, each transaction has its own range, so that late transactions are known to be new

TransactionIds = Mapping[tuple[str, str], Sequence[tuple[int, int]]]
"""Maps a side and a prefix to intervals of numbers (first, last), in ascending order."""

# The number of MariaDB's domain-server-number comes after a hyphen.
_LAST_PART = "substring_index(transaction, IF(contains(transaction, ':'), ':', '-'), -1)"
# A number in a form that servers do not write, such as a number with leading zeros, does not count as a number.
_NUMBERED = f"coalesce(string(try_cast({_LAST_PART} AS BIGINT)) = {_LAST_PART}, false)"


@dataclass(frozen=True, slots=True)
class IdRange:
    """Transactions of one side whose ids have the same prefix and numbers from ``low`` to ``high``.

    ``first`` is the sequence at which the earliest of these transactions ends.
    """

    side: str
    prefix: str
    low: int
    high: int
    first: int


def id_ranges(transactions: DataFrame, *, records: int) -> Query[list[IdRange] | None]:
    """Computes the ranges of the ids of ``transactions``; None if there are too many ranges. There are at most
    ``records`` transactions.
    """
    width = 1 + records // _EXACT
    numbered = transactions.select(
        *("side", "final"),
        F.expr(f"IF({_NUMBERED}, left(transaction, length(transaction) - length({_LAST_PART})), transaction)")
        .alias("prefix"),
        F.expr(f"IF({_NUMBERED}, bigint({_LAST_PART}), 0L)").alias("number"),
    )  # fmt: skip
    ranges = numbered.groupBy("side", "prefix", F.expr(f"number DIV {width}L").alias("range")).agg(
        F.min("number").alias("low"), F.max("number").alias("high"), F.min("final").alias("first")
    )

    def read(rows: Sequence[Any]) -> list[IdRange] | None:
        fields = IdRange.__dataclass_fields__
        return [IdRange(*(row[name] for name in fields)) for row in rows] if len(rows) <= _MOST_RANGES else None

    return Query(ranges.limit(_MOST_RANGES + 1), read)


def all_new(known: TransactionIds | None, ranges: Iterable[IdRange] | None) -> bool:
    """Whether it is certain that no id of the ``ranges`` is among the ``known`` ids."""
    if known is None or ranges is None:
        return False
    return not any(
        each.low <= last and first <= each.high
        for each in ranges
        for first, last in known.get((each.side, each.prefix), ())
    )


def with_ranges(
    known: TransactionIds | None, ranges: Iterable[IdRange] | None, ends: Mapping[str, int]
) -> TransactionIds | None:
    """Adds to the ``known`` ids each of the ``ranges`` with a transaction that ends at or before the sequence of its
    side in ``ends``. Returns None if not all ids are known, or if there are too many prefixes.

    If a prefix has too many intervals, the intervals with the smallest gaps between them are merged.
    """
    if known is None or ranges is None:
        return None
    found = {key: list(intervals) for key, intervals in known.items()}
    for each in ranges:
        if each.first <= ends[each.side]:
            found.setdefault((each.side, each.prefix), []).append((each.low, each.high))
    return {key: _few(intervals) for key, intervals in found.items()} if len(found) <= _MOST_RANGES else None


def ids_to_json(ids: TransactionIds | None) -> list[list[Any]] | None:
    """Converts the ids to JSON: a list of the side, the prefix and the intervals for each prefix."""
    return None if ids is None else [[*key, intervals] for key, intervals in sorted(ids.items())]


def ids_from_json(body: Sequence[Sequence[Any]] | None) -> TransactionIds | None:
    """Parses the result of ``ids_to_json``."""
    return None if body is None else {(side, prefix): [*map(tuple, found)] for side, prefix, found in body}


def _few(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    gap, found = 1, _closed(intervals, 1)
    while len(found) > _MOST_INTERVALS:
        gap *= 2
        found = _closed(found, gap)
    return found


def _closed(intervals: Iterable[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Sorts the intervals, and merges two if the second begins at most ``gap`` after the end of the first."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if found and first <= found[-1][1] + gap:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found
