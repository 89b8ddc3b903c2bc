"""Marks unusual changes for the fold (errant transactions, called foreign writes here, and records that are listed in
the consumer's tables ``ledger`` and ``conflicts``), and lists the foreign writes.

A **mark** describes a change. The fold keeps for each row the mark of its last marked change. The kinds of marks:

    foreign    on the follower: the change did not come through the consumer
    conflict   on the follower: the consumer removed the row because the leader's row conflicts with it; on the leader:
               the follower's row differed from the row that the leader's record changed (a row of ``cdc.conflicts``)
    skipped    on the leader: an operator skipped the record on the follower (a row of ``cdc.ledger``)
    chunk      on the leader: no change, but a chunk of a copy of the table contains the row

A mark contains the change's position (``sequence``, ``file``, ``position``, ``transaction``, ``ts_us`` in µs since
1970), the ``kind``, ``at``, and ``note``, the consumer's text. ``at`` is a sequence. In a mark of the leader it is the
follower's sequence at which the note was written. In a mark of the follower it is the sequence of the leader's record
in conflict, or the last sequence of the foreign transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.model.gtid import ddl_uuid
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import PARKS, UNPARKS, Act
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import Query
from cdc.spark.streams.transactions import FOREIGN

__all__ = [
    "MARK",
    "ForeignWrite",
    "Ledger",
    "Skip",
    "all_foreign_writes",
    "copies",
    "foreign_times",
    "foreign_writes",
    "ledger",
    "marked",
    "marks",
    "parked",
    "skipped_records",
]

# The type of the column ``mark``, and of the columns ``leader_marked`` and ``follower_marked`` of a state's rows.
MARK = (
    "STRUCT<sequence: BIGINT, file: STRING, position: BIGINT, transaction: STRING, ts_us: BIGINT, "
    "kind: STRING, at: BIGINT, note: STRING>"
)
_CHANGE = ("sequence", "file", "position", "transaction", "ts_us")
_LAST = 1 << 30  # a place after those of all effects of a statement
_SHOWN = 300  # maximum number of characters of a note
_REASON = f"left(concat_ws('; removed ', reason, nullif(removed, '')), {_SHOWN})"


@dataclass(frozen=True, slots=True)
class Skip:
    """A leader record that an operator skipped on the follower (``cdc-consumer --skip``).

    ``statement`` describes the record, and ``note`` describes the follower's error.
    """

    sequence: int
    statement: str
    note: str


@dataclass(frozen=True, slots=True)
class Ledger:
    """The follower's ledger of the leader's statements.

    ``not_run`` contains the statements that the follower did not apply: the keys are their sequences, the values are
    their states (skipped or not applied). ``numbered`` contains the statements that the follower ran, or was about to
    run: the keys are the GTIDs that the ledger contains for them, the values are their sequences. The consumer assigned
    these GTIDs (``cdc.model.gtid``), or noted them after the server had assigned them.
    """

    not_run: Mapping[int, str] = field(default_factory=dict)
    numbered: Mapping[str, int] = field(default_factory=dict)


def skipped_records(records: DataFrame, *, resource: str, limit: int) -> Query[list[Skip]]:
    """Finds the first ``limit`` records of the leader ``resource`` that are skipped according to the ledger, in the
    leader's order.
    """
    rows = _ledger_rows(records, resource).where("state = 'skipped'").select("sequence", "statement", "note")
    first = rows.distinct().orderBy("sequence").limit(limit)
    return Query(first, lambda found: [Skip(**row.asDict()) for row in found])


def ledger(records: DataFrame, resource: str) -> Query[Ledger]:
    """Reads the ledger for the leader ``resource``. The ledger contains few statements, so they fit into the driver."""
    rows = _ledger_rows(records, resource).selectExpr(
        "sequence",
        "IF(state IN ('skipped', 'not applied'), state, NULL) AS not_run",
        # GTIDs that an earlier version of cdc assigned contain the sequence: the ledger is not needed for them.
        f"IF(gtid = '' OR gtid LIKE '{ddl_uuid(resource)}:%', NULL, gtid) AS gtid",
    )
    # Most statements are logged twice, before and after they run. Removing duplicates here would cost a stage.
    return Query(rows.where("coalesce(not_run, gtid) IS NOT NULL"), _ledger)


def _ledger(rows: Sequence[Row]) -> Ledger:
    found = sorted(set(rows), key=lambda row: row["sequence"])
    return Ledger(
        {row["sequence"]: row["not_run"] for row in found if row["not_run"]},
        {row["gtid"]: row["sequence"] for row in found if row["gtid"]},
    )


def parked(records: DataFrame, resource: str) -> Query[list[Act]]:
    """Reads the consumer's notes of tables that it has parked: from the leader's sequence of a PARKS on, the follower
    leaves out the changes of the table. A note that is deleted ends this (UNPARKS), for the record that the note was
    about: later copies and statements change the table as those of any other.
    """
    rows = _images(records, "parked", resource, deleted=True).select(
        _cell("changed", "SignedInteger").cast("bigint"),
        _cell("database_name", "String"),
        _cell("table_name", "String"),
        _cell("state", "Enum").alias("state"),
        *("deleted", "at"),
    )
    waiting = rows.where("deleted OR state IN ('parked', 'partial')").drop("state")
    return Query(waiting, lambda found: [_parked(resource, *row) for row in sorted(set(found))])


def _parked(resource: str, sequence: int, database: str, table: str, deleted: bool, at: int) -> Act:
    # The follower's note comes after all effects that the leader's record itself has, and its end after the note. A
    # note may be there several times; Spark's distinct would cost a shuffle.
    place, action = (_LAST + 1, UNPARKS) if deleted else (_LAST, PARKS)
    return Act(sequence, place, action, str(Uri(resource, database, table)), noted=at)


def copies(records: DataFrame, resource: str) -> list[tuple[str, int]]:
    """Reads the consumer's notes of the base copy, the dump that the follower began with: the GTID set of each note,
    and the follower's sequence at which it was written.
    """
    rows = _images(records, "copies", resource)
    return [(row[0], row[1]) for row in rows.select(_cell("gtid_set", "String"), "at").collect()]


def marks(
    records: DataFrame, transactions: DataFrame, *, resource: str, noted: bool, foreign: bool
) -> Mapping[str, DataFrame | None]:
    """Builds each side's marks (facts about unusual changes); None for a side without marks. ``marked`` joins them to
    the changes: marks of the leader by sequence, marks of the follower by transaction.

    ``noted`` is true if the consumer's tables contain conflicts or skipped records, ``foreign`` if there are foreign
    writes.
    """
    found: dict[str, DataFrame | None] = {LEADER: None, FOLLOWER: None}
    on_follower = []
    if noted:
        conflicts = _conflicts(records, resource)
        found[LEADER] = _notes(_ledger_rows(records, resource), conflicts)
        # A follower's transaction has one mark. If the consumer resolved several conflicts in it, the mark describes a
        # conflict for which rows were removed, if there is one.
        chief = F.struct(F.col("removed") != "", "at", "sequence", F.expr(_REASON).alias("note"))
        last = conflicts.groupBy("transaction").agg(F.max(chief).alias("of"))
        conflict = F.struct(F.col("of.sequence").alias("at"), F.lit("conflict").alias("kind"), "of.note")
        on_follower.append(last.select("transaction", conflict))
    if foreign:
        write = F.struct(
            F.col("final").alias("at"), F.lit("foreign").alias("kind"), F.lit(None).cast("string").alias("note")
        )
        on_follower.append(transactions.where(FOREIGN).select("transaction", write))
    if on_follower:
        joined = on_follower[0] if len(on_follower) == 1 else on_follower[0].union(on_follower[1])
        found[FOLLOWER] = joined.toDF("transaction", "known")
    return found


def marked(rows: DataFrame, marks: DataFrame | None) -> DataFrame:
    """Adds the column ``mark`` to ``rows`` (see ``compare.fold``). The mark is NULL for an ordinary change."""
    chunk = F.expr(f"CAST(IF(stated, struct({', '.join(_CHANGE)}, 'chunk', NULL, NULL), NULL) AS {MARK})")
    if marks is None:
        return rows.withColumn("mark", chunk)
    joined = rows.join(marks, "sequence" if "sequence" in marks.columns else "transaction", "left")
    # Rows that the consumer writes while it resolves a conflict get no mark: they are the leader's rows.
    applies = F.expr("known IS NOT NULL AND NOT (side = 'follower' AND known.kind = 'conflict' AND NOT removes)")
    fields = (*_CHANGE, "known.kind", "known.at", "known.note")
    return joined.withColumn("mark", F.when(applies, F.struct(*fields)).otherwise(chunk))


def _notes(ledger: DataFrame, conflicts: DataFrame) -> DataFrame:
    """Finds the latest note about each sequence of the leader that was skipped or caused a conflict."""
    skipped = ledger.where("state = 'skipped'")
    skipped = skipped.select("sequence", "at", F.lit("skipped").alias("kind"), F.expr(f"left(note, {_SHOWN})"))
    notes = skipped.union(conflicts.select("sequence", "at", F.lit("conflict"), F.expr(_REASON)))
    notes = notes.toDF("sequence", "at", "kind", "note")
    return notes.groupBy("sequence").agg(F.max(F.struct("at", "kind", "note")).alias("known"))


def _ledger_rows(records: DataFrame, resource: str) -> DataFrame:
    """Selects the rows about the leader ``resource`` in the follower's ledger. The columns sequence, gtid, state,
    statement and note are those of the ledger. The column ``at`` is the sequence of the record, in the follower's
    topic, that wrote the ledger row.
    """
    rows = _images(records, "ledger", resource)
    return rows.select(
        _cell("sequence", "SignedInteger").cast("bigint").alias("sequence"),
        _cell("gtid", "String").alias("gtid"),
        _cell("state", "Enum").alias("state"),
        _cell("statement", "String").alias("statement"),
        _cell("note", "String").alias("note"),
        "at",
    )


def _conflicts(records: DataFrame, resource: str) -> DataFrame:
    rows = _images(records, "conflicts", resource)
    return rows.select(
        "transaction",
        "at",
        _cell("sequence", "SignedInteger").cast("bigint").alias("sequence"),
        _cell("reason", "String").alias("reason"),
        _cell("removed", "String").alias("removed"),
    )


def _images(records: DataFrame, table: str, resource: str, *, deleted: bool = False) -> DataFrame:
    """Selects the rows about the leader ``resource`` that were inserted or changed in ``table``, a table of the
    consumer's own database. With ``deleted`` also selects the rows that were deleted from it, as they were, and adds
    the column ``deleted``.
    """
    own = f"valid AND side = '{FOLLOWER}' AND database = '{CHECKPOINT_DATABASE}'"
    rows = records.where(own).where((F.col("table") == table) & F.col("rows").isNotNull())
    rows = rows.select("columns", "transaction", F.col("sequence").alias("at"), F.explode("rows").alias("row"))
    image = F.expr("coalesce(row.after, row.before)" if deleted else "row.after").alias("image")
    more = [F.expr("row.after IS NULL").alias("deleted")] if deleted else []
    rows = rows.select("columns", "transaction", "at", image, *more)
    return rows.where("image IS NOT NULL").where(_cell("resource", "String") == resource)


def _cell(column: str, tag: str) -> Column:
    return F.get_json_object(F.expr(f"get(image, int(array_position(columns, '{column}')) - 1)"), f"$.{tag}")


# Lists the follower's transactions that did not come through the consumer (foreign writes; MySQL calls them errant
# transactions), and counts them over time.

_TABLES_LISTED = 20
_PARTS = 120


@dataclass(frozen=True, slots=True)
class ForeignWrite:
    """A follower transaction that did not come through the consumer; ``ts_us`` is its commit time in µs since 1970."""

    transaction: str
    file: str
    position: int
    ts_us: int
    tables: list[str]
    rows: int
    statement: str | None


def foreign_writes(transactions: DataFrame, *, limit: int) -> Query[list[ForeignWrite]]:
    """Selects the first ``limit`` foreign writes, in the follower's order."""
    return Query(transactions.where(FOREIGN).orderBy("final").limit(limit), _listed)


def all_foreign_writes(transactions: DataFrame) -> DataFrame:
    """Selects all foreign writes with the fields of ForeignWrite. The list of tables is not shortened, and
    ``committed_at`` is a timestamp.
    """
    return transactions.where(FOREIGN).select(
        "transaction",
        *("start.sequence", "start.file", "start.position"),
        F.expr("timestamp_micros(ts_us)").alias("committed_at"),
        F.array_sort("tables").alias("tables"),
        *("rows", "statement"),
    )


def _listed(foreign: Sequence[Row]) -> list[ForeignWrite]:
    return [
        ForeignWrite(
            transaction=row["transaction"],
            file=row["start"]["file"],
            position=row["start"]["position"],
            ts_us=row["ts_us"],
            tables=sorted(row["tables"])[:_TABLES_LISTED],
            rows=row["rows"],
            statement=row["statement"],
        )
        for row in foreign
    ]


def foreign_times(transactions: DataFrame, *, first_us: int, last_us: int) -> Query[list[tuple[int, int, int]]]:
    """Divides the time from ``first_us`` to ``last_us`` (µs since 1970) into intervals of equal length, and counts the
    foreign writes in each interval. Returns (from, to, count) for each interval with foreign writes."""
    part_us = (last_us - first_us) // _PARTS + 1
    part = F.expr(f"(ts_us - {first_us}L) DIV {part_us}L")
    found = transactions.where(FOREIGN).groupBy(part.alias("part")).count()

    def counted(rows: Sequence[Row]) -> list[tuple[int, int, int]]:
        starts = sorted((first_us + row["part"] * part_us, row["count"]) for row in rows)
        return [(start, start + part_us, count) for start, count in starts]

    return Query(found, counted)
