"""The rows that both sides agree on, told by digests: in most audits nearly all of them.

One aggregate over the digests of both sides' changes (``streams.row_digests``) finds of each identity, on either side,
what was put last, and whether its images continue: each is taken as it was put. An identity is **settled** where both
sides have it, with the same image last, and both continue; in a keyless table where both put it as often as they took
it. Of such a row a count is all that there is to tell. All others are **open**, and are folded and compared image by
image, from their first change on; so are all rows of a table of which digests do not tell.

That images continue is told by sums: what was put, but for the last, must add up to what was taken, but for the first.
So the order in which they came and went is not looked at where a row has more than three changes: if it was changed
unlogged, and unlogged again such that each image which was logged was taken as often as it was put, no discontinuity
is told. What is put last is compared as it is.

The odds are those of 64 bits. A row that drifted is settled only if two different images have the same hash: one in
1.8e19 for each row that drifted. Two rows of a table with the same hash of their keys count as one, which then is open
if their images do not continue, so it is compared exactly.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.compare.row_drift import Table, Tally
from cdc.spark.input.local_frame import literal
from cdc.spark.schema.lineage import Name, Segment
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.row_digests import HIGHEST_SEQUENCE, digests, numbered

__all__ = ["Agreement", "agreement", "tellable"]

_FEW = 100_000  # open rows of one table: what is to be looked up for each change must fit into memory everywhere

_LOW, _HIGH = "{0} & 4294967295L", "shiftright({0}, 32)"
_SIDES = {"leader": "ours", "follower": "NOT ours"}
_CONTINUES = " AND ".join(
    f"{{0}}_{half} = coalesce({of.format('{0}_last')}, 0L) - coalesce({of.format('{0}_first')}, 0L)"
    for half, of in (("low", _LOW), ("high", _HIGH))
)
_SETTLED = f"""
    IF(keyed,
        leader_changes > 0 AND follower_changes > 0 AND leader_last <=> follower_last AND NOT same
            AND {_CONTINUES.format("leader")} AND {_CONTINUES.format("follower")},
        leader_net = follower_net)
"""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What digests told: a ``tally`` of the rows that are settled, with a line for each table of which they told any.

    ``whole`` are the tables of which they tell nothing, ``among`` the identities of other tables that are open, for
    ``fold.changes``, and ``among_of`` those tables.
    """

    tally: Tally
    whole: frozenset[Name]
    among_of: frozenset[Name]
    among: DataFrame | None

    @property
    def settles_all(self) -> bool:
        """No row is left to be folded."""
        return not self.whole and self.among is None


def tellable(
    lives: Mapping[str, Iterable[Segment]], contents: Mapping[str, Contents]
) -> tuple[list[Name], frozenset[Name]]:
    """The tables that digests tell of: all their records have one shape, on both sides; and those of which they can't.

    What was logged under a name counts for all that ever had it: a table whose rows are gone may have had another
    shape, which then costs time but no more.
    """
    shapes: dict[Name, set[int | None]] = {}
    for side, segments in lives.items():
        logged = contents[side].shapes if side in contents else {}
        for each in segments:
            name = each.database, each.table
            if each.owner and name in logged:
                # An ALTER that changes no shape may still change values.
                shapes.setdefault(each.owner, set()).add(None if each.era else logged[name])
    told = sorted(name for name, found in shapes.items() if len(found) == 1 and None not in found)
    return told, frozenset(shapes.keys() - set(told))


def agreement(
    records: DataFrame,
    lives: Mapping[str, Sequence[Segment]],
    contents: Mapping[str, Contents],
) -> Agreement:
    """What the digests of ``records``, of both sides and up to where these are to be folded, tell of their rows."""
    names, whole = tellable(lives, contents)
    if any(each.end > HIGHEST_SEQUENCE for each in contents.values()):
        names, whole = [], whole | set(names)
    if not names:
        return Agreement(Tally(), whole, frozenset(), None)
    spark = records.sparkSession
    identities = _identities(digests(records, numbered(spark, lives, names)))
    found = _counted(identities).collect()
    lines = [_line(names[row["number"]], row["rows"], row["checksum"]) for row in found]
    many = {row["number"] for row in found if row["open"] > _FEW}
    among_of = {row["number"] for row in found if 0 < row["open"] <= _FEW}
    left = [line for line, row in zip(lines, found, strict=True) if row["number"] not in many]
    return Agreement(
        tally=Tally(left),
        whole=whole | {names[number] for number in many},
        among_of=frozenset(names[number] for number in among_of),
        # It is looked into for both sides, and more than once where rows drifted.
        among=_named(identities.where(f"NOT {_SETTLED}"), names, among_of).persist() if among_of else None,
    )


def _identities(changes: DataFrame) -> DataFrame:
    """One row an identity. Only numbers, of a fixed size: Spark sums them up where they are read, without sorting."""
    sums = []
    for side, mine in _SIDES.items():
        sums += [
            F.expr(f"count_if({mine})").alias(f"{side}_changes"),
            F.expr(f"sum(IF({mine}, int(put IS NOT NULL) - int(taken IS NOT NULL), 0))").alias(f"{side}_net"),
            F.expr(f"max_by(put, IF({mine}, place, NULL))").alias(f"{side}_last"),
            F.expr(f"min_by(taken, IF({mine}, place, NULL))").alias(f"{side}_first"),
        ]
        for half, of in (("low", _LOW), ("high", _HIGH)):
            # Halves of them: sums of whole ones would overflow.
            more = f"coalesce({of.format('put')}, 0L) - coalesce({of.format('taken')}, 0L)"
            sums.append(F.expr(f"sum(IF({mine}, {more}, 0L))").alias(f"{side}_{half}"))
    # What takes the image that it puts adds nothing to the sums, wherever it comes.
    same = F.expr("coalesce(bool_or(put = taken), false)").alias("same")
    return changes.groupBy("number", "keyed", "identity").agg(*sums, same)


def _counted(identities: DataFrame) -> DataFrame:
    rows = "IF(keyed, IF(leader_last IS NOT NULL, 1L, 0L), leader_net)"
    content = "xxhash64(identity, IF(keyed, leader_last, leader_net))"
    told = identities.select(
        "number", F.expr(_SETTLED).alias("settled"), F.expr(rows).alias("rows"), F.expr(content).alias("content")
    )
    return told.groupBy("number").agg(
        F.expr("sum(IF(settled, rows, 0L))").alias("rows"),
        F.expr("lower(hex(bit_xor(IF(settled AND rows != 0, content, 0L))))").alias("checksum"),
        F.expr("count_if(NOT settled)").alias("open"),
    )


def _named(identities: DataFrame, names: Sequence[Name], numbers: Iterable[int]) -> DataFrame:
    rows = [{"number": at, "database": names[at][0], "table": names[at][1]} for at in sorted(numbers)]
    tables = literal(identities.sparkSession, rows, "number INT, database STRING, table STRING")
    return identities.join(F.broadcast(tables), "number").select("database", "table", "identity")


def _line(name: Name, rows: int, checksum: str) -> Table:
    return Table(*name, rows, rows, 0, 0, 0, checksum, checksum)
