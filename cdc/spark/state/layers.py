"""Decides which stored rows of a state an audit has to load, and reads the newest version of each.

A state stores both sides' rows in **layers**: the first has all rows, each later one the rows that were touched since.
Rows are looked up by the hash of their identity, by which the fold sorts them. The newest layer with a hash has all
rows of that hash, so two rows of the same hash are never in different layers.

**Touched** rows are those whose hash occurs in a record read since, and those that drifted or have a before image that
does not continue the row, since each audit reports them one by one. An audit loads, folds, compares and saves the
touched rows only. It folds all rows again where a statement altered, moved or dropped a table with stored rows, and
where many rows were touched.
"""

from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.spark.ddl.lineage import END, Name, Segment
from cdc.spark.input.one_part import in_one_part
from cdc.spark.state.coverage import Held

__all__ = ["few_touched", "newest_rows", "tables_unchanged"]

_MOST_LOOKED_UP = 1_000_000  # hashes of touched rows and of later layers: they are broadcast to all executors


def few_touched(before: Held, rows: int) -> bool:
    """Whether looking up the touched rows costs less than folding all; ``rows`` is their number in the new records."""
    return before.above + before.opened + rows <= min(_MOST_LOOKED_UP, before.rows)


def tables_unchanged(held: Collection[Name], lives: Iterable[Segment]) -> bool:
    """Whether no statement altered, moved or dropped one of the tables ``held``, by all segments ``lives`` since.

    Tables without stored rows may have changed.
    """
    names = (((each.database, each.table), each) for each in lives)
    return all((each.first, each.end, each.owner) == (0, END, name) for name, each in names if name in held)


def newest_rows(layers: DataFrame, hashes: DataFrame | None = None) -> DataFrame:
    """The newest version of each row in ``layers``, or of the rows with one of the ``hashes`` if these are given.

    The column ``generation`` orders the layers; it is dropped.
    """
    layers = in_one_part(layers)
    if hashes is not None:
        found = layers.join(F.broadcast(hashes), "hash", "left_semi")
        found = found.withColumn("newest", F.max("generation").over(Window.partitionBy("hash")))
    else:
        first = layers.agg(F.min("generation").alias("first"))
        later = layers.select("hash", "generation").join(F.broadcast(first), F.col("generation") > F.col("first"))
        later = later.groupBy("hash").agg(F.max("generation").alias("newest"))
        found = layers.join(F.broadcast(later), "hash", "left")
    return found.where("coalesce(newest = generation, true)").drop("generation", "newest")
