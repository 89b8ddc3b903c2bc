"""What audits have covered of both topics: what of it the next one needs, and where it reads on.

Of each side all records before a sequence, ``next``, are **covered**: of the leader those up to the watermark, of the
follower its whole transactions.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.model.partition import Partition, partition_name
from cdc.spark.compare.tally import Table, Tally
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.spans import Span
from cdc.spark.lag.transit import Transit
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.watermark import Watermark

__all__ = [
    "SIDES",
    "Covered",
    "Held",
    "arrivals_after",
    "can_be_resumed",
    "contents_from",
    "contents_of",
    "needed_later",
    "offsets_after",
    "place",
    "upto",
    "verdict_from",
    "verdict_of",
]

SIDES = (LEADER, FOLLOWER)

# Of the consumer's tables those that ``streams.consumer_notes`` reads: it updates others with each of its commits.
_NOTES = f"database = '{CHECKPOINT_DATABASE}' AND table IN ('ledger', 'conflicts')"
_NEEDED_LATER = f"valid AND (query IS NOT NULL OR ({_NOTES}))"


@dataclass(frozen=True, slots=True)
class Held:
    """What earlier audits covered: per side the first sequence that is new, where to read on, and what there was.

    ``arrivals`` are the offsets at which to read on in the commit logs. ``layers`` have the rows with both
    sides' columns (``drift.JOINED``) by ``generation``, as ``state.layers`` tells: so many ``rows`` in the first
    one, ``above`` in the others. ``open`` has the hashes of those of which there is more to tell than the ``tally``,
    which counts all: so many, ``opened``.
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


@dataclass(frozen=True, slots=True)
class Covered:
    """What an audit covered that the state does not hold yet.

    ``ends`` are the last sequences, ``records`` and ``transactions`` those read by this audit, up to the ends of
    ``spans``, and ``arrivals`` tell when they were in Kafka. The others tell of the topics from their beginning. The
    ``rows`` have both sides' columns; where ``touched``, only those that were are there. ``open`` has the hashes of
    those of which there is more to tell than the ``tally``, None where there are none.
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


def can_be_resumed(transactions: DataFrame, before: Held | None, *, upto: int) -> bool:
    """Whether the next audit may take what came up to sequence ``upto`` of the leader as settled.

    ``transactions`` are those that ``before`` does not cover. While the follower is between the statement of a CREATE
    TABLE … SELECT and its rows, it may not.
    """
    ends_there = transactions.where(f"side = '{LEADER}' AND state = 'whole' AND final = {upto}")
    covered = before.next[LEADER] - 1 if before else -1
    return upto == covered or not ends_there.isEmpty()


def upto(rows: DataFrame, column: str, ends: Mapping[str, int]) -> DataFrame:
    within = F.lit(False)
    for side, end in ends.items():
        within = within | ((F.col("side") == side) & (F.col(column) <= end))
    return rows.where(within)


def needed_later(covered: Covered) -> DataFrame:
    needed = covered.records.where(_NEEDED_LATER)
    if not any(covered.tally.breaks.values()):
        return needed
    places = [covered.rows.select(F.lit(side).alias("side"), f"{side}_broken.sequence") for side in SIDES]
    told = places[0].union(places[1]).where("sequence IS NOT NULL").distinct()
    others = covered.records.where(f"NOT ({_NEEDED_LATER})")
    return needed.unionByName(others.join(told, ["side", "sequence"], "left_semi"))


def offsets_after(covered: Covered, held: Held | None) -> dict[str, dict[str, int]]:
    """Where each partition's first record that is not covered is or, where all that was read is covered, will be."""
    found = {side: {partition_name(place): at for place, at in held.offsets[side].items()} if held else {}
             for side in SIDES}  # fmt: skip
    for side, span in covered.spans.items():
        if span.limit is None:
            found[side] |= {partition_name(place): end for place, (_, end) in span.partitions.items()}
    ends = F.when(F.col("side") == LEADER, covered.ends[LEADER]).otherwise(covered.ends[FOLLOWER])
    new = F.min(F.when(F.col("sequence") > ends, F.col("offset"))).alias("new")
    for row in covered.records.groupBy("side", "partition").agg(new, F.max("offset").alias("last")).collect():
        side, name = row["side"], row["partition"]
        if row["new"] is not None:
            found[side][name] = row["new"]
        elif side not in covered.spans or covered.spans[side].limit is not None:
            # Beyond the limit there may be records that were not read.
            found[side][name] = row["last"] + 1
    return found


def arrivals_after(covered: Covered, held: Held | None) -> dict[str, int]:
    """Where each commit log's last entry of what is covered is: with it begins what the next one tells of."""
    last = upto(covered.arrivals, "upto", covered.ends).groupBy("side").agg(F.max("offset"))
    return {**(held.arrivals if held else {}), **dict(map(tuple, last.collect()))}


def contents_of(covered: Covered) -> dict[str, dict[str, Any]]:
    """The contents up to where they are covered; names and times may be of what comes later, which is read again."""
    bodies = {}
    for side, contents in covered.contents.items():
        end = covered.ends[side]
        if contents.first is not None and contents.first <= end:
            # The stream is whole, so its sequences count its records.
            cut = replace(contents, records=end + 1 - contents.first, last=end, rows=0, fingerprint=None, shapes={})
            bodies[side] = {
                **asdict(cut),
                "resources": sorted(cut.resources),
                "tables": sorted(cut.tables),
                "unchecked": [(*name, at) for name, at in cut.unchecked.items()],
            }
    return bodies


def contents_from(body: Mapping[str, Any]) -> Contents:
    return Contents(**{
        **body,
        "resources": frozenset(body["resources"]),
        "tables": frozenset(map(tuple, body["tables"])),
        "unchecked": {(database, table): at for database, table, at in body["unchecked"]},
    })  # fmt: skip


def verdict_of(covered: Covered) -> dict[str, Any]:
    """What was counted, but for the bins of the transit."""
    took, mark = covered.transit, replace(covered.mark, open_from=None)
    transit = took and {name: getattr(took, name) for name in ("transactions", "first_us", "last_us")}
    return {"tally": asdict(covered.tally), "mark": asdict(mark), "transit": transit}


def verdict_from(body: Mapping[str, Any], bins: DataFrame | None) -> dict[str, Any]:
    tally = Tally([Table(**line) for line in body["tally"]["lines"]], body["tally"]["breaks"])
    transit = Transit(**body["transit"], bins=bins) if bins is not None else None
    return {"tally": tally, "mark": Watermark(**body["mark"]), "transit": transit}


def place(item: tuple[str, int]) -> tuple[Partition, int]:
    topic, _, number = item[0].rpartition("/")
    return (topic, int(number)), item[1]
