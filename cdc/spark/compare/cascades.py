"""Removes the records of changes that only the follower's foreign keys made (cascades).

Since MySQL 9.6 a server logs the changes made by its foreign keys, and sets a flag in each rows event to show that it
does. With an older leader the consumer leaves cascades to the follower; if the follower is newer, its log has changes
that the leader's log lacks. The fold leaves these changes out, so that neither side has them.

In the follower's log, the rows of a cascade are logged with foreign key checks off. The consumer also turns the checks
off, for three kinds of records: records that had the checks off on the leader, records of a leader that logs cascades,
and records of a table that is being copied, since its rows may refer to rows that are copied later. Rows with the
checks off are a cascade if no record of these kinds explains them: their transaction applied no such record of the same
table. A record explains only changes that the consumer can make from it: a record that adds rows explains no change
that deletes or updates rows. So a cascade is recognized even if it deletes a row that the leader added with the checks
off in the same transaction. Each transaction is compared with the records that it applied, so a later upgrade of the
leader changes nothing for earlier transactions.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import in_one_part
from cdc.spark.lag.transit import matched
from cdc.spark.streams.contents import Contents

__all__ = ["without_cascades"]

_UNCHECKED = "coalesce(flags & 2, 0) != 0"
_UNCHECKED_OR_LOGS_ALL = "coalesce(flags & 18, 0) != 0"
_CHANGE = "CASE WHEN rows[0].before IS NULL THEN 'add' WHEN rows[0].after IS NULL THEN 'delete' ELSE 'update' END"
# The kinds of changes that the consumer may make from a record: it may combine a deleted and an added row to an update.
_MAY_BECOME = f"IF({_CHANGE} = 'add' AND NOT copying, array('add'), array('add', 'update', 'delete'))"


def without_cascades(
    records: DataFrame, transactions: DataFrame, contents: Mapping[str, Contents], marks: DataFrame | None
) -> DataFrame:
    """Removes from both sides' ``records`` the records of changes that only the follower's foreign keys made.

    Transactions in which the consumer resolved conflicts stay complete, since the consumer turns the checks off to
    resolve conflicts.
    """
    leader = contents.get(LEADER)
    if leader is None or not leader.silent_keys or not contents[FOLLOWER].unchecked:
        return records
    on_follower, on_leader = (records.where(F.col("side") == side) for side in (FOLLOWER, LEADER))
    applied = transactions.where("kind = 'applied'").select("transaction", "since", "upto", "ts_us")
    named = ("transaction", "database", "table", "change")
    unchecked = on_follower.where(_UNCHECKED).withColumn("change", F.expr(_CHANGE)).select("sequence", *named)
    rows = unchecked.join(applied.select("transaction"), "transaction")
    if marks is not None:
        rows = rows.join(marks.where("known.kind = 'conflict'"), "transaction", "left_anti")
    mark = F.struct("since", F.col("ts_us").alias("at_us"), "transaction").alias("mark")
    items = on_leader.where(f"{_UNCHECKED_OR_LOGS_ALL} OR copying").select(
        "sequence", F.expr(f"explode({_MAY_BECOME})").alias("change"), "database", "table"
    )
    items = items.select("sequence", F.struct("database", "table", "change").alias("item"))
    found = matched(items, {"by": applied.select("since", "upto", mark)})
    explained = found.select(F.col("by.transaction").alias("transaction"), "item.*").distinct()
    cascades = rows.join(explained, list(named), "left_anti").select("sequence")
    return in_one_part(on_leader.unionByName(on_follower.join(cascades, "sequence", "left_anti")))
