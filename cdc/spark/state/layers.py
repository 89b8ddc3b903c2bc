"""Decides which stored rows of a state an audit has to load, and reads the newest version of each row.

A state stores both sides' rows in **layers**: the first layer contains all rows, and each later layer contains the rows
that were touched since the previous layer. Rows are looked up by the hash of their identity, the sort key of the fold.
The newest layer with a hash contains all rows with this hash, so the newest versions of two rows with the same hash are
never in different layers. The files of a layer are sorted by the hash, each contains a range of hashes, and their pages
are small. So a look-up reads few other rows.

A row is **touched** if its hash occurs in a record that was read since the state was saved, or if each audit reports it
one by one: because it drifted, or because it has a before image that does not continue the row. An audit loads, folds,
compares and saves only the touched rows. It folds all rows again if a statement altered, moved or dropped a table with
stored rows, or if many rows were touched.
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
# For a filter with single values Parquet searches its pages for each value; for a filter with a set it compares only
# the least and the largest value. Spark turns a list of values into a set if it is longer than this limit, which is ten
# by default.
_LISTED, _LIST_LIMIT = 500, "spark.sql.parquet.pushdown.inFilterThreshold"


def few_touched(before: Held, rows: int) -> bool:
    """Whether looking up the touched rows costs less than folding all rows.

    ``rows`` is the number of rows in the new records.
    """
    return before.above + before.opened + rows <= min(_MOST_LOOKED_UP, before.rows)


def searched(before: Held, rows: int) -> bool:
    """Whether the audit searches pages for the touched rows. ``rows`` is the number of rows in the new records."""
    # A change of a row's key touches two rows.
    return before.opened + 2 * rows <= _MOST_SEARCHED


def lines_read(before: Held, rows: int) -> int:
    """Computes how many records, transactions and rows an audit reads from a state, without the pages that it searches.

    ``rows`` is the number of rows in the new records. Assumes that no statement moved or altered a table in ``before``.
    """
    transactions = before.covered if before.mark.foreign or before.opened or before.ids is None else 0
    return before.kept + transactions + (0 if searched(before, rows) else before.rows + before.above)


def tables_unchanged(held: Collection[Name], lives: Iterable[Segment]) -> bool:
    """Whether no statement altered, moved or dropped any of the tables ``held``, whose rows the state stores.

    ``lives`` are the lineage segments of all tables since the state was saved (``ddl.lineage``).
    """
    names = (((each.database, each.table), each) for each in lives)
    return all((each.first, each.end, each.owner) == (0, END, name) for name, each in names if name in held)


def newest_rows(layers: DataFrame) -> DataFrame:
    """Selects the newest version of each row in ``layers``, without the column ``generation``, which orders
    the layers.
    """
    layers = in_one_part(layers)
    first = layers.agg(F.min("generation").alias("first"))
    later = layers.select("hash", "generation").join(F.broadcast(first), F.col("generation") > F.col("first"))
    later = later.groupBy("hash").agg(F.max("generation").alias("newest"))
    return _newest(layers.join(F.broadcast(later), "hash", "left"))


def rows_of(layers: DataFrame, hashes: DataFrame, *, few: bool) -> DataFrame:
    """Selects the newest version of each row in ``layers`` that has one of the ``hashes``, which are distinct.

    ``few`` is true if there are at most about ``_MOST_SEARCHED`` hashes: then only those pages of the layers' files
    that may contain one of the hashes are read.
    """
    layers = in_one_part(layers)
    if few:
        layers.sparkSession.conf.set(_LIST_LIMIT, str(_LISTED))
        found = layers.where(_is_one_of("hash", [row["hash"] for row in hashes.collect()]))
    else:
        found = layers.join(F.broadcast(hashes), "hash", "left_semi")
    return _newest(found.withColumn("newest", F.max("generation").over(Window.partitionBy("hash"))))


def sorted_layer(rows: DataFrame) -> DataFrame:
    """Sorts the ``rows`` of a layer, so that each file contains a range of hashes in ascending order."""
    one = is_tiny(rows) or rows.sparkSession.conf.get("spark.sql.shuffle.partitions") == "1"
    return (rows.coalesce(1) if one else rows.repartitionByRange("hash")).sortWithinPartitions("hash")


def _is_one_of(column: str, values: Sequence[int]) -> str:
    """Writes SQL that is true if ``column`` is one of the ``values``. The lists in the SQL are short, so that Parquet
    searches for each value.
    """
    lists = (values[at : at + _LISTED] for at in range(0, len(values), _LISTED))
    return " OR ".join(f"{column} IN ({', '.join(map(str, each))})" for each in lists) or "false"


def _newest(found: DataFrame) -> DataFrame:
    return found.where("coalesce(newest = generation, true)").drop("generation", "newest")
