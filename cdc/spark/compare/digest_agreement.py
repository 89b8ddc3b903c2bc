"""Agreement by digests: from both sides' records, a count of the rows that are equal, and the identities of the others.

One aggregate over the digests of both sides' changes (``streams.row_digests``) finds for each identity, on either side,
the image added last, and whether its images are **continuous**: each is removed as it was added. A row is **equal** if
both sides have it, with the same last image, and both are continuous; in a keyless table if both have it equally often.
Equal rows, in most audits nearly all, are only counted. All others are **open**: they are folded from their first
change on and compared image by image, as are all rows of a table that digests can't be made of.

Continuity is checked by sums: the images added, except the last, must add up to the images removed, except the first.
So for a row of more than three changes their order is not checked: if unlogged changes leave each logged image removed
as often as it was added, no discontinuity is reported. The last image is always compared.

The digests have 64 bits. A drifted row counts as equal only if two different images have the same hash: one in 1.8e19
for each drifted row. Two rows of a table whose keys have the same hash count as one; it is open if their images are not
continuous, and then compared exactly.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.compare.tally import Table, Tally
from cdc.spark.ddl.lineage import Name, Segment
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.one_part import beside, cached
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.row_digests import HIGHEST_SEQUENCE, digests, numbered

__all__ = ["Agreement", "agreement", "comparable_tables"]

_FEW = 100_000  # open rows of one table: they are broadcast, so they must fit into the memory of each executor

_LOW, _HIGH = "{0} & 4294967295L", "shiftright({0}, 32)"
_SIDES = {"leader": "by_leader", "follower": "NOT by_leader"}
_CONTINUOUS = " AND ".join(
    f"{{0}}_{half} = coalesce({of.format('{0}_last')}, 0L) - coalesce({of.format('{0}_first')}, 0L)"
    for half, of in (("low", _LOW), ("high", _HIGH))
)
_EQUAL = f"""
    IF(keyed,
        leader_changes > 0 AND follower_changes > 0 AND leader_last <=> follower_last AND NOT unchanged
            AND {_CONTINUOUS.format("leader")} AND {_CONTINUOUS.format("follower")},
        leader_net = follower_net)
"""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result for all rows: a ``tally`` of the equal ones, with a line for each table that digests were made of.

    ``whole`` are the tables of which all rows are open. ``among`` are the open identities of other tables, for
    ``fold.changes``, None if there are none, and ``among_of`` those tables.
    """

    tally: Tally
    whole: frozenset[Name]
    among_of: frozenset[Name]
    among: DataFrame | None

    @property
    def complete(self) -> bool:
        """Whether no row is open."""
        return not self.whole and self.among is None


def comparable_tables(
    lineage: Mapping[str, Iterable[Segment]], contents: Mapping[str, Contents], incomplete: Collection[Name] = ()
) -> tuple[list[Name], frozenset[Name]]:
    """The tables that can be compared by digests, since all their records have one shape on both sides; and the others.

    Those of which the copy is ``incomplete`` are among the others.

    All records of a name count for each table that ever had it. If a dropped table had another shape, the one that has
    its name now is compared without digests, which only takes longer.
    """
    shapes: dict[Name, set[int | None]] = {}
    for side, segments in lineage.items():
        logged = contents[side].shapes if side in contents else {}
        for each in segments:
            name = each.database, each.table
            if each.owner and name in logged:
                # An ALTER may change values even if it keeps the shape.
                shapes.setdefault(each.owner, set()).add(None if each.era else logged[name])
    one = (name for name, found in shapes.items() if len(found) == 1 and None not in found)
    comparable = sorted(name for name in one if name not in incomplete)
    return comparable, frozenset(shapes.keys() - set(comparable))


def agreement(
    records: DataFrame,
    lineage: Mapping[str, Sequence[Segment]],
    contents: Mapping[str, Contents],
    incomplete: Collection[Name] = (),
) -> Agreement:
    """Compare both sides' rows by digests; ``records`` are those of both sides up to where they are compared.

    ``incomplete`` are tables that can't be compared yet.
    """
    names, whole = comparable_tables(lineage, contents, incomplete)
    if any(each.end > HIGHEST_SEQUENCE for each in contents.values()):
        names, whole = [], whole | set(names)
    if not names:
        return Agreement(Tally(), whole, frozenset(), None)
    spark = records.sparkSession
    identities = _identities(digests(records, numbered(spark, lineage, names)))
    found = _counted(identities).collect()
    lines = [_line(names[row["number"]], row["rows"], row["checksum"]) for row in found]
    many = {row["number"] for row in found if row["open"] > _FEW}
    among_of = {row["number"] for row in found if 0 < row["open"] <= _FEW}
    left = [line for line, row in zip(lines, found, strict=True) if row["number"] not in many]
    return Agreement(
        tally=Tally(left),
        whole=whole | {names[number] for number in many},
        among_of=frozenset(names[number] for number in among_of),
        # Read for both sides, and more than once if rows drifted.
        among=cached(_named(identities.where(f"NOT {_EQUAL}"), names, among_of)) if among_of else None,
    )


def _identities(changes: DataFrame) -> DataFrame:
    """One row an identity, of fixed-size numbers only: Spark aggregates them where they are read, without sorting."""
    sums = []
    for side, mine in _SIDES.items():
        sums += [
            F.expr(f"count_if({mine})").alias(f"{side}_changes"),
            F.expr(f"sum(IF({mine}, int(added IS NOT NULL) - int(removed IS NOT NULL), 0))").alias(f"{side}_net"),
            F.expr(f"max_by(added, IF({mine}, ordinal, NULL))").alias(f"{side}_last"),
            F.expr(f"min_by(removed, IF({mine}, ordinal, NULL))").alias(f"{side}_first"),
        ]
        for half, of in (("low", _LOW), ("high", _HIGH)):
            # In halves: sums of whole hashes would overflow.
            difference = f"coalesce({of.format('added')}, 0L) - coalesce({of.format('removed')}, 0L)"
            sums.append(F.expr(f"sum(IF({mine}, {difference}, 0L))").alias(f"{side}_{half}"))
    # A change that removes the image it adds is missing from the sums, so they say nothing about its order.
    unchanged = F.expr("coalesce(bool_or(added = removed), false)").alias("unchanged")
    return changes.groupBy("number", "keyed", "identity").agg(*sums, unchanged)


def _counted(identities: DataFrame) -> DataFrame:
    rows = "IF(keyed, IF(leader_last IS NOT NULL, 1L, 0L), leader_net)"
    content = "xxhash64(identity, IF(keyed, leader_last, leader_net))"
    counted = identities.select(
        "number", F.expr(_EQUAL).alias("equal"), F.expr(rows).alias("rows"), F.expr(content).alias("content")
    )
    return counted.groupBy("number").agg(
        F.expr("sum(IF(equal, rows, 0L))").alias("rows"),
        F.expr("lower(hex(bit_xor(IF(equal AND rows != 0, content, 0L))))").alias("checksum"),
        F.expr("count_if(NOT equal)").alias("open"),
    )


def _named(identities: DataFrame, names: Sequence[Name], numbers: Iterable[int]) -> DataFrame:
    rows = [{"number": at, "database": names[at][0], "table": names[at][1]} for at in sorted(numbers)]
    tables = local_frame(identities.sparkSession, rows, "number INT, database STRING, table STRING")
    return identities.join(beside(tables), "number").select("database", "table", "identity")


def _line(name: Name, rows: int, checksum: str) -> Table:
    return Table(*name, rows, rows, 0, 0, 0, checksum, checksum)
