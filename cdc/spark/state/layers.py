"""Decides which stored rows of a state an audit has to load, and reads the newest version of each.

A state stores both sides' rows in **layers**: the first has all rows, each later one the rows that were touched since.
Rows are looked up by the hash of their identity, by which the fold sorts them. The newest layer with a hash has all
rows of that hash, so two rows of the same hash are never in different layers. The files of a layer are sorted by the
hash, each has a range of hashes, and their pages are small: few other rows are read with those that are looked up.

**Touched** rows are those whose hash occurs in a record read since, and those that drifted or have a before image that
does not continue the row, since each audit reports them one by one. An audit loads, folds, compares and saves the
touched rows only. It folds all rows again where a statement altered, moved or dropped a table with stored rows, and
where many rows were touched.
"""

from collections.abc import Collection, Iterable, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.spark.ddl.lineage import END, Name, Segment
from cdc.spark.input.small_data import in_one_part, is_tiny
from cdc.spark.state.coverage import Held

__all__ = [
    "PAGES",
    "few_touched",
    "lines_read",
    "newest_rows",
    "rows_of",
    "searched",
    "sorted_layer",
    "tables_unchanged",
]

_MOST_LOOKED_UP = 1_000_000  # hashes of touched rows and of later layers, which are broadcast to all executors
_MOST_SEARCHED = 10_000  # hashes for which pages are searched; with more hashes, most pages contain one
PAGES = {"parquet.page.row.count.limit": 128}  # options of Parquet for the pages of a layer
# For a filter with single values Parquet searches its pages for each of them, but for a set only by its least and
# largest value. Spark makes a set of lists that are longer than this limit, by default ten values.
_LISTED, _LIST_LIMIT = 500, "spark.sql.parquet.pushdown.inFilterThreshold"


def few_touched(before: Held, rows: int) -> bool:
    """Whether looking up the touched rows costs less than folding all; ``rows`` is their number in the new records."""
    return before.above + before.opened + rows <= min(_MOST_LOOKED_UP, before.rows)


def searched(before: Held, rows: int) -> bool:
    """Whether pages are searched for the touched rows; ``rows`` is their number in the new records."""
    # A change of a row's key touches two.
    return before.opened + 2 * rows <= _MOST_SEARCHED


def lines_read(before: Held, rows: int) -> int:
    """The number of records, transactions and rows that an audit reads from a state, without the pages that it
    searches.

    ``rows`` is the number of touched rows in the new records. No statement moved or altered a table in ``before``.
    """
    transactions = before.covered if before.mark.foreign or before.opened or before.ids is None else 0
    return before.kept + transactions + (0 if searched(before, rows) else before.rows + before.above)


def tables_unchanged(held: Collection[Name], lives: Iterable[Segment]) -> bool:
    """Whether no statement altered, moved or dropped one of the tables ``held``; ``lives`` are all segments since then.

    Tables without stored rows may have changed.
    """
    names = (((each.database, each.table), each) for each in lives)
    return all((each.first, each.end, each.owner) == (0, END, name) for name, each in names if name in held)


def newest_rows(layers: DataFrame) -> DataFrame:
    """The newest version of each row in ``layers``.

    The column ``generation`` orders the layers; it is dropped.
    """
    layers = in_one_part(layers)
    first = layers.agg(F.min("generation").alias("first"))
    later = layers.select("hash", "generation").join(F.broadcast(first), F.col("generation") > F.col("first"))
    later = later.groupBy("hash").agg(F.max("generation").alias("newest"))
    return _newest(layers.join(F.broadcast(later), "hash", "left"))


def rows_of(layers: DataFrame, hashes: DataFrame, *, few: bool) -> DataFrame:
    """The newest version of each row in ``layers`` with one of the ``hashes``, which are distinct.

    ``few``: they are at most ``_MOST_SEARCHED``, and only pages of the layers' files that may have one are read.
    """
    layers = in_one_part(layers)
    if few:
        layers.sparkSession.conf.set(_LIST_LIMIT, str(_LISTED))
        found = layers.where(_is_one_of("hash", [row["hash"] for row in hashes.collect()]))
    else:
        found = layers.join(F.broadcast(hashes), "hash", "left_semi")
    return _newest(found.withColumn("newest", F.max("generation").over(Window.partitionBy("hash"))))


def sorted_layer(rows: DataFrame) -> DataFrame:
    """The ``rows`` of a layer, so that each file has a range of hashes, and is sorted by them."""
    one = is_tiny(rows) or rows.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1"
    return (rows.coalesce(1) if one else rows.repartitionByRange("hash")).sortWithinPartitions("hash")


def _is_one_of(column: str, values: Sequence[int]) -> str:
    """SQL for whether a column has one of the ``values``, as lists of which Parquet searches each value."""
    lists = (values[at : at + _LISTED] for at in range(0, len(values), _LISTED))
    return " OR ".join(f"{column} IN ({', '.join(map(str, each))})" for each in lists) or "false"


def _newest(found: DataFrame) -> DataFrame:
    return found.where("coalesce(newest = generation, true)").drop("generation", "newest")
