"""Drift: where the follower's fold is not the leader's, row by row, and on whom it is blamed.

Keyed rows: missing (the leader alone has it), extra (the follower alone), different (both, with other values). A
column that one image lacks counts as NULL there. A row that neither has drifted too when one side deleted it and the
other never touched it: it was there before the topic began, so the topic does not show it, yet one side still has it.

Keyless rows are a multiset: equal images are counted, and a difference in count is so many rows missing or extra.

No drift is a row that the leader deleted, that its topic never showed, and that the consumer found missing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.compare.causes import with_causes
from cdc.spark.compare.fold import IDENTITY
from cdc.spark.schema.definitions import Unmatched
from cdc.spark.streams.contents import offsets

__all__ = [
    "JOINED", "Discontinuity", "DriftedRow", "Table", "Tally", "compare", "compared", "discontinuities",
    "drifted_rows", "fold_of", "placed", "tally", "told_of",
]  # fmt: skip

_SIDES = ("leader", "follower")
_COUNTS = ("leader_rows", "follower_rows", "missing", "extra", "different")
_FOLDED = ("net", "image", "last", "era", "marked", "breaks", "broken")
JOINED = [*IDENTITY, *(f"{side}_{name}" for side in _SIDES for name in _FOLDED)]
_CHECKSUMS = ("leader_checksum", "follower_checksum")
_KIND = """
    CASE
        WHEN leader_image = follower_image AND keyed THEN NULL
        WHEN leader_image IS NOT NULL AND follower_image IS NOT NULL AND keyed THEN 'different'
        WHEN leader_image IS NOT NULL AND keyed THEN 'missing'
        WHEN follower_image IS NOT NULL AND keyed THEN 'extra'
        WHEN keyed AND follower_last IS NULL AND leader_marked.kind = 'conflict'
            AND leader_marked.sequence = leader_last.sequence THEN NULL
        WHEN keyed AND leader_last IS NOT NULL AND follower_last IS NOT NULL THEN NULL
        WHEN leader_net > follower_net THEN 'missing'
        WHEN leader_net < follower_net THEN 'extra'
    END
"""
_DIFFERING = """
    IF(kind = 'different', array_sort(array_distinct(transform(
        array_union(array_except(leader_image, follower_image), array_except(follower_image, leader_image)),
        p -> p.column))), array())
"""
_FOREIGN = """
    IF(follower_marked.kind = 'foreign', struct(
        follower_marked.sequence, follower_marked.file, follower_marked.position,
        follower_marked.transaction, follower_marked.ts_us), NULL)
"""


@dataclass(frozen=True, slots=True)
class Table:
    """One table's verdict in rows. The row counts are those the topics tell of; the checksums cover the same rows."""

    database: str
    table: str
    leader_rows: int
    follower_rows: int
    missing: int
    extra: int
    different: int
    leader_checksum: str
    follower_checksum: str

    @property
    def name(self) -> tuple[str, str]:
        """Database and table."""
        return self.database, self.table

    def with_rows(self, other: Self, sign: int) -> Self:
        """The line of both's rows together or, where ``sign`` is -1, of those that ``other`` does not have."""
        mixed: dict[str, Any] = {name: getattr(self, name) + sign * getattr(other, name) for name in _COUNTS}
        for name in _CHECKSUMS:
            mixed[name] = f"{int(getattr(self, name), 16) ^ int(getattr(other, name), 16):x}"
        return replace(self, **mixed)


@dataclass(frozen=True, slots=True)
class Tally:
    """A line for each table, by name, and each side's before images that did not continue a row (``breaks``)."""

    lines: Sequence[Table] = ()
    breaks: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(_SIDES, 0))

    @property
    def drifted(self) -> int:
        """How many rows drifted."""
        return sum(line.missing + line.extra + line.different for line in self.lines)

    def plus(self, other: Self) -> Self:
        """The tally of both's rows together, which have none in common."""
        return self._with(other, 1)

    def less(self, other: Self) -> Self:
        """The tally of those of the rows that are not among ``other``'s, all of which are among them."""
        return self._with(other, -1)

    def _with(self, other: Self, sign: int) -> Self:
        found = {line.name: line for line in self.lines}
        for line in other.lines:
            found[line.name] = found[line.name].with_rows(line, sign) if line.name in found else line
        breaks = {side: self.breaks[side] + sign * other.breaks[side] for side in _SIDES}
        return replace(self, lines=[found[name] for name in sorted(found)], breaks=breaks)


@dataclass(frozen=True, slots=True)
class DriftedRow:
    """One drifted identity; images and identity map columns to their values as JSON text, NULLs left out.

    ``rows`` is 1 in a keyed table, the difference in count in a keyless one. ``leader_last`` and ``follower_last`` are
    the last changes on each side (sequence, file, position), None where it never had any; ``foreign`` is the foreign
    write that touched the row last (the place, transaction and ts_us). ``cause`` is one of ``compare.causes``, and
    ``evidence`` says in a line what shows it.
    """

    database: str
    table: str
    kind: str
    rows: int
    keyed: bool
    identity: dict[str, str]
    columns: list[str]
    leader_image: dict[str, str] | None
    follower_image: dict[str, str] | None
    leader_last: dict[str, Any] | None
    follower_last: dict[str, Any] | None
    foreign: dict[str, Any] | None
    cause: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Discontinuity:
    """A keyed row whose before image was not the image put last, ``times`` times, lastly at ``last``.

    ``partition`` and ``offset`` are where in Kafka that is, None where it was not read this time.
    """

    side: str
    database: str
    table: str
    identity: dict[str, str]
    times: int
    last: dict[str, Any]
    partition: str | None = None
    offset: int | None = None


def compare(leader: DataFrame, follower: DataFrame) -> DataFrame:
    """The full outer join of both folds; ``kind`` is NULL for equal rows.

    The join needs no exchange of its own: both folds are grouped by what they are joined on.
    """
    named = [_named(side, rows) for side, rows in (("leader", leader), ("follower", follower))]
    joined = named[0].join(named[1], IDENTITY, "full_outer")
    return compared(joined.fillna(0, subset=[f"{side}_{name}" for side in _SIDES for name in ("net", "breaks")]))


def compared(joined: DataFrame) -> DataFrame:
    """Rows with both sides' columns of a fold, ``JOINED``, and what comes out where these are compared."""
    joined = joined.withColumn("kind", F.expr(_KIND))
    joined = joined.withColumn("rows", F.expr("IF(keyed, 1, abs(leader_net - follower_net))"))
    joined = joined.withColumn("columns", F.expr(_DIFFERING))
    for side in _SIDES:
        content = f"IF(keyed, xxhash64(identity, {side}_image), xxhash64(identity, {side}_net))"
        # A keyed row's net is off by one where a change of it was not logged; its image tells what is there.
        rows = f"IF(keyed, IF({side}_image IS NOT NULL, 1L, 0L), {side}_net)"
        joined = joined.withColumn(f"{side}_rows", F.expr(rows))
        joined = joined.withColumn(f"{side}_hash", F.expr(f"IF({side}_rows != 0, {content}, 0L)"))
    return joined


def told_of(comparison: DataFrame) -> DataFrame:
    """The rows of a comparison that there is more to say of than a count: drifted ones, and discontinued ones."""
    return comparison.where("kind IS NOT NULL OR leader_breaks + follower_breaks > 0")


def _named(side: str, rows: DataFrame) -> DataFrame:
    """One side's fold with its name before every column; a keyless row that is there shows its image."""
    image = F.expr("IF(keyed, image, IF(net > 0, identity, NULL))")
    fields = {name: F.col(name) for name in _FOLDED} | {"image": image}
    return rows.select(*IDENTITY, *(field.alias(f"{side}_{name}") for name, field in fields.items()))


def fold_of(joined: DataFrame, side: str) -> DataFrame:
    """One side's fold of rows with both sides' columns."""
    there = joined.where(f"{side}_last IS NOT NULL")
    return there.select(*IDENTITY, *(F.col(f"{side}_{name}").alias(name) for name in _FOLDED))


def tally(comparison: DataFrame) -> Tally:
    """What there is to count of the rows of a comparison."""
    drifted = {kind: F.sum(F.expr(f"IF(kind = '{kind}', rows, 0)")) for kind in ("missing", "extra", "different")}
    lines = comparison.groupBy("database", "table").agg(
        *(F.sum(f"{side}_rows").alias(f"{side}_rows") for side in _SIDES),
        *(total.alias(kind) for kind, total in drifted.items()),
        *(F.lower(F.hex(F.bit_xor(f"{side}_hash"))).alias(f"{side}_checksum") for side in _SIDES),
        *(F.sum(f"{side}_breaks").alias(f"{side}_breaks") for side in _SIDES),
    )
    found = [row.asDict() for row in lines.orderBy("database", "table").collect()]
    breaks = {side: sum(row.pop(f"{side}_breaks") for row in found) for side in _SIDES}
    return Tally([Table(**row) for row in found], breaks)


def drifted_rows(
    comparison: DataFrame,
    statements: Sequence[Unmatched] = (),
    names: Collection[tuple[str, str]] = (),
    transactions: DataFrame | None = None,
) -> DataFrame:
    """The drifted rows with the fields of DriftedRow; for the other arguments see ``with_causes``."""
    rows = with_causes(comparison.where("kind IS NOT NULL"), statements, names, transactions)
    rows = rows.withColumn("foreign", F.expr(_FOREIGN))
    for name in ("identity", "leader_image", "follower_image"):
        rows = rows.withColumn(name, F.map_from_entries(name))
    return rows.select(*DriftedRow.__dataclass_fields__)


def discontinuities(comparison: DataFrame, sides: Iterable[str], *, limit: int) -> list[Discontinuity]:
    """The first ``limit`` rows of each of the ``sides`` that a before image did not continue."""
    found = []
    for side in sides:
        rows = comparison.where(f"{side}_breaks > 0").orderBy(f"{side}_broken.sequence").limit(limit)
        for row in rows.withColumn("identity", F.map_from_entries("identity")).collect():
            last = row[f"{side}_broken"].asDict()
            found.append(
                Discontinuity(side, row["database"], row["table"], row["identity"], row[f"{side}_breaks"], last)
            )
    return found


def placed(records: DataFrame, found: Iterable[Discontinuity]) -> list[Discontinuity]:
    """``found`` with the places in Kafka of those that are in ``records``."""
    listed = list(found)
    known = {
        side: offsets(records, side, [each.last["sequence"] for each in listed if each.side == side])
        for side in {each.side for each in listed}
    }
    nowhere = (None, None)
    return [
        replace(each, partition=partition, offset=offset)
        for each in listed
        for partition, offset in [known[each.side].get(each.last["sequence"], nowhere)]
    ]
