"""Describes the contents of a state, the part of the topics that an audit covered beyond the state, and the records
that later audits need.

All records of a side before the sequence ``next`` are **covered**: the leader's records up to the watermark, and the
follower's records up to the end of its last complete transaction. The next audit reads the records after the covered
records again.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.model.position import Partition, partition_name
from cdc.spark.compare.tally import Table, Tally
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.spans import Span
from cdc.spark.lag.transit import Transit
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.transaction_ids import IdRange, TransactionIds, id_ranges, with_ranges
from cdc.spark.streams.watermark import Watermark

__all__ = [
    "SIDES",
    "Covered",
    "Held",
    "arrivals_after",
    "can_be_resumed",
    "contents_from_json",
    "contents_to_json",
    "ids_after",
    "needed_later",
    "offsets_after",
    "rows_upto",
    "verdict_from_json",
    "verdict_to_json",
]

SIDES = (LEADER, FOLLOWER)

# Selects the consumer's tables that ``streams.consumer_notes`` reads. The consumer's other tables change with each of
# its commits.
_NOTES = f"database = '{CHECKPOINT_DATABASE}' AND table IN ('ledger', 'conflicts', 'copies')"
_CHUNK = "(chunk IS NOT NULL AND NOT coalesce(chunk.repair, false))"
_NEEDED_LATER = f"valid AND (query IS NOT NULL OR {_CHUNK} OR ({_NOTES}))"


@dataclass(frozen=True, slots=True)
class Held:
    """The state that earlier audits saved.

    Some fields determine, for each side, where the next audit continues: ``next`` is the first sequence that is not
    covered; ``offsets`` are the offsets from which to read each partition of the side's topics; ``arrivals`` is the
    offset from which to read the side's commit log.

    Some fields describe rows: ``layers`` contains both sides' columns (``row_drift.JOINED``), and the ``generation`` of
    each row's layer (``state.layers``). The first layer contains ``rows`` rows, and the later layers contain ``above``
    rows. ``open`` contains the hashes of the rows that a report lists one by one; their number is ``opened``. The
    ``tally`` counts all rows.

    The other fields describe the streams from their beginning: their ``contents``, the ``transactions`` and their
    ``ids`` (None if not all ids are known), the watermark (``mark``), how long transactions took (``transit``), and the
    ``records`` that later audits need; their number is at most ``kept``.
    """

    next: Mapping[str, int]
    offsets: Mapping[str, Mapping[Partition, int]]
    arrivals: Mapping[str, int]
    contents: Mapping[str, Contents]
    layers: DataFrame
    rows: int
    above: int
    open: DataFrame
    opened: int
    tally: Tally
    mark: Watermark
    transit: Transit | None
    transactions: DataFrame
    records: DataFrame
    kept: int
    ids: TransactionIds | None = None

    @property
    def covered(self) -> int:
        """The number of covered records. The number of covered transactions is not higher."""
        return sum(each.records for each in self.contents.values())


@dataclass(frozen=True, slots=True)
class Covered:
    """The part of the topics that an audit covered, and that is not in the state yet.

    ``ends`` are the last covered sequences. This audit read ``records`` and ``transactions`` (with their ``ids``) up to
    the ends of ``spans``; ``arrivals`` contains the times at which the records were in Kafka. ``contents``, ``tally``,
    ``mark`` and ``transit`` describe the streams from their beginning. ``rows`` contains both sides' columns of all
    rows or, if ``touched``, of the touched rows. ``open`` contains the hashes of the rows that a report lists one by
    one; it is None if there are no such rows.
    """

    ends: Mapping[str, int]
    contents: Mapping[str, Contents]
    rows: DataFrame
    touched: bool
    open: DataFrame | None
    tally: Tally
    mark: Watermark
    transit: Transit | None
    transactions: DataFrame
    records: DataFrame
    arrivals: DataFrame
    spans: Mapping[str, Span] = field(default_factory=dict)
    ids: list[IdRange] | None = None


def can_be_resumed(transactions: DataFrame, before: Held | None, *, upto: int) -> bool:
    """Whether the leader's records up to sequence ``upto`` can be covered: one of the leader's transactions must end at
    ``upto``.

    No transaction ends at ``upto`` while the follower is between the statement of a CREATE TABLE … SELECT and its rows.
    ``transactions`` are the transactions that ``before`` does not cover.
    """
    ends_there = transactions.where(f"side = '{LEADER}' AND state = 'whole' AND final = {upto}")
    covered = before.next[LEADER] - 1 if before else -1
    return upto == covered or not ends_there.isEmpty()


def rows_upto(rows: DataFrame, column: str, ends: Mapping[str, int]) -> DataFrame:
    """Selects the ``rows`` whose ``column`` is at most the sequence of their side in ``ends``."""
    within = F.lit(False)
    for side, end in ends.items():
        within = within | ((F.col("side") == side) & (F.col(column) <= end))
    return rows.where(within)


def needed_later(covered: Covered) -> DataFrame:
    """Selects the records that later audits need: statements, the consumer's notes, and records with broken before
    images, since a report contains the positions of these records in Kafka.

    Chunks are needed too, but without their rows, which are in the fold.
    """
    needed = covered.records.where(_NEEDED_LATER).withColumn("rows", F.expr("IF(chunk IS NULL, rows, NULL)"))
    if not any(covered.tally.breaks.values()):
        return needed
    sequences = [covered.rows.select(F.lit(side).alias("side"), f"{side}_broken.sequence") for side in SIDES]
    shown = sequences[0].union(sequences[1]).where("sequence IS NOT NULL").distinct()
    others = covered.records.where(f"NOT ({_NEEDED_LATER})")
    return needed.unionByName(others.join(shown, ["side", "sequence"], "left_semi"))


def offsets_after(covered: Covered, held: Held | None) -> dict[str, dict[str, int]]:
    """Computes the offsets at which the next audit continues, by side and partition: the offset of the first record
    that is not covered, or the end if all records are covered.
    """
    found = {
        side: {partition_name(partition): at for partition, at in held.offsets[side].items()} if held else {}
        for side in SIDES
    }
    for side, span in covered.spans.items():
        if span.limit is None:
            found[side] |= {partition_name(partition): end for partition, (_, end) in span.partitions.items()}
    ends = F.when(F.col("side") == LEADER, covered.ends[LEADER]).otherwise(covered.ends[FOLLOWER])
    new = F.min(F.when(F.col("sequence") > ends, F.col("offset"))).alias("new")
    for row in covered.records.groupBy("side", "partition").agg(new, F.max("offset").alias("last")).collect():
        side, name = row["side"], row["partition"]
        if row["new"] is not None:
            found[side][name] = row["new"]
        elif side not in covered.spans or covered.spans[side].limit is not None:
            # Records beyond the span's limit exist and were not read, so the next audit continues after the last record
            # that was read.
            found[side][name] = row["last"] + 1
    return found


def arrivals_after(covered: Covered, held: Held | None) -> dict[str, int]:
    """Computes, for each side, the offset from which the next audit reads the commit log: the offset of the last entry
    whose records are covered.
    """
    last = rows_upto(covered.arrivals, "upto", covered.ends).groupBy("side").agg(F.max("offset"))
    return {**(held.arrivals if held else {}), **dict(map(tuple, last.collect()))}


def ids_after(covered: Covered, held: Held | None) -> TransactionIds | None:
    """Returns the ids of all covered transactions, or None if there are too many prefixes."""
    known = held.ids if held else {}
    if held and known is None:  # a version of cdc that kept no ids saved the state
        known = with_ranges({}, id_ranges(held.transactions, records=held.covered).result(), held.next)
    return with_ranges(known, covered.ids, covered.ends)


def contents_to_json(covered: Covered) -> dict[str, dict[str, Any]]:
    """Converts the contents to JSON, with the counts of the covered records only.

    Names and times may include later records, which the next audit reads again.
    """
    bodies = {}
    for side, contents in covered.contents.items():
        end = covered.ends[side]
        if contents.first is not None and contents.first <= end:
            # The stream is known to be complete, so the number of its records follows from their sequences.
            cut = replace(contents, records=end + 1 - contents.first, last=end, rows=0, fingerprint=None, shapes={})
            bodies[side] = {
                **asdict(cut),
                "resources": sorted(cut.resources),
                "tables": sorted(cut.tables),
                "unchecked": [(*name, at) for name, at in cut.unchecked.items()],
            }
    return bodies


def contents_from_json(body: Mapping[str, Any]) -> Contents:
    """Parses one side's contents from JSON (``contents_to_json``)."""
    return Contents(**{
        **body,
        "resources": frozenset(body["resources"]),
        "tables": frozenset(map(tuple, body["tables"])),
        "unchecked": {(database, table): at for database, table, at in body["unchecked"]},
    })  # fmt: skip


def verdict_to_json(covered: Covered) -> dict[str, Any]:
    """Converts the tally, the watermark and the transit times without their bins to JSON."""
    took, mark = covered.transit, replace(covered.mark, open_from=None)
    transit = took and {name: getattr(took, name) for name in ("transactions", "first_us", "last_us")}
    return {"tally": asdict(covered.tally), "mark": asdict(mark), "transit": transit}


def verdict_from_json(body: Mapping[str, Any], bins: DataFrame | None) -> dict[str, Any]:
    """Parses the tally, the watermark and the transit times from JSON (``verdict_to_json``), adds the ``bins``, and
    returns them as fields of ``Held``.
    """
    tally = Tally([Table(**line) for line in body["tally"]["lines"]], body["tally"]["breaks"])
    transit = Transit(**body["transit"], bins=bins) if bins is not None else None
    return {"tally": tally, "mark": Watermark(**body["mark"]), "transit": transit}
