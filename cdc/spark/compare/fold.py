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
``schema.definitions``. Only without ALTER the law holds: the fold is what the tables hold, row by row.

Rows logged for a table that was dropped, emptied or renamed since are dropped, or moved, by its lifelines.
"""

from collections.abc import Sequence
from dataclasses import asdict

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.input.local_frame import literal
from cdc.spark.schema.lineage import END, Segment
from cdc.spark.streams.consumer_notes import marked
from cdc.spark.streams.row_digests import IDENTITY_OF_CHANGE

__all__ = ["IDENTITY", "carried", "changes", "fold", "segments", "with_era_told_from_the_end"]

# The hash is there to be sorted by: comparing images is what costs most, and it settles nearly all comparisons.
IDENTITY = ["hash", "database", "table", "keyed", "identity"]
_HASH = "xxhash64(database, table, keyed, identity)"

_PAIR = "named_struct('column', {0}, 'value', {1})"
_IMAGE = f"array_sort(filter(zip_with({{0}}, {{1}}, (c, v) -> {_PAIR.format('c', 'v')}), p -> p.value != 'Null'))"
_VALUE = "get({0}, int(array_position(columns, {1})) - 1)"
# Most keys have one column; Spark does not compile what works for any number of them.
_KEY = f"""
    IF(size(key) = 1, array({_PAIR.format("key[0]", _VALUE.format("{0}", "key[0]"))}),
        transform(key, k -> {_PAIR.format("k", _VALUE.format("{0}", "k"))}))
"""
_KNOWN_BY = "IF({0} IS NULL, NULL, " + _KEY + ")"
_STEPS = """
    IF(before IS NOT NULL AND after IS NOT NULL AND coalesce(old != new, true), array('take', 'put'), array('both'))
"""
# Images are compared as they were logged: only where their columns are not the same ones does it take more.
_CONTINUES = f"""
    previous_puts AND IF(previous_columns = columns, previous_after = before,
        {_IMAGE.format("previous_columns", "previous_after")} = {_IMAGE.format("columns", "before")})
"""
_BROKE = f"coalesce(keyed AND previous_era = era AND IF(takes, NOT ({_CONTINUES}), previous_puts), false)"
_PLACE = "STRUCT<sequence: BIGINT, file: STRING, position: BIGINT>"
_BEFORE = f"STRUCT<net: BIGINT, breaks: BIGINT, broken: {_PLACE}>"
_SEGMENTS = """
    database STRING, table STRING, first BIGINT, end BIGINT, era INT, owner STRUCT<database: STRING, table: STRING>
"""


def segments(spark: SparkSession, lives: Sequence[Segment]) -> DataFrame:
    """Lifelines as a small DataFrame, to be joined with changes."""
    owners = [
        None if each.owner is None else dict(zip(("database", "table"), each.owner, strict=True)) for each in lives
    ]
    rows = [asdict(each) | {"owner": owner} for each, owner in zip(lives, owners, strict=True)]
    return literal(spark, rows, _SEGMENTS)


def changes(
    records: DataFrame, lives: DataFrame, marks: DataFrame | None = None, *, among: DataFrame | None = None
) -> DataFrame:
    """What the valid ``records`` of one side did to rows, under a table's last name: each ``takes`` or ``puts`` one.

    An UPDATE does both to one row, or takes one and puts another if they have different keys. The images are
    ``before`` and ``after``, as they were logged for ``columns``. ``marks`` says which changes are out of the ordinary,
    and why (``streams.consumer_notes``). ``among`` has the only identities that are asked for (database, table, and
    their ``identity`` as ``streams.row_digests`` has it).
    """
    rows = records.where("valid AND rows IS NOT NULL").where(F.col("database") != CHECKPOINT_DATABASE)
    rows = _owned(rows, lives).select(
        *("owner", "era", "side", "sequence", "file", "position", "transaction", "ts_us", "columns", "key"),
        F.posexplode("rows").alias("row", "images"),
    ).select("*", "images.*").drop("images")  # fmt: skip
    rows = rows.withColumns({"old": F.expr(_KNOWN_BY.format("before")), "new": F.expr(_KNOWN_BY.format("after"))})
    # Outer, or Spark works out the steps twice: first to leave out rows without any, which there are not.
    rows = rows.withColumn("steps", F.expr(_STEPS)).withColumn("step", F.explode_outer("steps")).drop("steps")
    takes, puts = "before IS NOT NULL AND step != 'put'", "after IS NOT NULL AND step != 'take'"
    rows = rows.withColumns({"keyed": F.col("key").isNotNull(), "takes": F.expr(takes), "puts": F.expr(puts)})
    rows = rows.withColumns({"before": F.expr("IF(takes, before, NULL)"), "after": F.expr("IF(puts, after, NULL)")})
    if among is not None:
        asked = among.select(F.struct("database", "table").alias("owner"), F.col("identity").alias("digest"))
        told = rows.withColumn("digest", F.expr(IDENTITY_OF_CHANGE))
        rows = told.join(F.broadcast(asked), ["owner", "digest"], "left_semi")
    image = _IMAGE.format("columns", "coalesce(before, after)")
    identity = F.expr(f"coalesce(IF(takes, old, new), {image})").alias("identity")
    so_far = F.expr(f"CAST(NULL AS {_BEFORE})").alias("so_far")
    return _told(marked(rows, marks), identity, so_far)


def carried(folded: DataFrame, lives: DataFrame) -> DataFrame:
    """An earlier fold's rows in the form of ``changes``, each before all that happened since to its table.

    ``folded`` are the columns of ``fold``, under the names that tables had then; their ``era`` is 0 where no ALTER came
    after the row's last change, else lower. ``lives`` are of the statements since.
    """
    rows = folded.withColumns({
        "held": F.col("era"),
        "sequence": F.col("last.sequence"),
        "file": F.col("last.file"),
        "position": F.col("last.position"),
        "row": F.lit(0),
        "takes": F.lit(False),
        "puts": F.col("image").isNotNull(),
        "columns": F.col("image.column"),
        "before": F.lit(None).cast("ARRAY<STRING>"),
        "after": F.col("image.value"),
        "mark": F.col("marked"),
        "so_far": F.struct("net", "breaks", "broken"),
    }).drop("era")  # fmt: skip
    owned = _owned(rows, lives).withColumn("era", F.col("held"))
    return _told(owned, F.col("identity"), F.col("so_far"))


def _told(owned: DataFrame, identity: Column, so_far: Column) -> DataFrame:
    """The columns that a fold goes by."""
    told = owned.select(
        F.col("owner.database").alias("database"),
        F.col("owner.table").alias("table"),
        "keyed",
        identity,
        *("takes", "puts", "columns", "before", "after", "era", "mark", "sequence", "row", "file", "position"),
        so_far,
    )
    return told.withColumn("hash", F.expr(_HASH))


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

    Further columns: ``era``, that of its last change; ``marked``, the last of its changes that is out of the ordinary
    (``streams.consumer_notes``); ``breaks``, how often a keyed row's before image was not the image put last, or a row
    was put where one was; and ``broken``, the place of the last such break. Across an ALTER images differ rightly and
    are not held against it.
    """
    along = Window.partitionBy(*IDENTITY).orderBy("sequence", "row", "puts")
    upto = along.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    net = F.expr("coalesce(so_far.net, IF(puts, 1L, 0L) - IF(takes, 1L, 0L))")
    # One sort does for all of it: what is counted runs along, and an identity's last change has the sums.
    followed = changes.withColumns({
        **{f"previous_{name}": F.lag(name).over(along) for name in ("puts", "era", "columns", "after")},
        "followed": F.lead(F.lit(True), 1, False).over(along),
        "net": F.sum(net).over(upto),
        "marked": F.max("mark").over(upto),
    }).withColumn("broke", F.expr(_BROKE))  # fmt: skip
    # Of the changes that went well the last one tells all.
    place = "struct(sequence, file, position)"
    counted = followed.where("broke OR so_far.breaks > 0 OR NOT followed").withColumns({
        "breaks": F.sum(F.expr("coalesce(so_far.breaks, 0) + IF(broke, 1, 0)")).over(upto),
        "broken": F.max(F.expr(f"IF(broke, {place}, so_far.broken)")).over(upto),
    }).where("NOT followed")  # fmt: skip
    image = F.expr(f"IF(puts, {_IMAGE.format('columns', 'after')}, NULL)").alias("image")
    return counted.select(*IDENTITY, "net", image, F.expr(place).alias("last"), "era", "marked", "breaks", "broken")


def with_era_told_from_the_end(folded: DataFrame, lives: DataFrame) -> DataFrame:
    """A fold as ``carried`` wants it: ``era`` is 0 where no ALTER came after the row's last change, else negative."""
    now = lives.where((F.col("end") == END) & F.col("owner").isNotNull())
    now = now.select("owner.database", "owner.table", F.col("era").alias("now"))
    told = folded.join(F.broadcast(now), ["database", "table"])
    return told.select(*[F.expr("era - now").alias("era") if name == "era" else name for name in folded.columns])
