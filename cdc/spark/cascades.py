"""The rows that the follower's own foreign keys changed, where the leader changed its own without a word in its log.

Since MySQL 9.6 a server logs what its foreign keys do, and says so in the flags of each rows event. With an older
leader the consumer leaves cascades to the follower, and a newer one then has changes in its log that the leader's
lacks. They are left out of the fold, so that neither side shows them. In the follower's log they are the rows with
foreign key checks off, where the leader had them on.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.spark.literal import literal
from cdc.spark.survey import Contents
from cdc.spark.topics import FOLLOWER, LEADER

__all__ = ["without_cascades"]

_UNCHECKED = "coalesce(flags & 2, 0) != 0"


def without_cascades(
    held: DataFrame, transactions: DataFrame, contents: Mapping[str, Contents], marks: DataFrame | None
) -> DataFrame:
    """The follower's records, without those that only its foreign keys made.

    A table that the leader itself changed with the checks off, up to some sequence, is looked at from there on; so is
    no transaction in which the consumer settled conflicts, for which it takes the checks off.
    """
    leader = contents.get(LEADER)
    if leader is None or not leader.silent_keys or not contents[FOLLOWER].unchecked:
        return held
    until = [{"database": name[0], "table": name[1], "until": at} for name, at in leader.unchecked.items()]
    unchecked = literal(held.sparkSession, until, "database STRING, table STRING, until BIGINT")
    applied = transactions.where("kind = 'applied'").select("transaction", "since")
    rows = held.where(_UNCHECKED).select("sequence", "transaction", "database", "table").join(applied, "transaction")
    rows = rows.join(F.broadcast(unchecked), ["database", "table"], "left")
    if marks is not None:
        rows = rows.join(marks.where("known.kind = 'conflict'"), "transaction", "left_anti")
    return held.join(rows.where("until IS NULL OR since >= until").select("sequence"), "sequence", "left_anti")
