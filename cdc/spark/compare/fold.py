"""Folds all changes of one server, from its first record on, to the rows that its tables contain now, without the
changes that only the follower's foreign keys made.

A row is identified by its **identity**: in a keyed table the key's columns and values, in a keyless table the whole
image. An **image** is the row's columns by name, with their values as JSON text, sorted, without NULLs: so a column
added by ALTER as NULL changes no image, and neither does a column that was moved. Every change removes an image (the
before image), adds an image (the after image), or both. For each identity the fold keeps:

    net     images added minus images removed. In a keyless table, this is the number of equal rows. In a keyed table it
            is 1 for an inserted row, 0 for a row that was inserted and deleted, or only updated, and -1 for a deleted
            row that was there before the topic began
    image   the image added last; NULL if the last change removed it
    last    the sequence and the binlog position of the last change
    found   the image that the row's first change removed, if the row may be older than the stream. After an ALTER, the
            image that the row's first change since the ALTER removed
    stood   the image that the row's last change before this ALTER added; NULL if there is no such change

ALTER TABLE changes rows without logging them, and the fold does not know how it changes them. After an ALTER, until a
logged change of the row, the fold contains the row as it was before: columns that were dropped or renamed have their
old names; a new column is NULL, whatever its DEFAULT; values are as before a new type, character set or generated
column; rows of partitions that were dropped, truncated or exchanged still exist; rows have their old key. Both servers'
streams have the same statements between the same rows, so equal histories result in equal folds; ``ddl.definitions``
finds statements that only one side has. Without ALTER, the fold equals the tables, row by row.

Rows logged for a table that was later dropped, emptied or renamed are left out, or belong to the renamed table,
according to the table's lineage (``ddl.lineage``). Rows from before a copy of the table began are left out, too: the
chunks of the copy **state** (list) all rows that were not changed since. A row in a chunk adds an image, which the
table may have already. A repair (``cdc-repair``) states the rows of some keys, and the keys that have no row. Records
from before a repair still count; records from before a copy do not.

The other folds use only the last change of each row (``streams.row_places``). This fold sorts the changes of a row,
since it compares each change with the previous change.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.ddl.lineage import Beginning, Segment, with_eras
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import beside, in_one_part, local_frame
from cdc.spark.lag import matched
from cdc.spark.streams.consumer_notes import marked
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.row_digests import IDENTITY_OF_CHANGE
from cdc.spark.streams.row_places import steps

__all__ = ["IDENTITY", "carried", "changes", "fold", "segments", "without_cascades"]

# Rows are sorted by the hash first: comparing images costs most, and nearly all comparisons are decided by the hash.
IDENTITY = ["hash", "database", "table", "keyed", "identity"]
_HASH = "xxhash64(database, table, keyed, identity)"

_PAIR = "named_struct('column', {0}, 'value', {1})"
_IMAGE = f"array_sort(filter(zip_with({{0}}, {{1}}, (c, v) -> {_PAIR.format('c', 'v')}), p -> p.value != 'Null'))"
_VALUE = "get({0}, int(array_position(columns, {1})) - 1)"
# Keys of one column are the most frequent. They have a separate expression, because Spark does not compile the general
# expression for keys of any number of columns.
_KEY = f"""
    IF(size(key) = 1, array({_PAIR.format("key[0]", _VALUE.format("{0}", "key[0]"))}),
        transform(key, k -> {_PAIR.format("k", _VALUE.format("{0}", "k"))}))
"""
_KNOWN_BY = "IF({0} IS NULL, NULL, " + _KEY + ")"
_KNOWN = {"before": "old", "after": "new"}
_LOGGED = ("side", "sequence", "file", "position", "transaction", "ts_us", "columns", "key")
_OF_CHANGE = ("owner", "era", "older", *_LOGGED, "keyed", "stated", "row")
_DID = (("removes", "before IS NOT NULL AND step != 'add'"), ("adds", "after IS NOT NULL AND step != 'remove'"))
_STEPS = steps(
    "before IS NOT NULL AND after IS NOT NULL AND coalesce(old != new, true)",
    removed="'remove'", added="'add'", both="'both'",
)  # fmt: skip
# Images are compared as they were logged; they are sorted by name only if their columns differ.
_CONTINUES = f"""
    previous_adds AND IF(previous_columns = columns, previous_after = before,
        {_IMAGE.format("previous_columns", "previous_after")} = {_IMAGE.format("columns", "before")})
"""
# A chunk contains the present image of a row. So it must be the image that the changes before the chunk added last.
_SAME = _CONTINUES.replace("before", "after")
_BROKE = f"""
    coalesce(keyed AND previous_era = era AND
        CASE WHEN stated AND removes THEN previous_adds WHEN stated THEN NOT ({_SAME})
            WHEN removes THEN NOT ({_CONTINUES}) ELSE previous_adds END, false)
"""
_POSITION = "STRUCT<sequence: BIGINT, file: STRING, position: BIGINT>"
_PAIRS = "ARRAY<STRUCT<column: STRING, value: STRING>>"
_BEFORE = f"STRUCT<net: BIGINT, breaks: BIGINT, broken: {_POSITION}, found: {_PAIRS}, stood: {_PAIRS}>"
# SQL that is true if a change is the row's first change in the stream, or its first change since an ALTER, and removes
# an image that no logged change has added.
_FINDS = """
    coalesce(keyed AND CASE WHEN so_far IS NOT NULL THEN so_far.found IS NOT NULL
        WHEN stated OR NOT removes THEN false WHEN previous_era IS NULL THEN older ELSE previous_era < era END, false)
"""
_FOUND = f"""
    IF(finds, struct(era,
        IF(so_far IS NULL, {_IMAGE.format("columns", "before")}, so_far.found) AS found,
        CASE WHEN so_far IS NOT NULL THEN so_far.stood
            WHEN previous_adds THEN {_IMAGE.format("previous_columns", "previous_after")} END AS stood), NULL)
"""
_SEGMENTS = """
    database STRING, table STRING, first BIGINT, end BIGINT, era INT, owner STRUCT<database: STRING, table: STRING>,
    older BOOLEAN
"""


def segments(spark: SparkSession, lineage: Sequence[Segment]) -> DataFrame:
    """Returns the segments of those tables that still exist; the result is a small DataFrame, to be joined with
    changes.
    """
    rows = [
        asdict(each)
        | {"owner": dict(zip(("database", "table"), each.owner, strict=True))}
        | {"era": era, "older": each.beginning is Beginning.OLDER}
        for each, era in with_eras(lineage)
        if each.owner
    ]
    return local_frame(spark, rows, _SEGMENTS)


def changes(
    records: DataFrame, lineage: DataFrame, marks: DataFrame | None = None, *, among: DataFrame | None = None
) -> DataFrame:
    """Computes the changes that the valid ``records`` of one side made to rows. Each change has the last name of its
    table, and ``removes`` or ``adds`` an image, or does both.

    An UPDATE removes and adds an image of one row, or removes one row and adds another row if their keys differ. The
    images are ``before`` and ``after``, as they were logged for ``columns``. ``marks`` are notes on changes that are
    not ordinary (``streams.consumer_notes``). If ``among`` is given, only changes of the identities in ``among``
    (database, table, and ``identity`` as in ``streams.row_digests``) are returned.
    """
    # The plan has few steps, since Spark analyzes the whole plan again at each step.
    rows = records.where(f"valid AND rows IS NOT NULL AND database != '{CHECKPOINT_DATABASE}'")
    rows = _owned(rows, lineage).select(
        *("owner", "era", "older", *_LOGGED),
        *(F.expr("key IS NOT NULL").alias("keyed"), F.expr("chunk IS NOT NULL").alias("stated")),
        F.posexplode("rows").alias("row", "images"),
    )
    known = [F.expr(_KNOWN_BY.format(f"images.{image}")).alias(name) for image, name in _KNOWN.items()]
    rows = rows.select(*_OF_CHANGE, "images.*", *known)
    # The explode is outer: for an inner explode, Spark would compute the steps twice, to filter out rows without steps.
    rows = rows.select(*_OF_CHANGE, *_KNOWN, *_KNOWN.values(), F.explode_outer(F.expr(_STEPS)).alias("step"))
    rows = rows.select(*_OF_CHANGE, *_KNOWN, *_KNOWN.values(), *(F.expr(f"{did} AS {name}") for name, did in _DID))
    if among is not None:
        wanted = among.select(F.struct("database", "table").alias("owner"), F.col("identity").alias("digest"))
        rows = rows.withColumn("digest", F.expr(IDENTITY_OF_CHANGE))
        rows = rows.join(F.broadcast(wanted), ["owner", "digest"], "left_semi")
    image = _IMAGE.format("columns", "IF(removes, before, after)")
    identity = F.expr(f"coalesce(IF(removes, old, new), {image})").alias("identity")
    so_far = F.expr(f"CAST(NULL AS {_BEFORE})").alias("so_far")
    return _foldable(marked(rows, marks), identity, so_far)


def carried(folded: DataFrame, lineage: DataFrame) -> DataFrame:
    """Converts the rows of an earlier fold to changes (see ``changes``), one for each row, so that they can be folded
    together with the changes of new records.

    ``folded`` has the columns of ``fold``, with the tables' names at the time of the earlier fold. ``lineage`` shows
    which names the tables have after the new statements.
    """
    rows = folded.withColumns({
        "held": F.col("era"),
        "sequence": F.col("last.sequence"),
        "file": F.col("last.file"),
        "position": F.col("last.position"),
        "row": F.lit(0),
        "removes": F.lit(False),
        "adds": F.col("image").isNotNull(),
        "columns": F.col("image.column"),
        "before": F.lit(None).cast("ARRAY<STRING>"),
        "after": F.col("image.value"),
        "mark": F.col("marked"),
        "stated": F.lit(False),
        "so_far": F.struct("net", "breaks", "broken", "found", "stood"),
    }).drop("era", "found", "stood")  # fmt: skip
    owned = _owned(rows, lineage).withColumn("era", F.expr("era + held"))
    return _foldable(owned, F.col("identity"), F.col("so_far"))


def _foldable(owned: DataFrame, identity: Column, so_far: Column) -> DataFrame:
    """Selects the columns that ``fold`` needs."""
    changes = owned.select(
        F.col("owner.database").alias("database"),
        F.col("owner.table").alias("table"),
        "keyed",
        identity,
        *("removes", "adds", "columns", "before", "after", "era", "older", "mark", "stated"),
        *("sequence", "row", "file", "position"),
        so_far,
    )
    return changes.withColumn("hash", F.expr(_HASH))


def _owned(rows: DataFrame, lineage: DataFrame) -> DataFrame:
    """Adds to each row the table to which the row belongs now; rows of tables that were dropped are left out."""
    within = (
        (rows["database"] == lineage["database"])
        & (rows["table"] == lineage["table"])
        & (rows["sequence"] >= lineage["first"])
        & (rows["sequence"] < lineage["end"])
    )
    return rows.join(beside(lineage), within)


def fold(changes: DataFrame) -> DataFrame:
    """Folds ``changes`` to one row per identity (the columns of ``IDENTITY``), with the columns that the module's
    docstring describes.

    There are four further columns. ``era`` is the era of the row's last change: the time between two ALTERs of the
    table. ``marked`` is the last mark of the row's changes (``streams.consumer_notes``). ``breaks`` counts how often a
    keyed row's before image was not the image added last, or an existing row was added again. ``broken`` is the
    position of the last break. Images before and after an ALTER are not compared.
    """
    along = Window.partitionBy(*IDENTITY).orderBy("sequence", "row", "adds")
    upto = along.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    net = F.expr("coalesce(so_far.net, IF(adds, 1L, 0L) - IF(removes, 1L, 0L))")
    # All columns below are running values over the changes of an identity. So one sort serves all of them, and the last
    # change has the result.
    followed = changes.withColumns({
        **{f"previous_{name}": F.lag(name).over(along) for name in ("adds", "era", "columns", "after")},
        "followed": F.lead(F.lit(True), 1, False).over(along),
        "net": F.sum(net).over(upto),
        "marked": F.max("mark").over(upto),
    }).withColumns({"broke": F.expr(_BROKE), "finds": F.expr(_FINDS)})  # fmt: skip
    # Only two kinds of changes are needed: the last change of each identity, and the changes for which ``broke`` or
    # ``finds`` is true.
    position = "struct(sequence, file, position)"
    counted = followed.where("broke OR finds OR so_far.breaks > 0 OR NOT followed").withColumns({
        "breaks": F.sum(F.expr("coalesce(so_far.breaks, 0) + IF(broke, 1, 0)")).over(upto),
        "broken": F.max(F.expr(f"IF(broke, {position}, so_far.broken)")).over(upto),
        "since": F.last(F.expr(_FOUND), ignorenulls=True).over(upto),
    }).where("NOT followed")  # fmt: skip
    image = F.expr(f"IF(adds, {_IMAGE.format('columns', 'after')}, NULL)").alias("image")
    last = F.expr(position).alias("last")
    since = [F.expr(f"IF(since.era = era, since.{name}, NULL)").alias(name) for name in ("found", "stood")]
    return counted.select(*IDENTITY, "net", image, last, "era", "marked", "breaks", "broken", *since)


# Removes the records of changes that only the follower's foreign keys made (cascades).
#
# Since MySQL 9.6 a server logs the changes made by its foreign keys, and sets a flag in each rows event to show that it
# does. With an older leader the consumer leaves cascades to the follower; if the follower is newer, its log has changes
# that the leader's log lacks. The fold leaves these changes out, so that neither side has them.
#
# In the follower's log, the rows of a cascade are logged with foreign key checks off. The consumer also turns the
# checks off, for three kinds of records: records that had the checks off on the leader, records of a leader that logs
# cascades, and records of a table that is being copied, since its rows may refer to rows that are copied later. Rows
# with the checks off are a cascade if no record of these kinds explains them: their transaction applied no such record
# of the same table. A record explains only changes that the consumer can make from it: a record that adds rows explains
# no change that deletes or updates rows. So a cascade is recognized even if it deletes a row that the leader added with
# the checks off in the same transaction. Each transaction is compared with the records that it applied, so a later
# upgrade of the leader changes nothing for earlier transactions.

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
