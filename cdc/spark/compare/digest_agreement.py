"""Counts the rows that are equal on both sides by comparing digests, and finds the identities of all other rows.

One aggregate over the digests of both sides' changes (``streams.row_digests``) finds for each identity, on either side,
the image added last, and whether the images are **continuous**: each image is removed as it was added. A row is
**equal** if both sides have it, with the same last image, and the images of both sides are continuous; a keyless row is
equal if both sides have it equally often. If ALTERs separate the changes of a row, its images must be continuous within
each **era**, and both sides' last changes must belong to the same era. A row that the leader added and removed before
the follower saw it is equal, too. Equal rows, in most audits nearly all rows, are only counted. All other rows are
**open**: they are folded from their first change on and compared image by image, as are all rows of a table for which
digests can't be made.

Continuity is checked by sums: the images added, except the last, must add up to the images removed, except the first.
So the order of a row's changes is not checked if there are more than three: unlogged changes cause no discontinuity if
the log still removes each image as often as it adds it. The last image is always compared.

The digests have 64 bits. A drifted row counts as equal only if two different images have the same hash; the probability
of this is 1 in 1.8e19 for each drifted row. Two rows of a table whose keys have the same hash count as one row. This
row is open if its images are not continuous; then it is compared exactly.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.compare.copied_tables import NO_COPIES, Copied
from cdc.spark.compare.tally import Table, Tally, checksum
from cdc.spark.ddl.lineage import Name, Segment, with_eras
from cdc.spark.input.small_data import beside, cached, in_one_part, local_frame, named
from cdc.spark.streams.contents import Contents, Shape
from cdc.spark.streams.row_digests import digests, numbered
from cdc.spark.streams.row_places import HIGHEST_SEQUENCE

__all__ = ["Agreement", "agreement", "comparable_tables"]

_FEW = 100_000  # maximum number of open rows that Spark broadcasts: they must fit into each executor's memory

_LOW, _HIGH = "{0} & 4294967295L", "shiftright({0}, 32)"
_SIDES = {"leader": "by_leader", "follower": "NOT by_leader"}
_CONTINUOUS = " AND ".join(
    f"{{0}}_{half} = coalesce({of.format('{0}_last')}, 0L) - coalesce({of.format('{0}_first')}, 0L)"
    for half, of in (("low", _LOW), ("high", _HIGH))
)
_OF_ROW = ("number", "keyed", "identity")
# Two columns about a row in one era (the time between two ALTERs): ``continues``, whether each image was removed as it
# was added, and ``came_and_went``, whether the leader changed the row but had no such row before and after the era.
_CONTINUES = f"""
    NOT unchanged AND {_CONTINUOUS.format("leader")} AND {_CONTINUOUS.format("follower")} AS continues
"""
_CAME_AND_WENT = """
    leader_changes > 0 AND leader_first IS NULL AND leader_last IS NULL AND leader_net = 0 AS came_and_went
"""
_EQUAL = """
    IF(keyed,
        continues AND IF(follower_changes > 0,
            leader_changes > 0 AND leader_era = follower_era AND leader_last <=> follower_last,
            settles AND came_and_went AND leader_eras = 1),
        leader_net = follower_net) AS equal
"""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The result of comparing digests: a ``tally`` of the equal rows, with a line for each table compared by digests.

    A row is open if the digests do not show whether it is equal. ``whole`` are the tables in which all rows are open.
    ``among`` contains the identities of the open rows of other tables, for ``fold.changes``, or is None; ``among_of``
    are the tables of these identities.
    """

    tally: Tally
    whole: frozenset[Name]
    among_of: frozenset[Name]
    among: DataFrame | None

    @property
    def complete(self) -> bool:
        """Whether no row is open, so that no images of rows have to be compared."""
        return not self.whole and self.among is None


def comparable_tables(
    lineage: Mapping[str, Sequence[Segment]], contents: Mapping[str, Contents], incomplete: Collection[Name] = ()
) -> tuple[list[Name], frozenset[Name], frozenset[Name]]:
    """Returns the tables that digests can compare, the subset of these tables with rows from before an ALTER, and all
    other tables.

    In a comparable table all records of one era (the time between two ALTERs) have the same columns on both sides, and
    all records have the same key. If the table has no key, it has only one era. Tables whose copy is ``incomplete`` are
    not comparable.
    """
    shapes: dict[Name, dict[int, set[Shape]]] = {}
    for side, segments in lineage.items():
        logged = contents[side].shapes if side in contents else {}
        for segment, era in with_eras(segments):
            found = logged.get((segment.database, segment.table), ())
            within = [each for each in found if each.first < segment.end and each.last >= segment.first]
            if segment.owner and within:
                shapes.setdefault(segment.owner, {}).setdefault(era, set()).update(within)
    comparable = sorted(name for name, eras in shapes.items() if name not in incomplete and _one_shape_each(eras))
    altered = frozenset(name for name in comparable if len(shapes[name]) > 1)
    return comparable, altered, frozenset(shapes.keys() - set(comparable))


def _one_shape_each(eras: Mapping[int, Collection[Shape]]) -> bool:
    numbers = [{each.number for each in found} for found in eras.values()]
    keys = {each.key for found in eras.values() for each in found}
    return (
        all(len(found) == 1 and None not in found for found in numbers)
        and len(keys) == 1
        and (len(eras) == 1 or None not in keys)
    )


def agreement(
    records: DataFrame,
    lineage: Mapping[str, Sequence[Segment]],
    contents: Mapping[str, Contents],
    copied: Copied = NO_COPIES,
) -> Agreement:
    """Compares both sides' rows by digests; ``records`` are both sides' records up to the compared sequence.

    ``copied`` are the tables that were copied into the streams.
    """
    copies = copied.tables
    names, altered, whole = comparable_tables(lineage, contents, copied.incomplete)
    if any(each.end > HIGHEST_SEQUENCE for each in contents.values()):
        names, whole = [], whole | set(names)
    if not names:
        return Agreement(Tally(), whole, frozenset(), None)
    tables = numbered(records.sparkSession, lineage, names)
    identities = _compared(digests(records, tables), names, altered, copies)
    found = _counted(identities).collect()
    lines = [_line(names[row["number"]], row["rows"], row["hashes"]) for row in found]
    among_of = _few({row["number"]: row["open"] for row in found if row["open"]})
    many = {row["number"] for row in found if row["open"]} - among_of
    left = [line for line, row in zip(lines, found, strict=True) if row["number"] not in many]
    return Agreement(
        tally=Tally(left),
        whole=whole | {names[number] for number in many},
        among_of=frozenset(names[number] for number in among_of),
        # The identities are cached because the folds of both sides use them, and use them once more if rows drifted.
        among=cached(_named(identities.where("NOT equal"), names, among_of)) if among_of else None,
    )


def _few(counts: Mapping[int, int]) -> set[int]:
    """Selects the tables whose open rows (not known to be equal) are broadcast: as many tables as possible, with up to
    _FEW such rows in all. ``counts`` maps the numbers of the tables to their open rows; returns the selected numbers.
    """
    room, found = _FEW, set()
    for number in sorted(counts, key=lambda number: (counts[number], number)):
        if counts[number] > room:
            break
        room -= counts[number]
        found.add(number)
    return found


def _compared(
    changes: DataFrame, names: Sequence[Name], altered: Collection[Name], copies: Collection[Name]
) -> DataFrame:
    """Aggregates the digests to one row per identity. Spark need not sort, since all values have a fixed size.

    The columns are _OF_ROW, ``leader_last``, ``leader_net``, and ``equal``. The tables ``altered`` need a second
    aggregate. In a table of ``copies``, the follower may have a row that its log lacks, since the consumer does not
    write a row of the copy that the follower has already.
    """
    numbers = {name: number for number, name in enumerate(names)}
    settles = ~F.col("number").isin([numbers[name] for name in copies if name in numbers])
    parts = []
    if of_altered := [numbers[name] for name in altered]:
        parts.append(_of_several_eras(changes.where(F.col("number").isin(of_altered))))
    if len(altered) < len(names):
        one_era = changes.where(~F.col("number").isin(of_altered)) if of_altered else changes
        constant = {"leader_era": F.lit(0), "follower_era": F.lit(0), "leader_eras": F.lit(1)}
        one = _summed(one_era, _OF_ROW).withColumns(constant)
        parts.append(one.select("*", F.expr(_CONTINUES), F.expr(_CAME_AND_WENT)))
    of_sides = [f"{side}_{name}" for side in _SIDES for name in ("last", "net", "changes", "era")]
    fields = [*_OF_ROW, *of_sides, "leader_eras", "continues", "came_and_went"]
    found = [part.select(*fields, settles.alias("settles")) for part in parts]
    rows = found[0] if len(found) == 1 else in_one_part(found[0].unionByName(found[1]))
    return rows.select(*_OF_ROW, "leader_last", "leader_net", F.expr(_EQUAL))


def _of_several_eras(changes: DataFrame) -> DataFrame:
    """Aggregates the digests of altered tables. In each era (the time between two ALTERs) the images of a row must be
    continuous; only the last era's image is compared.

    No log contains how an ALTER changes a row, so the images before and after it are not compared.
    """
    of_eras = _summed(changes, (*_OF_ROW, "era")).select("*", F.expr(_CONTINUES), F.expr(_CAME_AND_WENT))
    era = {side: f"IF({side}_changes > 0, era, NULL)" for side in _SIDES}
    last = {f"{side}_last": f"max_by({side}_last, {era[side]})" for side in _SIDES}
    sums = {f"{side}_{name}": f"sum({side}_{name})" for side in _SIDES for name in ("changes", "net")}
    found = last | sums | {f"{side}_era": f"max({era[side]})" for side in _SIDES}
    found |= {
        "leader_eras": f"count({era['leader']})",
        "continues": "bool_and(continues)",
        "came_and_went": "bool_or(came_and_went)",
    }
    return of_eras.groupBy(*named(*_OF_ROW)).agg(*(F.expr(sql).alias(name) for name, sql in found.items()))


def _summed(changes: DataFrame, by: Sequence[str]) -> DataFrame:
    """Groups the changes by the columns ``by``; computes for each side the sums, and the first and the last image."""
    sums = []
    for side, mine in _SIDES.items():
        sums += [
            F.expr(f"count_if({mine})").alias(f"{side}_changes"),
            F.expr(f"sum(IF({mine}, int(added IS NOT NULL) - int(removed IS NOT NULL), 0))").alias(f"{side}_net"),
            F.expr(f"max_by(added, IF({mine}, ordinal, NULL))").alias(f"{side}_last"),
            F.expr(f"min_by(removed, IF({mine}, ordinal, NULL))").alias(f"{side}_first"),
        ]
        for half, of in (("low", _LOW), ("high", _HIGH)):
            # Hashes are summed in halves, since sums of whole hashes would overflow.
            difference = f"coalesce({of.format('added')}, 0L) - coalesce({of.format('removed')}, 0L)"
            sums.append(F.expr(f"sum(IF({mine}, {difference}, 0L))").alias(f"{side}_{half}"))
    # A change that adds the same image that it removes does not change the sums. So the sums do not check the order of
    # such changes, and ``unchanged`` marks them.
    unchanged = F.expr("coalesce(bool_or(added = removed), false)").alias("unchanged")
    return changes.groupBy(*named(*by)).agg(*sums, unchanged)


def _counted(identities: DataFrame) -> DataFrame:
    rows = "IF(keyed, IF(leader_last IS NOT NULL, 1L, 0L), leader_net)"
    content = "xxhash64(identity, IF(keyed, leader_last, leader_net))"
    counted = identities.select("number", "equal", F.expr(rows).alias("rows"), F.expr(content).alias("content"))
    return counted.groupBy(*named("number")).agg(
        F.expr("sum(IF(equal, rows, 0L))").alias("rows"),
        F.expr("bit_xor(IF(equal AND rows != 0, content, 0L))").alias("hashes"),
        F.expr("count_if(NOT equal)").alias("open"),
    )


def _named(identities: DataFrame, names: Sequence[Name], numbers: Iterable[int]) -> DataFrame:
    rows = [{"number": at, "database": names[at][0], "table": names[at][1]} for at in sorted(numbers)]
    tables = local_frame(identities.sparkSession, rows, "number INT, database STRING, table STRING")
    return identities.join(beside(tables), "number").select("database", "table", "identity")


def _line(name: Name, rows: int, hashes: int) -> Table:
    return Table(*name, rows, rows, 0, 0, 0, checksum(hashes), checksum(hashes))
