"""Changes that are out of the ordinary: foreign writes, and what the consumer noted of the leader's records.

A **mark** of a change is the last thing that the fold keeps of such changes to a row:

    foreign    on the follower: the change did not come through the consumer
    conflict   on the follower: the consumer took the row away to let the leader's win; on the leader: the follower's
               row was not what the leader's record met (a row of ``cdc.conflicts``)
    skipped    on the leader: an operator let the follower do without the record (a row of ``cdc.ledger``)

Its fields are the change's own place (``sequence``, ``file``, ``position``, ``transaction``, ``ts_us`` in µs since
1970), the ``kind``, ``at`` and ``note``, the consumer's words. ``at`` is a sequence: on the leader the follower's at
which the mark came to be known, on the follower that of the leader's record in conflict, or where a foreign transaction
ends.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.spark.input.records import FOLLOWER, LEADER

__all__ = ["FOREIGN", "MARK", "ledger_rows", "marked", "marks", "statements_settled"]

# Of transactions (``streams.watermark``): what did not come through the consumer.
FOREIGN = "kind IN ('foreign', 'moved')"
MARK = (
    "STRUCT<sequence: BIGINT, file: STRING, position: BIGINT, transaction: STRING, ts_us: BIGINT, "
    "kind: STRING, at: BIGINT, note: STRING>"
)
_SHOWN = 300  # characters of a note
_REASON = f"left(concat_ws('; removed ', reason, nullif(removed, '')), {_SHOWN})"


def marks(
    records: DataFrame, transactions: DataFrame, *, resource: str, noted: bool, foreign: bool
) -> Mapping[str, DataFrame | None]:
    """Each side's marks by sequence of its own records, for ``marked``; None where there are none.

    ``noted``: the consumer has noted something, ``foreign``: there are foreign transactions.
    """
    found: dict[str, DataFrame | None] = {LEADER: None, FOLLOWER: None}
    theirs = []
    if noted:
        conflicts = _conflicts(records, resource)
        skipped = ledger_rows(records, resource).where("state = 'skipped'")
        skipped = skipped.select("sequence", "at", F.lit("skipped").alias("kind"), F.expr(f"left(note, {_SHOWN})"))
        notes = skipped.union(conflicts.select("sequence", "at", F.lit("conflict"), F.expr(_REASON)))
        notes = notes.toDF("sequence", "at", "kind", "note")
        found[LEADER] = notes.groupBy("sequence").agg(F.max(F.struct("at", "kind", "note")).alias("known"))
        # Of several in one transaction, one that removed other rows.
        chief = F.struct(F.col("removed") != "", "at", "sequence", F.expr(_REASON).alias("note"))
        last = conflicts.groupBy("transaction").agg(F.max(chief).alias("of"))
        known = F.struct(F.col("of.sequence").alias("at"), F.lit("conflict").alias("kind"), "of.note")
        theirs.append(last.select("transaction", known))
    if foreign:
        write = F.struct(
            F.col("final").alias("at"), F.lit("foreign").alias("kind"), F.lit(None).cast("string").alias("note")
        )
        theirs.append(transactions.where(FOREIGN).select("transaction", write))
    if theirs:
        joined = theirs[0] if len(theirs) == 1 else theirs[0].union(theirs[1])
        found[FOLLOWER] = joined.toDF("transaction", "known")
    return found


def marked(rows: DataFrame, marks: DataFrame | None) -> DataFrame:
    """``rows`` (of ``compare.fold``) with a column ``mark``, NULL for an ordinary change."""
    if marks is None:
        return rows.withColumn("mark", F.lit(None).cast(MARK))
    joined = rows.join(marks, "sequence" if "sequence" in marks.columns else "transaction", "left")
    # What the consumer put while it settled a conflict is the leader's.
    told = F.expr("known IS NOT NULL AND NOT (side = 'follower' AND known.kind = 'conflict' AND NOT takes)")
    place = ("sequence", "file", "position", "transaction", "ts_us", "known.kind", "known.at", "known.note")
    return joined.withColumn("mark", F.when(told, F.struct(*place)))


def ledger_rows(records: DataFrame, resource: str) -> DataFrame:
    """What the follower's ledger says of the leader ``resource``: sequence, state, statement, note; ``at`` which
    sequence of the follower's own it says so."""
    rows = _images(records, "ledger", resource)
    return rows.select(
        _cell("sequence", "SignedInteger").cast("bigint").alias("sequence"),
        _cell("state", "Enum").alias("state"),
        _cell("statement", "String").alias("statement"),
        _cell("note", "String").alias("note"),
        "at",
    )


def statements_settled(records: DataFrame, resource: str) -> Mapping[int, str]:
    """The leader's sequences that the follower did without, with the state that its ledger gives them."""
    rows = ledger_rows(records, resource).where("state IN ('skipped', 'not applied')")
    return {row["sequence"]: row["state"] for row in rows.select("sequence", "state").distinct().collect()}


def _conflicts(records: DataFrame, resource: str) -> DataFrame:
    rows = _images(records, "conflicts", resource)
    return rows.select(
        "transaction",
        "at",
        _cell("sequence", "SignedInteger").cast("bigint").alias("sequence"),
        _cell("reason", "String").alias("reason"),
        _cell("removed", "String").alias("removed"),
    )


def _images(records: DataFrame, table: str, resource: str) -> DataFrame:
    """The rows that were put into one of the consumer's tables for the leader ``resource``."""
    own = f"valid AND side = '{FOLLOWER}' AND database = '{CHECKPOINT_DATABASE}'"
    rows = records.where(own).where((F.col("table") == table) & F.col("rows").isNotNull())
    rows = rows.select("columns", "transaction", F.col("sequence").alias("at"), F.explode("rows.after").alias("image"))
    return rows.where("image IS NOT NULL").where(_cell("resource", "String") == resource)


def _cell(column: str, tag: str) -> Column:
    return F.get_json_object(F.expr(f"get(image, int(array_position(columns, '{column}')) - 1)"), f"$.{tag}")
