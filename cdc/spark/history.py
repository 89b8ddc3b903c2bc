"""Each side's history up to where both are compared, and the rows that are left of it: folded, or agreed on.

The leader's goes up to the watermark, the follower's up to its last whole transaction: what the follower has beyond the
watermark did not come from the leader, so it belongs in the comparison.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.agreement import Agreement, agreement
from cdc.spark.cascades import without_cascades
from cdc.spark.covered import upto
from cdc.spark.fold import carried, changes, fold, segments
from cdc.spark.lifelines import Name, Segment
from cdc.spark.survey import Contents
from cdc.spark.topics import FOLLOWER, LEADER

__all__ = ["History", "folds_needed", "records_upto"]


@dataclass(frozen=True, slots=True)
class History:
    """One side's ``records`` up to where it is compared, the lifelines of its tables since they begin, and its marks.

    ``held`` is the fold of what came before them, None where they begin at the beginning.
    """

    records: DataFrame
    lives: Sequence[Segment]
    marks: DataFrame | None
    held: DataFrame | None = None

    def segments(self, owners: Collection[Name] | None = None) -> DataFrame:
        """The lifelines of all tables, or of those in ``owners``, as ``changes`` and ``carried`` want them."""
        lives = [each for each in self.lives if owners is None or each.owner in owners]
        return segments(self.records.sparkSession, lives)

    def folded(self) -> DataFrame:
        """All rows."""
        lives = self.segments()
        made = changes(self.records, lives, self.marks)
        return fold(made if self.held is None else made.unionByName(carried(self.held, lives)))

    def folded_where_open(self, agreed: Agreement) -> DataFrame:
        """The rows that ``agreed`` does not settle, of which there are some."""
        made = []
        if agreed.whole:
            made.append(changes(self.records, self.segments(agreed.whole), self.marks))
        if agreed.among is not None:
            lives = self.segments(agreed.among_of)
            made.append(changes(self.records, lives, self.marks, among=agreed.among))
        return fold(made[0] if len(made) == 1 else made[0].unionByName(made[1]))


def folds_needed(
    records: DataFrame, histories: Mapping[str, History], contents: Mapping[str, Contents], *, whole: bool
) -> tuple[dict[str, DataFrame] | None, Agreement | None]:
    """Each side's fold, None where none is needed, and what digests of the ``records`` tell that is not in them.

    With ``whole``, as a state wants it, all is folded, and no digest asked.
    """
    if whole:
        return {side: each.folded() for side, each in histories.items()}, None
    agreed = agreement(records, {side: each.lives for side, each in histories.items()}, contents)
    if agreed.settles_all:
        return None, agreed
    return {side: each.folded_where_open(agreed) for side, each in histories.items()}, agreed


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
    within = upto(records, "sequence", ends)
    logged = within.where(F.col("side") == FOLLOWER)
    theirs = without_cascades(logged, transactions, contents, marks)
    return within if theirs is logged else within.where(F.col("side") == LEADER).unionByName(theirs)
