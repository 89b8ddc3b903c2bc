"""Counts compared rows and makes checksums of them for each table; tallies can be added and subtracted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.input.small_data import named

__all__ = ["Table", "Tally", "checksum", "tally"]

_SIDES = ("leader", "follower")
_COUNTS = ("leader_rows", "follower_rows", "missing", "extra", "different", "not_compared")
_CHECKSUMS = ("leader_checksum", "follower_checksum")
_ALL_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Table:
    """The counts of one table. The row counts and the checksums include the rows that the topics contain.

    ``not_compared`` counts the rows of a copied table for which the follower's log does not show whether they equal the
    copy; the other counts do not include these rows. ``older`` is true if the table may be older than the topics and
    may have older rows; no count includes older rows that the topics do not contain. ``accepted`` counts rows that
    differ and that ``--accept`` accepts: they do not count as drifted.
    """

    database: str
    table: str
    leader_rows: int
    follower_rows: int
    missing: int
    extra: int
    different: int
    leader_checksum: str
    follower_checksum: str
    not_compared: int = 0
    older: bool = False
    accepted: int = 0

    @property
    def drifted(self) -> int:
        """The number of drifted rows."""
        return self.missing + self.extra + self.different

    @property
    def name(self) -> tuple[str, str]:
        """The table's database and name."""
        return self.database, self.table

    def with_rows(self, other: Self, sign: int) -> Self:
        """Adds the counts of the rows of ``other``, or subtracts them if ``sign`` is -1. In both cases, combines the
        checksums by exclusive or.
        """
        joined: dict[str, Any] = {name: getattr(self, name) + sign * getattr(other, name) for name in _COUNTS}
        for name in _CHECKSUMS:
            joined[name] = f"{int(getattr(self, name), 16) ^ int(getattr(other, name), 16):x}"
        return replace(self, **joined)


@dataclass(frozen=True, slots=True)
class Tally:
    """The counts of all tables: ``lines`` contains a line for each table, and ``breaks`` counts for each side the
    before images that differ from the row's previous image."""

    lines: Sequence[Table] = ()
    breaks: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(_SIDES, 0))

    @property
    def drifted(self) -> int:
        """The number of drifted rows."""
        return sum(line.drifted for line in self.lines)

    def plus(self, other: Self) -> Self:
        """Adds the tally ``other``, which counts other rows, and returns the sum."""
        return self._with(other, 1)

    def less(self, other: Self) -> Self:
        """Subtracts the tally ``other``, which counts some of these rows, and returns the difference."""
        return self._with(other, -1)

    def _with(self, other: Self, sign: int) -> Self:
        found = {line.name: line for line in self.lines}
        for line in other.lines:
            found[line.name] = found[line.name].with_rows(line, sign) if line.name in found else line
        breaks = {side: self.breaks[side] + sign * other.breaks[side] for side in _SIDES}
        return replace(self, lines=[found[name] for name in sorted(found)], breaks=breaks)


def checksum(hashes: int) -> str:
    """Formats a checksum, the exclusive or of 64-bit ``hashes``, in hexadecimal digits, as the report shows it.

    Spark's ``hex`` would write capital letters, and Spark's ``lower`` takes 1.4 s when a JVM first calls it, since the
    JVM then builds a table of all characters.
    """
    return f"{hashes & _ALL_BITS:x}"


def tally(comparison: DataFrame) -> Tally:
    """Counts the rows of a comparison (``compare.row_drift``), without tables that can't be compared yet."""
    drifted = {kind: F.sum(F.expr(f"IF(kind = '{kind}', rows, 0)")) for kind in ("missing", "extra", "different")}
    lines = (
        comparison.where("comparable")
        .groupBy(*named("database", "table"))
        .agg(
            *(F.sum(f"{side}_rows").alias(f"{side}_rows") for side in _SIDES),
            *(total.alias(kind) for kind, total in drifted.items()),
            F.sum(F.expr("int(unknown)")).alias("not_compared"),
            *(F.bit_xor(f"{side}_hash").alias(f"{side}_checksum") for side in _SIDES),
            *(F.sum(f"{side}_breaks").alias(f"{side}_breaks") for side in _SIDES),
        )
    )
    # The lines are sorted here, since there is one line per table and Spark would need another job.
    found = [row.asDict() for row in sorted(lines.collect(), key=itemgetter("database", "table"))]
    breaks = {side: sum(row.pop(f"{side}_breaks") for row in found) for side in _SIDES}
    for row in found:
        row.update((name, checksum(row[name])) for name in _CHECKSUMS)
    return Tally([Table(**row) for row in found], breaks)
