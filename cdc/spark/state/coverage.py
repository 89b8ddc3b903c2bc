"""Describes the contents of a state: the part of the topics that an audit covered, the stored rows that an audit has to
load, and the topics, renames and filters of the state.

All records of a side before the sequence ``next`` are **covered**: the leader's records that the follower has applied,
and the follower's records up to the end of its last complete transaction. The next audit reads all later records again.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.model.position import Partition, partition_name
from cdc.model.read_record import ReadRecord, newest_records
from cdc.spark.compare.tally import Table, Tally
from cdc.spark.ddl.lineage import END, Name, Segment
from cdc.spark.input.records import COPYING, FOLLOWER, LEADER
from cdc.spark.input.renaming import names_in_use
from cdc.spark.input.small_data import in_one_part, is_tiny
from cdc.spark.input.spans import Span
from cdc.spark.lag import Transit
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.transactions import IdRange, TransactionIds, id_ranges, with_ranges
from cdc.spark.streams.watermark import Watermark

__all__ = [
    "PAGES",
    "SIDES",
    "START_OVER",
    "Covered",
    "Held",
    "arrivals_after",
    "can_be_resumed",
    "contents_from_json",
    "contents_to_json",
    "few_touched",
    "identity",
    "ids_after",
    "lines_read",
    "needed_later",
    "newest_rows",
    "offsets_after",
    "parse_pointer",
    "rows_of",
    "rows_upto",
    "searched",
    "sorted_layer",
    "tables_unchanged",
    "verdict_from_json",
    "verdict_to_json",
]

SIDES = (LEADER, FOLLOWER)

# SQL for the rows of the consumer's tables that ``streams.consumer_notes`` reads. A state does not keep the rows of the
# checkpoint, which changes with each of the consumer's commits.
_NOTES = f"database = '{CHECKPOINT_DATABASE}' AND table IN ('ledger', 'conflicts', 'copies', 'parked')"
_CHUNK = "(chunk IS NOT NULL AND NOT coalesce(chunk.repair, false))"
_NEEDED_LATER = f"valid AND (query IS NOT NULL OR {_CHUNK} OR ({_NOTES}))"


@dataclass(frozen=True, slots=True)
class Held:
    """The state that earlier audits saved.

    Some fields determine, for each side, where the next audit continues: ``next`` is the first sequence that is not
    covered; ``offsets`` are the offsets from which to read each partition of the side's topics; ``read`` maps the name
    of each partition to its last covered records (``model.read_record``); ``arrivals`` is the offset from which to read
    the side's commit log.

    Some fields describe rows: ``layers`` contains both sides' columns (``row_drift.JOINED``), and the ``generation`` of
    each row's layer. The first layer contains ``rows`` rows, and the later layers contain ``above`` rows. ``open``
    contains the hashes of the rows that a report lists one by one; their number is ``opened``. The ``tally`` counts all
    rows.

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
    read: Mapping[str, Mapping[str, Sequence[ReadRecord]]] = field(default_factory=dict)

    @property
    def covered(self) -> int:
        """The number of records that earlier audits covered; there are at most as many covered transactions."""
        return sum(each.records for each in self.contents.values())


@dataclass(frozen=True, slots=True)
class Covered:
    """The part of the topics that an audit covered, and that is not in the state yet.

    ``ends`` are the last covered sequences. This audit read ``records`` and ``transactions`` (with their ``ids``) up to
    the ends of ``spans``; ``arrivals`` contains the times at which the records were in Kafka. ``contents``, ``tally``,
    ``mark`` and ``transit`` describe the streams from their beginning. ``rows`` contains both sides' columns of all
    rows or, if ``touched``, of the rows that were changed since the last state or that it lists. ``open`` contains the
    hashes of the rows that a report lists one by one; it is None if there are no such rows.
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
    """Whether a later audit can continue after the leader's record ``upto``. It can if one of the leader's transactions
    ends with this record.

    While the follower has executed the statement of a CREATE TABLE … SELECT, but not yet inserted the statement's rows,
    ``upto`` is inside a transaction. ``transactions`` are the transactions that the state ``before`` does not contain.
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
    """Selects the records that later audits need: statements, the consumer's notes, and records with a before image
    that differs from the row's previous image, since a report contains the positions of these records in Kafka.

    Chunks of table copies are needed too, but without their rows, since the state contains the rows themselves, except
    for those of the consumer's notes.
    """
    needed = covered.records.where(_NEEDED_LATER)
    needed = needed.withColumn("rows", F.expr(f"IF(chunk IS NULL OR ({_NOTES}), rows, NULL)"))
    if not any(covered.tally.breaks.values()):
        return needed
    sequences = [covered.rows.select(F.lit(side).alias("side"), f"{side}_broken.sequence") for side in SIDES]
    shown = sequences[0].union(sequences[1]).where("sequence IS NOT NULL").distinct()
    others = covered.records.where(f"NOT ({_NEEDED_LATER})")
    return needed.unionByName(others.join(shown, ["side", "sequence"], "left_semi"))


def offsets_after(covered: Covered, held: Held | None) -> tuple[dict[str, dict[str, int]], dict[str, Any]]:
    """Computes the offsets at which the next audit continues, by side and partition: the offset of the first record
    that this audit did not cover or, if there is no such record, the end of the partition.

    Returns also, by side and partition, the last covered record and, if a table copy wrote some there, the last one of
    those.
    """
    found = {
        side: {partition_name(partition): at for partition, at in held.offsets[side].items()} if held else {}
        for side in SIDES
    }
    read = {side: dict(held.read.get(side, {})) if held else {} for side in SIDES}
    for side, span in covered.spans.items():
        if span.limit is None:
            found[side] |= {partition_name(partition): end for partition, (_, end) in span.partitions.items()}
    ends = F.when(F.col("side") == LEADER, covered.ends[LEADER]).otherwise(covered.ends[FOLLOWER])
    new = F.min(F.when(F.col("sequence") > ends, F.col("offset"))).alias("new")
    record = F.struct("sequence", "offset", "file", "position", "ts_us")
    is_read = F.col("valid") & (F.col("sequence") <= ends)
    last = F.max(F.when(is_read, record)).alias("last_read")
    copied = F.max(F.when(is_read & F.col("transaction").startswith(COPYING), record)).alias("last_copied")
    of_partitions = covered.records.groupBy("side", "partition")
    for row in of_partitions.agg(new, F.max("offset").alias("last"), last, copied).collect():
        side, name = row["side"], row["partition"]
        if row["new"] is not None:
            found[side][name] = row["new"]
        elif side not in covered.spans or covered.spans[side].limit is not None:
            # Records beyond the span's limit exist and were not read, so the next audit continues after the last record
            # that was read.
            found[side][name] = row["last"] + 1
        known = read[side].get(name, ())
        read[side][name] = newest_records(known, row["last_read"], row["last_copied"])
    return found, read


def arrivals_after(covered: Covered, held: Held | None) -> dict[str, int]:
    """Computes, for each side, the offset from which the next audit reads the commit log: the offset of the last entry
    that describes only records that this audit covered.
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
    """Converts the contents of both topics to JSON, with the counts of the covered records only.

    The names and times may be those of later records, too; this is harmless, since the next audit reads these records
    again.
    """
    bodies = {}
    for side, contents in covered.contents.items():
        end = covered.ends[side]
        if contents.first is not None and contents.first <= end:
            # A state is saved only if the stream lacks no record, so the sequences show the number of records.
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


# Decides which stored rows of a state an audit has to load, and reads the newest version of each row.
#
# A state stores both sides' rows in **layers**: the first layer contains all rows, and each later layer contains the
# rows that were touched since the previous layer. Rows are looked up by the hash of their identity, the sort key of the
# fold. The newest layer with a hash contains all rows with this hash, so the newest versions of two rows with the same
# hash are never in different layers. The files of a layer are sorted by the hash, each contains a range of hashes, and
# their pages are small. So a look-up reads few other rows.
#
# A row is **touched** if its hash occurs in a record that was read since the state was saved, or if each report lists
# it one by one: because it drifted, or because a before image differs from the row's previous image. An audit loads,
# folds, compares and saves only the touched rows. It folds all rows again if a statement altered, moved or dropped a
# table with stored rows, or if many rows were touched.

_MOST_LOOKED_UP = 1_000_000  # hashes of touched rows and of later layers, which are broadcast to all executors
_MOST_SEARCHED = 10_000  # hashes for which pages are searched; with more hashes, most pages contain one
PAGES = {"parquet.page.row.count.limit": 128}  # options of Parquet for the pages of a layer
# For a filter with single values Parquet searches its pages for each value; for a filter with a set it compares only
# the least and the largest value. Spark turns a list of values into a set if it is longer than this limit, which is ten
# by default.
_LISTED, _LIST_LIMIT = 500, "spark.sql.parquet.pushdown.inFilterThreshold"


def few_touched(before: Held, rows: int) -> bool:
    """Whether looking up the touched rows (changed since the state ``before``, or listed by each report) costs less
    than folding all rows. ``rows`` is the number of rows in the new records.
    """
    return before.above + before.opened + rows <= min(_MOST_LOOKED_UP, before.rows)


def searched(before: Held, rows: int) -> bool:
    """Whether the audit searches pages for the touched rows. ``rows`` is the number of rows in the new records."""
    # A change of a row's key touches two rows.
    return before.opened + 2 * rows <= _MOST_SEARCHED


def lines_read(before: Held, rows: int) -> int:
    """Computes how many records, transactions and rows an audit reads from the state ``before``. Rows do not count if
    the audit only searches pages for them.

    ``rows`` is the number of rows in the new records. Assumes that no statement moved or altered a table in ``before``.
    """
    transactions = before.covered if before.mark.foreign or before.opened or before.ids is None else 0
    return before.kept + transactions + (0 if searched(before, rows) else before.rows + before.above)


def tables_unchanged(held: Collection[Name], lives: Iterable[Segment]) -> bool:
    """Whether no statement altered, moved or dropped any of the tables ``held``, whose rows the state stores.

    ``lives`` are the segments of the lineage of all tables since the state was saved: which table owns the rows that
    were logged under a name (``ddl.lineage``).
    """
    names = (((each.database, each.table), each) for each in lives)
    return all((each.first, each.end, each.owner) == (0, END, name) for name, each in names if name in held)


def newest_rows(layers: DataFrame) -> DataFrame:
    """Selects the newest version of each row in ``layers``, the rows of all layers of a state. The result lacks the
    column ``generation``, by which the layers are ordered.
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
    """Returns SQL that is true if ``column`` is one of the ``values``. The lists in the SQL are short, so that Parquet
    searches for each value.
    """
    lists = (values[at : at + _LISTED] for at in range(0, len(values), _LISTED))
    return " OR ".join(f"{column} IN ({', '.join(map(str, each))})" for each in lists) or "false"


def _newest(found: DataFrame) -> DataFrame:
    return found.where("coalesce(newest = generation, true)").drop("generation", "newest")


# Identifies the topics, renames and filters of a state, and refuses a state of other topics, renames, filters or
# format.

START_OVER = "remove the folder to audit from the beginning, or name another"

_FORMAT = 5  # the format of the folder, independent of the version of cdc
# Maps each older format that can still be read to a function that converts its state.json to the next format.
_UPGRADES: Mapping[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    # Format 4 added records that copy tables. A state of format 3 contains none, so it is valid as it is.
    3: lambda pointer: pointer | {"format": 4},
    # Format 5 added the before image of each row's first change. It stays NULL in rows of earlier audits.
    4: lambda pointer: pointer | {"format": 5},
}


def identity(profiles: Mapping[str, Profile], consumer: Profile | None) -> dict[str, Any]:
    """Collects the format, topics, renames and filters of these profiles. The profiles can use a state only if it was
    saved with equal values.
    """
    found: dict[str, Any] = {"format": _FORMAT}
    for side, profile in profiles.items():
        names = profile.kafka.topics()
        found[f"{side} resource"], found[f"{side} topic"] = profile.mysql_resource_name, profile.kafka.topic
        found[f"{side} layout"] = [names.layout, profile.kafka.prefix]
    found["renames"] = names_in_use(profiles, consumer)
    found["filters of the consumer"] = repr(consumer.filters) if consumer else "unknown"
    return found


def parse_pointer(text: str, identity: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    """Parses ``text``, the content of state.json. Raises UserError if it is damaged, or if the state has another
    ``identity``."""
    try:
        pointer: dict[str, Any] = json.loads(text)
        while pointer["format"] in _UPGRADES:
            pointer = _UPGRADES[pointer["format"]](pointer)
        saved = {key: pointer[key] for key in identity}
        newer = saved.get("format", 0) > identity.get("format", 0)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"cannot read the state: {error!r}", code="CDC-STATE-DAMAGED", where=where, hint=START_OVER
        ) from None
    if newer:
        raise UserError(
            f"the state was saved by a newer version of cdc, in format {saved['format']}",
            code="CDC-STATE-NEWER",
            where=where,
            hint=f"upgrade cdc; or {START_OVER}",
        )
    for key, value in identity.items():
        if saved[key] != value:
            raise UserError(
                f"the state was saved with {key} {saved[key]!r}, now it is {value!r}",
                code="CDC-STATE-OTHER-SETTINGS",
                where=where,
                hint=START_OVER,
            )
    return pointer
