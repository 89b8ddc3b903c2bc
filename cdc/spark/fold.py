"""The fold: the changes of one server, from its first record on, become the rows its tables now hold.

A row is known by its **identity**: in a keyed table the key's columns and values, in a keyless one the whole image. An
**image** is the row's columns by name, with their values as JSON text, NULLs left out, sorted: so a column added by
ALTER as NULL changes no image, and neither does a column that was moved. Every change takes an image away (the before
image), puts one (the after image), or both. Per identity the fold keeps:

    net      images put minus images taken away: the number of equal rows in a keyless table; in a keyed one 1 for a
             row that came, 0 for one that came and went or only changed, -1 for one that was there before the topic
             began and went
    image    the image put last; NULL when the last change took it away
    last     the sequence and binlog position of the last change

ALTER TABLE changes rows without logging them, and the fold does not know how. After one, until something logged touches
the row, the fold shows: columns that were dropped or renamed, under their old names; a new column as NULL, whatever its
DEFAULT; values as they were before a new type, character set or generated column; rows of partitions that were dropped,
truncated or exchanged, where they were; rows under their old key. Both servers' streams have the same statements
between the same rows, so that the same histories give the same folds; a statement of one side alone is told by
``cdc.spark.definitions``. Only without ALTER the law holds: the fold is what the tables hold, row by row.

Rows logged for a table that was dropped, emptied or renamed since are dropped, or moved, by its lifelines.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc.filters import CHECKPOINT_DATABASE
from cdc.spark.lifelines import Segment
from cdc.spark.marks import marked

__all__ = ["IDENTITY", "changes", "fold", "segments"]

IDENTITY = ["database", "table", "keyed", "identity"]

_PAIR = "named_struct('column', {0}, 'value', {1})"
_IMAGE = "array_sort(filter(zip_with(columns, cols, (c, v) -> " + _PAIR.format("c", "v") + "), p -> p.value != 'Null'))"
_KEY = "transform(key, k -> " + _PAIR.format("k", "get(cols, int(array_position(columns, k)) - 1)") + ")"
_BROKE = """
    keyed AND previous.era = era AND IF(put, previous.put, NOT (previous.put AND previous.image = image))
"""
_SEGMENTS = (
    "database STRING, table STRING, first BIGINT, end BIGINT, era INT, owner STRUCT<database: STRING, table: STRING>"
)


def segments(spark: SparkSession, lives: Iterable[Segment]) -> DataFrame:
    """Lifelines as a small DataFrame, to be joined with changes."""
    rows = [(each.database, each.table, each.first, each.end, each.era, each.owner) for each in lives]
    return spark.createDataFrame(rows, _SEGMENTS)


def changes(records: DataFrame, lives: DataFrame, marks: DataFrame | None = None) -> DataFrame:
    """One row for each image taken away or put by the valid ``records`` of one side, under its table's last name.

    ``marks`` says which changes are out of the ordinary, and why (``cdc.spark.marks``).
    """
    rows = records.where("valid AND rows IS NOT NULL").where(F.col("database") != CHECKPOINT_DATABASE)
    rows = rows.select(
        *("side", "database", "table", "sequence", "file", "position", "transaction", "ts_us", "columns", "key"),
        F.posexplode("rows"),
    ).withColumnsRenamed({"pos": "row", "col": "images"})
    # An UPDATE first takes its before image away, then puts its after image, which may have another key.
    steps = "array(named_struct('put', false, 'cols', images.before), named_struct('put', true, 'cols', images.after))"
    steps = f"filter({steps}, s -> s.cols IS NOT NULL)"
    rows = rows.withColumn("step", F.explode(F.expr(steps))).select("*", "step.put", "step.cols").drop("step", "images")
    return _owned(marked(rows, marks), lives).select(
        F.col("owner.database").alias("database"),
        F.col("owner.table").alias("table"),
        F.col("key").isNotNull().alias("keyed"),
        F.expr(f"coalesce({_KEY}, {_IMAGE})").alias("identity"),
        F.expr(_IMAGE).alias("image"),
        "put",
        "era",
        "mark",
        F.struct("sequence", "row", "put").alias("order"),
        F.struct("sequence", "file", "position").alias("place"),
    )


def _owned(rows: DataFrame, lives: DataFrame) -> DataFrame:
    """Each row with the table it belongs to in the end; rows of tables that are gone are left out."""
    within = (
        (rows["database"] == lives["database"])
        & (rows["table"] == lives["table"])
        & (rows["sequence"] >= lives["first"])
        & (rows["sequence"] < lives["end"])
    )
    return rows.join(F.broadcast(lives), within).where("owner IS NOT NULL")


def fold(changes: DataFrame) -> DataFrame:
    """One row an identity (the columns of ``IDENTITY``), with ``net``, ``image`` and ``last`` as told above.

    Further columns: ``marked``, the last of its changes that is out of the ordinary (``cdc.spark.marks``); ``breaks``,
    how often a keyed row's before image was not the image put last, or a row was put where one was; and ``broken``,
    the place of the last such break. Across an ALTER images differ rightly and are not held against it.
    """
    before = Window.partitionBy(*IDENTITY).orderBy("order")
    previous = F.lag(F.struct("put", "image", "era")).over(before)
    continued = changes.withColumn("previous", previous).withColumn(
        "broke",
        F.expr(_BROKE),
    )
    return continued.groupBy(*IDENTITY).agg(
        F.sum(F.when(F.col("put"), 1).otherwise(-1)).alias("net"),
        F.max_by(F.when(F.col("put"), F.col("image")), "order").alias("image"),
        F.max("place").alias("last"),
        F.max("mark").alias("marked"),
        F.expr("count_if(broke)").alias("breaks"),
        F.max(F.when(F.col("broke"), F.col("place"))).alias("broken"),
    )
