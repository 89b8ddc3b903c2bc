"""Digests: what a change did to which row, in numbers of 64 bits instead of texts.

Spark can sum up numbers where they are read, in compiled code; what it shuffles and sorts otherwise are the images. The
columns of ``digests``:

    ours        whether the leader made the change
    number      the table's, among those asked for
    keyed       whether the table has a key
    identity    of the row: the hash of its key's values, in a keyless table that of the image
    place       what is higher came later: of the record's sequence, the row in it, and what is taken before it is put
    taken, put  the image taken away and the image put; NULL for none

They are hashes of values as they were logged, without the columns' names. So they tell rows and images apart only where
all records of a table have one **shape**: the same columns in the same order, and the same key.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.input.local_frame import literal
from cdc.spark.input.records import LEADER
from cdc.spark.schema.lineage import Name, Segment

__all__ = ["HIGHEST_SEQUENCE", "IDENTITY_OF_CHANGE", "SHAPE", "UNFIT", "digests", "numbered"]

_KEY_COLUMNS = 4  # Spark does not compile what works for any number of them
_ROW_BITS = 23
HIGHEST_SEQUENCE = (1 << 62 - _ROW_BITS) - 1

# Of a record with rows: its shape, and whether it has a longer key or more rows than there is room for here.
SHAPE = "xxhash64(columns, key IS NULL, key)"
UNFIT = f"size(key) > {_KEY_COLUMNS} OR size(rows) > {1 << _ROW_BITS}"

_AT = [f"int(array_position(columns, get(key, {number}))) - 1" for number in range(_KEY_COLUMNS)]
_HASHED = "IF({image} IS NULL, NULL, xxhash64({image}))"
_KNOWN_BY = "IF({image} IS NULL, NULL, IF(keyed, xxhash64({values}), xxhash64({image})))"


def _known_by(image: str, at: Sequence[str]) -> str:
    return _KNOWN_BY.format(image=image, values=", ".join(f"get({image}, {place})" for place in at))


# The identity of one of ``compare.fold``'s changes.
IDENTITY_OF_CHANGE = _known_by("IF(takes, before, after)", _AT)

_PLACES = [f"at_{number}" for number in range(_KEY_COLUMNS)]
_NUMBERED = "side STRING, database STRING, table STRING, first BIGINT, end BIGINT, number INT"


def numbered(spark: SparkSession, lives: Mapping[str, Sequence[Segment]], names: Sequence[Name]) -> DataFrame:
    """The lifelines, per side, of the tables in ``names``, whose places in it are their numbers."""
    numbers = {name: number for number, name in enumerate(names)}
    rows = [
        {"side": side, "database": each.database, "table": each.table, "first": each.first, "end": each.end,
         "number": numbers[each.owner]}
        for side, segments in lives.items() for each in segments if each.owner in numbers
    ]  # fmt: skip
    return literal(spark, rows, _NUMBERED)


def digests(records: DataFrame, lives: DataFrame) -> DataFrame:
    """What the valid ``records`` of both sides did to rows of the tables that ``lives`` (see ``numbered``) tell of.

    As in ``compare.fold``, an UPDATE of the identity takes one row and puts another.
    """
    rows = records.where("valid AND rows IS NOT NULL").where(F.col("database") != CHECKPOINT_DATABASE)
    within = F.expr("sequence >= first AND sequence < end")
    rows = rows.join(F.broadcast(lives), ["side", "database", "table"]).where(within)
    # Where the key is in an image is the same for all of a record's rows.
    at = [F.expr(place).alias(name) for name, place in zip(_PLACES, _AT, strict=True)]
    rows = rows.select(
        F.expr(f"side = '{LEADER}'").alias("ours"),
        *("number", "sequence"),
        F.expr("key IS NOT NULL").alias("keyed"),
        *at,
        F.posexplode("rows").alias("row", "image"),
    )
    hashed = rows.select(
        *("ours", "number", "keyed"),
        F.expr(f"shiftleft(sequence, {_ROW_BITS + 1}) + 2L * row").alias("place"),
        F.expr(_known_by("image.before", _PLACES)).alias("old"),
        F.expr(_known_by("image.after", _PLACES)).alias("new"),
        F.expr(_HASHED.format(image="image.before")).alias("before"),
        F.expr(_HASHED.format(image="image.after")).alias("after"),
    )
    # 0 takes, 1 puts, 2 does both, or what there is of it. Outer, or Spark works it out once more to leave out none.
    steps = hashed.withColumn("step", F.explode_outer(F.expr("IF(old != new, array(0, 1), array(2))")))
    return steps.select(
        *("ours", "number", "keyed"),
        F.expr("IF(step = 1, new, coalesce(old, new))").alias("identity"),
        F.expr("place + IF(step = 1, 1L, 0L)").alias("place"),
        F.expr("IF(step = 1, NULL, before)").alias("taken"),
        F.expr("IF(step = 0, NULL, after)").alias("put"),
    )
