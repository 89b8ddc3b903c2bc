"""The rows that the follower's own foreign keys changed, where the leader changed its own without a word in its log.

Since MySQL 9.6 a server logs what its foreign keys do, and says so in the flags of each rows event. With an older
leader the consumer leaves cascades to the follower, and a newer one then has changes in its log that the leader's
lacks. They are left out of the fold, so that neither side shows them. In the follower's log they are the rows with
foreign key checks off, in a transaction that stands for none of the leader's records of that table that the consumer
applies with the checks off: those that had them off on the leader, and those of a leader that logs all. So each
transaction tells it by the sequences that it stands for, whatever the leader logs, or is upgraded to, later.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.lag.transit import matched
from cdc.spark.streams.contents import Contents

__all__ = ["without_cascades"]

_UNCHECKED = "coalesce(flags & 2, 0) != 0"
_UNCHECKED_OR_LOGS_ALL = "coalesce(flags & 18, 0) != 0"


def without_cascades(
    records: DataFrame, transactions: DataFrame, contents: Mapping[str, Contents], marks: DataFrame | None
) -> DataFrame:
    """Both sides' records, without those that only the follower's foreign keys made.

    No transaction is looked at in which the consumer settled conflicts, for which it takes the checks off.
    """
    leader = contents.get(LEADER)
    if leader is None or not leader.silent_keys or not contents[FOLLOWER].unchecked:
        return records
    theirs, ours = (records.where(F.col("side") == side) for side in (FOLLOWER, LEADER))
    applied = transactions.where("kind = 'applied'").select("transaction", "since", "upto", "ts_us")
    named = ("transaction", "database", "table")
    rows = theirs.where(_UNCHECKED).select("sequence", *named).join(applied.select("transaction"), "transaction")
    if marks is not None:
        rows = rows.join(marks.where("known.kind = 'conflict'"), "transaction", "left_anti")
    mark = F.struct("since", F.col("ts_us").alias("at_us"), "transaction").alias("mark")
    asked = ours.where(_UNCHECKED_OR_LOGS_ALL).select("sequence", F.struct("database", "table").alias("asked"))
    found = matched(asked, {"by": applied.select("since", "upto", mark)})
    explained = found.select(F.col("by.transaction").alias("transaction"), "asked.*").distinct()
    cascades = rows.join(explained, list(named), "left_anti").select("sequence")
    return ours.unionByName(theirs.join(cascades, "sequence", "left_anti"))
