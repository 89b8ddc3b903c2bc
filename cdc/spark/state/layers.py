"""What a state holds of rows that nothing touched since: they stay as they were compared, and where they lie.

A state keeps what both sides' folds have in **layers**: the first has all rows, each later one those that were touched
since, as they were then. Rows go by the hash that the fold sorts them by: the last layer that has a hash has all rows
of it, so that two rows of the same hash never part. **Touched** are the rows of hashes that a record since has changed,
and those that drifted or were discontinued, of which each audit has more to tell than a count.

So an audit looks for these hashes in what is held, and folds, sorts, compares and writes no more than their rows. All
is folded anew where a statement moved a table with its rows, or altered it, and where much was touched.
"""

from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.spark.schema.lineage import END, Name, Segment
from cdc.spark.state.coverage import Held

__all__ = ["few_touched", "newest", "stay"]

_MOST_LOOKED_UP = 1_000_000  # hashes of touched rows, and of later layers: they must fit into memory everywhere


def few_touched(before: Held, rows: int) -> bool:
    """Whether, with ``rows`` in the records since, it takes less to look up what they touched than to fold all."""
    return before.above + before.opened + rows <= min(_MOST_LOOKED_UP, before.rows)


def stay(held: Collection[Name], lives: Iterable[Segment]) -> bool:
    """Whether the rows of the tables ``held`` still belong to them, in the shape that they had, by all ``lives`` since.

    Tables of which no row is held may come, go and change.
    """
    names = (((each.database, each.table), each) for each in lives)
    return all((each.first, each.end, each.owner) == (0, END, name) for name, each in names if name in held)


def newest(layers: DataFrame, hashes: DataFrame | None = None) -> DataFrame:
    """The rows that ``layers`` hold, those of the ``hashes`` where these are given.

    Which layer a row is in its ``generation`` says, lower in earlier ones.
    """
    if hashes is not None:
        found = layers.join(F.broadcast(hashes), "hash", "left_semi")
        found = found.withColumn("newest", F.max("generation").over(Window.partitionBy("hash")))
    else:
        first = layers.agg(F.min("generation").alias("first"))
        later = layers.select("hash", "generation").join(F.broadcast(first), F.col("generation") > F.col("first"))
        later = later.groupBy("hash").agg(F.max("generation").alias("newest"))
        found = layers.join(F.broadcast(later), "hash", "left")
    return found.where("coalesce(newest = generation, true)").drop("generation", "newest")
