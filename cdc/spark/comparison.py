"""Each side's history up to where both are compared, and the rows that are left of it: folded, or told without it.

The leader's goes up to the watermark, the follower's up to its last whole transaction: what the follower has beyond the
watermark did not come from the leader, so it belongs in the comparison.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from cdc.spark.compare.cascades import without_cascades
from cdc.spark.compare.digest_agreement import Agreement, agreement
from cdc.spark.compare.fold import carried, changes, fold, segments, with_era_told_from_the_end
from cdc.spark.compare.row_drift import Tally, compare, compared, fold_of, tally
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.schema.lineage import Name, Segment
from cdc.spark.state.coverage import Held, upto
from cdc.spark.state.layers import newest
from cdc.spark.streams.contents import Contents

__all__ = [
    "Comparison", "History", "compared_as_needed", "compared_where_touched", "compared_whole", "records_upto",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class History:
    """One side's ``records`` up to where it is compared, its tables' lifelines since they begin, and its marks."""

    records: DataFrame
    lives: Sequence[Segment]
    marks: DataFrame | None

    def segments(self, owners: Collection[Name] | None = None) -> DataFrame:
        """The lifelines of all tables, or of those in ``owners``, as ``changes`` and ``carried`` want them."""
        lives = [each for each in self.lives if owners is None or each.owner in owners]
        return segments(self.records.sparkSession, lives)

    def folded(self, held: DataFrame | None = None) -> DataFrame:
        """All rows, with their ``era`` as ``carried`` wants it; ``held`` is the fold of what came before them."""
        lives = self.segments()
        made = changes(self.records, lives, self.marks)
        return with_era_told_from_the_end(fold(made if held is None else made.unionByName(carried(held, lives))), lives)

    def hashes(self) -> DataFrame:
        """Those of the rows that were changed."""
        return changes(self.records, self.segments()).select("hash")

    def folded_where_open(self, agreed: Agreement) -> DataFrame:
        """The rows that ``agreed`` does not settle, of which there are some."""
        made = []
        if agreed.whole:
            made.append(changes(self.records, self.segments(agreed.whole), self.marks))
        if agreed.among is not None:
            lives = self.segments(agreed.among_of)
            made.append(changes(self.records, lives, self.marks, among=agreed.among))
        return fold(made[0] if len(made) == 1 else made[0].unionByName(made[1]))


@dataclass(frozen=True, slots=True)
class Comparison:
    """The ``rows`` that were to be compared, None where none were, and the ``rest``: what the others count.

    ``touched``: they are those that were touched since they were held.
    """

    rows: DataFrame | None
    rest: Tally = field(default_factory=Tally)
    touched: bool = False


def compared_as_needed(
    records: DataFrame, histories: Mapping[str, History], contents: Mapping[str, Contents]
) -> Comparison:
    """What can't be told by digests of the ``records``, which are all there are."""
    agreed = agreement(records, {side: each.lives for side, each in histories.items()}, contents)
    if agreed.settles_all:
        return Comparison(None, agreed.tally)
    folds = {side: each.folded_where_open(agreed) for side, each in histories.items()}
    return Comparison(compare(folds[LEADER], folds[FOLLOWER]), agreed.tally)


def compared_whole(histories: Mapping[str, History], before: Held | None) -> tuple[DataFrame, Tally]:
    """All rows, those from ``before`` included, and the tally of no others."""
    return _joined(histories, newest(before.layers) if before else None), Tally()


def compared_where_touched(histories: Mapping[str, History], before: Held) -> tuple[DataFrame, Tally]:
    """The rows that were touched since they were held, for which they must ``stay``, and the tally of the others."""
    hashes = reduce(DataFrame.union, [each.hashes() for each in histories.values()], before.open).distinct()
    held = newest(before.layers, hashes).persist(StorageLevel.MEMORY_AND_DISK)
    return _joined(histories, held), before.tally.less(tally(compared(held)))


def _joined(histories: Mapping[str, History], held: DataFrame | None) -> DataFrame:
    folds = {side: each.folded(None if held is None else fold_of(held, side)) for side, each in histories.items()}
    return compare(folds[LEADER], folds[FOLLOWER])


def records_upto(
    ends: Mapping[str, int],
    records: DataFrame,
    transactions: DataFrame,
    contents: Mapping[str, Contents],
    marks: DataFrame | None,
) -> DataFrame:
    """Both sides' ``records`` up to the sequences ``ends``, without what only the follower's foreign keys did.

    For the others see ``without_cascades``, of which there are none in most audits.
    """
    return without_cascades(upto(records, "sequence", ends), transactions, contents, marks)
