"""Computes digests of changes: 64-bit numbers instead of texts for the row that was changed and for its images.

Spark can aggregate numbers in the tasks that read them, in compiled code; it would have to shuffle and sort images. The
columns of ``digests`` are:

    by_leader   whether the leader made the change
    number      the number of the table, which is its index in the names passed to ``numbered``
    keyed       whether the table has a key
    identity    the identity of the row: the hash of its key's values; in a table without a key the hash of the image
    ordinal     the place of the change in the stream (``row_places``), higher for later changes
    removed     the hash of the image that the change removes, or NULL
    added       the hash of the image that the change adds, or NULL
    era         0 if no ALTER followed, else the negative number of ALTERs that followed

Values are hashed as they were logged, without the columns' names. So digests identify rows only if all records of the
table have the same key, and they identify images only if the records have one **shape**: the same columns in the same
order, and the same key. Images of different eras may have different shapes, and are not compared.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.ddl.lineage import Name, Segment, with_eras
from cdc.spark.input.records import LEADER
from cdc.spark.input.small_data import beside, local_frame
from cdc.spark.streams.row_places import MOST_ROWS, PLACE, steps

__all__ = ["IDENTITY_OF_CHANGE", "KEY", "SHAPE", "UNFIT", "digests", "numbered"]

_KEY_COLUMNS = 4  # a longer key has no digest, since Spark compiles only expressions for a fixed number of columns

# SQL for a record with rows: its shape, its key, and whether it has too many key columns or rows for digests.
SHAPE = "xxhash64(columns, key IS NULL, key)"
KEY = "IF(key IS NULL, NULL, xxhash64(key))"
UNFIT = f"size(key) > {_KEY_COLUMNS} OR size(rows) > {MOST_ROWS}"

_AT = [f"int(array_position(columns, get(key, {number}))) - 1" for number in range(_KEY_COLUMNS)]
_HASHED = "IF({image} IS NULL, NULL, xxhash64({image}))"
_KNOWN_BY = "IF({image} IS NULL, NULL, IF(keyed, xxhash64({values}), xxhash64({image})))"


def _known_by(image: str, at: Sequence[str]) -> str:
    return _KNOWN_BY.format(image=image, values=", ".join(f"get({image}, {position})" for position in at))


# SQL for the same identity as in ``digests``, but for a change in the form that ``compare.fold`` computes.
IDENTITY_OF_CHANGE = _known_by("IF(removes, before, after)", _AT)

_STEPS = steps("old != new", removed="0", added="1", both="2")
_POSITIONS = [f"at_{number}" for number in range(_KEY_COLUMNS)]
_NUMBERED = "side STRING, database STRING, table STRING, first BIGINT, end BIGINT, number INT, era INT"


def numbered(spark: SparkSession, lineage: Mapping[str, Sequence[Segment]], names: Sequence[Name]) -> DataFrame:
    """Builds a frame of both sides' ``lineage``, for the tables ``names``. Rows that were logged under the name
    (database, table) from sequence ``first`` up to ``end`` belong to the table ``number``, its index in ``names``.
    """
    numbers = {name: number for number, name in enumerate(names)}
    rows = [
        {"side": side, "database": each.database, "table": each.table, "first": each.first, "end": each.end,
         "number": numbers[each.owner], "era": era}
        for side, segments in lineage.items() for each, era in with_eras(segments) if each.owner in numbers
    ]  # fmt: skip
    return local_frame(spark, rows, _NUMBERED)


def digests(records: DataFrame, lineage: DataFrame) -> DataFrame:
    """Computes the digests of the changes that the valid ``records`` of both sides make to rows of the tables in
    ``lineage`` (see ``numbered``).

    As in ``compare.fold``, an UPDATE that changes the identity removes one row and adds another.
    """
    rows = records.where("valid AND rows IS NOT NULL").where(F.col("database") != CHECKPOINT_DATABASE)
    within = F.expr("sequence >= first AND sequence < end")
    rows = rows.join(beside(lineage), ["side", "database", "table"]).where(within)
    # The key columns have the same positions in all images of a record.
    at = [F.expr(position).alias(name) for name, position in zip(_POSITIONS, _AT, strict=True)]
    rows = rows.select(
        F.expr(f"side = '{LEADER}'").alias("by_leader"),
        *("number", "era", "sequence"),
        F.expr("key IS NOT NULL").alias("keyed"),
        *at,
        F.posexplode("rows").alias("row", "image"),
    )
    hashed = rows.select(
        *("by_leader", "number", "era", "keyed"),
        F.expr(PLACE).alias("ordinal"),
        F.expr(_known_by("image.before", _POSITIONS)).alias("old"),
        F.expr(_known_by("image.after", _POSITIONS)).alias("new"),
        F.expr(_HASHED.format(image="image.before")).alias("before"),
        F.expr(_HASHED.format(image="image.after")).alias("after"),
    )
    # Step 0 removes an image, step 1 adds an image, and step 2 does both if the change has both images. The explode is
    # outer: for an inner explode Spark would compute the array a second time, to filter out empty arrays.
    stepped = hashed.withColumn("step", F.explode_outer(F.expr(_STEPS)))
    return stepped.select(
        *("by_leader", "number", "era", "keyed"),
        F.expr("IF(step = 1, new, coalesce(old, new))").alias("identity"),
        F.expr("ordinal + IF(step = 1, 1L, 0L)").alias("ordinal"),
        F.expr("IF(step = 1, NULL, before)").alias("removed"),
        F.expr("IF(step = 0, NULL, after)").alias("added"),
    )
