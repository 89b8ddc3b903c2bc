"""Builds the sections of the audit's outcome (``report.outcome.Audit.of``) from the results of the stages. Also finds
out which of the drifted rows ``--accept FILE`` accepts.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from cdc.config.profile import Profile
from cdc.model.position import partition_name
from cdc.service.private_files import write_lines
from cdc.spark.compare.row_drift import (
    Discontinuity,
    DriftedRow,
    discontinuities,
    drifted_rows,
    key_lines,
    sampled,
    with_last_changes,
    with_offsets,
)
from cdc.spark.compare.tally import Table, Tally
from cdc.spark.comparison import Comparison, Extent
from cdc.spark.ddl.accepted_drift import ROWS, Entry, first_entry
from cdc.spark.ddl.definitions import (
    Definitions,
    SchemaDrift,
    Unmatched,
    definitions,
    emptied_drift,
    skipped_event_drift,
)
from cdc.spark.ddl.lineage import Name, named_tables
from cdc.spark.ddl.scope import NOT_REPLICATED, Scope
from cdc.spark.ddl.table_copies import UnderCopy, under_copy
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.small_data import Query, beside, cached, local_frame, named, run_batched
from cdc.spark.input.spans import Span, newest_entry_us
from cdc.spark.inspection import Streams
from cdc.spark.lag import Lag, Transit, lag, transit
from cdc.spark.report.files import FOREIGN, KEYS, PARQUET
from cdc.spark.report.outcome import AcceptedDrift, Audit, NotReplicated, Topic
from cdc.spark.report.phrases import object_name
from cdc.spark.report.row_files import write_rows
from cdc.spark.streams.consumer_notes import (
    ForeignWrite,
    Skip,
    all_foreign_writes,
    foreign_times,
    foreign_writes,
    skipped_records,
)
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.integrity import Break, Integrity
from cdc.spark.topics import Replication, Topics

__all__ = [
    "AcceptedFindings",
    "AcceptedRows",
    "Progress",
    "RowFindings",
    "SchemaFindings",
    "StreamFindings",
    "compared_definitions",
    "not_replicated",
    "progress",
    "row_findings",
    "schema_findings",
    "stream_findings",
    "tables_unknown_to_follower",
    "with_entries",
    "with_signs_of_life",
]

_LISTED = 100  # maximum number of entries of each list in the report
_MOST_KEYS = 100_000  # maximum number of keys listed for cdc-repair; it requests all rows of tables without listed keys

AcceptedRows = Mapping[int, Mapping[Name, Mapping[str, int]]]
"""Maps the number of an entry (or NOT_REPLICATED) and a table to the number of accepted rows of each kind."""


@dataclass(frozen=True, slots=True)
class RowFindings:
    """The section of a report on rows that differ."""

    tables: list[Table]
    drifted_rows: int = 0
    drifted_by_cause: dict[str, int] = field(default_factory=dict)
    drifted: list[DriftedRow] = field(default_factory=list)
    discontinuities: dict[str, int] = field(default_factory=dict)
    discontinued: list[Discontinuity] = field(default_factory=list)

    def with_older(self, tables: Collection[Name]) -> Self:
        """Marks ``tables`` as tables that may have rows older than the topics."""
        return replace(self, tables=[replace(each, older=each.name in tables) for each in self.tables])


@dataclass(frozen=True, slots=True)
class AcceptedFindings:
    """The section of a report on drift that ``--accept`` accepts."""

    accepted: list[AcceptedDrift]
    not_replicated: list[NotReplicated]

    @classmethod
    def of(
        cls,
        entries: Sequence[Entry],
        in_force: Sequence[Entry],
        objects: Sequence[tuple[int, SchemaDrift]],
        rows: AcceptedRows,
    ) -> Self:
        """Builds the section on the drift that the ``entries`` accept. It lists entries that are not ``in_force`` as
        expired.
        """
        names = {(each.database, each.name): 0 for number, each in objects
                 if number == NOT_REPLICATED and each.kind == "Table" and each.name is not None}  # fmt: skip
        names |= {name: sum(kinds.values()) for name, kinds in rows.get(NOT_REPLICATED, {}).items()}
        left_out = [NotReplicated(*name, count) for name, count in sorted(names.items())]
        return cls(_accepted(entries, in_force, objects, rows), left_out)


def _accepted(
    entries: Sequence[Entry], in_force: Sequence[Entry], objects: Sequence[tuple[int, SchemaDrift]], rows: AcceptedRows
) -> list[AcceptedDrift]:
    return [
        AcceptedDrift(
            number=each.number,
            what=list(each.what),
            name=each.name,
            reason=each.reason,
            until=each.until.isoformat() if each.until else None,
            expired=each not in in_force,
            rows={".".join(name): sum(kinds.values()) for name, kinds in rows.get(each.number, {}).items()},
            objects=[object_name(drift) for number, drift in objects if number == each.number],
        )
        for each in entries
    ]


def row_findings(
    comparison: Comparison,
    streams: Streams,
    within: Extent,
    unmatched: Sequence[Unmatched],
    folder: Path,
    entries: Sequence[Entry],
) -> tuple[RowFindings, AcceptedRows]:
    """Returns the section on the rows of ``comparison``, and the numbers of accepted rows.

    All rows that differ are written to ``folder``. ``unmatched`` are the statements that only one side ran, which
    explain some of these rows. Rows that one of the ``entries`` accepts are not counted as drifted.
    """
    counted, listed = comparison.tally, comparison.listed
    found = RowFindings(list(counted.lines), counted.drifted, discontinuities=dict(counted.breaks))
    if listed is None:
        return found, {}
    sides = [side for side, count in counted.breaks.items() if count]
    broken = with_offsets(streams.records, discontinuities(listed, sides, limit=_LISTED))
    found = replace(found, discontinued=broken)
    if not counted.drifted:
        return found, {}
    drifted = drifted_rows(listed, unmatched, within.all_tables, streams.transactions)
    drifted = with_entries(drifted, counted.lines, entries)
    written = write_rows(drifted, folder, PARQUET)
    causes, samples, accepted = run_batched(*_queries(drifted, sum(line.drifted > 0 for line in counted.lines)))
    left_out = accepted.get(NOT_REPLICATED, {})
    tables = [_without(line, accepted) for line in counted.lines if line.name not in left_out]
    found = replace(
        found,
        tables=tables,
        drifted_rows=sum(line.drifted for line in tables),
        drifted_by_cause=causes,
        drifted=with_last_changes(streams.records, streams.transactions, samples),
    )
    if found.drifted_rows:
        write_lines(folder / KEYS, _keys(found, written))
    return found, accepted


def _queries(drifted: DataFrame, tables: int) -> list[Query[Any]]:
    """Builds three queries for the rows in ``drifted``: the number of rows by cause and samples of rows, both without
    accepted rows, and the number of accepted rows by entry, table and kind.
    """
    others = drifted.where("accepted IS NULL").drop("accepted")
    by_entry = drifted.where("accepted IS NOT NULL").groupBy(*named("accepted", "database", "table", "kind"))
    return [
        Query(
            others.groupBy(*named("cause")).agg(F.sum("rows").alias("rows")),
            lambda counts: {row["cause"]: row["rows"] for row in counts},
        ),
        Query(sampled(others, tables, most=_LISTED), lambda rows: sorted(_drifted(rows), key=_place)),
        Query(by_entry.agg(F.sum("rows").alias("rows")), _by_entry),
    ]


def _by_entry(counts: Iterable[Row]) -> AcceptedRows:
    found: dict[int, dict[Name, dict[str, int]]] = {}
    for row in sorted(counts, key=lambda row: (row["accepted"], row["database"], row["table"], row["kind"])):
        of_entry = found.setdefault(row["accepted"], {})
        of_entry.setdefault((row["database"], row["table"]), {})[row["kind"]] = row["rows"]
    return found


def _without(line: Table, accepted: AcceptedRows) -> Table:
    """Subtracts accepted rows from a table's numbers of drifted rows."""
    for number, by_table in accepted.items():
        kinds = by_table.get(line.name, {})
        more = 0 if number == NOT_REPLICATED else sum(kinds.values())
        line = replace(line, **{kind: getattr(line, kind) - rows for kind, rows in kinds.items()},
                       accepted=line.accepted + more)  # fmt: skip
    return line


def _keys(found: RowFindings, written: DataFrame) -> Iterator[str]:
    """Yields the keys of the drifted rows that are not accepted, as JSON lines."""
    if found.drifted_rows <= _LISTED:
        for row in found.drifted:
            known = {"database": row.database, "table": row.table, "keyed": row.keyed, "identity": row.identity}
            yield json.dumps(known, ensure_ascii=False)
    else:
        yield from key_lines(written.where("accepted IS NULL"), found.tables, most=_MOST_KEYS)


def _drifted(rows: Iterable[Row]) -> list[DriftedRow]:
    return [DriftedRow(**row.asDict(recursive=True)) for row in rows]


def _place(row: DriftedRow) -> tuple[Any, ...]:
    """Returns the sort key of a row, in the order of ``row_drift.ORDER``, NULLs first."""
    lasts = (each["sequence"] if each else -1 for each in (row.leader_last, row.follower_last))
    return row.database, row.table, row.kind, *lasts, row.rows


@dataclass(frozen=True, slots=True)
class StreamFindings:
    """The section of a report on each stream by itself, without a comparison of the streams."""

    audited_at: str
    leader: Topic
    follower: Topic
    foreign_writes: int
    foreign: list[ForeignWrite]
    foreign_over_time: list[tuple[int, int, int]]
    skipped: list[Skip]
    breaks: list[Break]
    copy: str | None


@dataclass(frozen=True, slots=True)
class Progress:
    """The section of a report on the follower's position, and on how long the leader's transactions took to reach the
    follower.
    """

    sequence: int
    waiting_us: int | None
    lag: Lag | None


@dataclass(frozen=True, slots=True)
class SchemaFindings:
    """The section of a report on objects that both sides define differently, and on tables that can't be compared.
    ``captured_at`` is the leader's sequence that the follower had reached when its capture began, if that was late.
    """

    schema_drift: int
    schema: list[SchemaDrift]
    under_copy: list[UnderCopy] = field(default_factory=list)
    captured_at: int | None = None


def stream_findings(
    streams: Streams, integrity: Integrity, topics: Topics, replication: Replication, folder: Path
) -> StreamFindings:
    """Builds the section on each of ``streams`` by itself, with the present time as ``audited_at``. Writes all foreign
    writes (errant transactions) to ``folder``.
    """
    profiles = replication.profiles
    foreign, over_time, skipped = _listed(streams, replication)
    if streams.watermark.foreign:
        write_rows(all_foreign_writes(streams.transactions), folder, FOREIGN)
    return StreamFindings(
        audited_at=datetime.now(UTC).isoformat(timespec="seconds"),
        leader=_topic(profiles[LEADER], topics.spans[LEADER], streams.contents.get(LEADER)),
        follower=_topic(profiles[FOLLOWER], topics.spans[FOLLOWER], streams.contents.get(FOLLOWER)),
        foreign_writes=streams.watermark.foreign,
        foreign=foreign,
        foreign_over_time=over_time,
        skipped=skipped,
        breaks=integrity.examples,
        copy=str(streams.base_copy.held) if streams.base_copy else None,
    )


def progress(streams: Streams, topics: Topics, *, for_state: bool) -> tuple[Progress, Transit | None]:
    """Builds the section on the follower's position, and computes the transit times of the leader's transactions that
    the follower has applied.

    The transit times are None without transactions. If ``for_state`` is true, they are cached, since the state stores
    them, too.
    """
    assert streams.watermark.sequence is not None  # without a watermark, ``judge`` has returned already
    times = _transit_times(streams, topics, upto=streams.watermark.sequence)
    if times and for_state:
        times = replace(times, bins=cached(times.bins))
    return Progress(streams.watermark.sequence, _waiting(streams), lag(times) if times else None), times


def _transit_times(streams: Streams, topics: Topics, *, upto: int) -> Transit | None:
    after, before = (topics.held.next[LEADER] - 1, topics.held.transit) if topics.held else (-1, None)
    return transit(
        streams.new_transactions, topics.arrivals, after=after, upto=upto, before=before, known=streams.committed
    )


def compared_definitions(streams: Streams, within: Extent, replication: Replication) -> Definitions:
    """Determines the objects that the statements of both sides define differently, the tables that one side alone has
    emptied, and the statements that only one side ran.
    """
    leader, follower = within.acts[LEADER], within.acts[FOLLOWER]
    if within.late:
        leader, follower = within.late.compared(leader, follower, streams.sequences)
    defined = definitions(
        leader,
        follower,
        sequences=streams.sequences,
        not_run=streams.not_run,
        rows=within.all_tables,
        renames=replication.renames,
    )
    acts = {side: [*those, *within.all_copy_ends[side]] for side, those in within.acts.items()}
    return replace(defined, drift=[*defined.drift, *emptied_drift(defined.unmatched, acts)])


def not_replicated(within: Extent, defined: Definitions) -> list[Entry]:
    """Returns entries for those tables and drifted objects of the follower that the filters of the leader's producer
    leave out.
    """
    return within.left_out.entries(within.tables[FOLLOWER], defined.drift)


def schema_findings(
    defined: Definitions, streams: Streams, within: Extent, scope: Scope, entries: Sequence[Entry]
) -> tuple[SchemaFindings, list[tuple[int, SchemaDrift]]]:
    """Builds the section on objects that both sides define differently, according to ``defined``, and on objects that
    may have changed in an event that a producer skipped.

    The section does not contain drift that one of the ``entries`` of ``--accept`` accepts. Accepted drift is returned
    as the second value, with the number of the entry.
    """
    drift = [*_drift_of_skipped_events(streams, within, scope), *defined.drift]
    # A parked table lacks the leader's statements, too; like its rows, its definition is not compared.
    waiting = {name for name, copy in within.copies.items() if copy.parked}
    found = [(each, first_entry(each, entries)) for each in drift if (each.database, each.name) not in waiting]
    drift = [each for each, entry in found if entry is None]
    accepted = [(entry, each) for each, entry in found if entry is not None]
    waiting_tables = under_copy(within.copies, within.late_tables.unjudged)
    captured_at = within.late.begins if within.late else None
    return SchemaFindings(len(drift), drift[:_LISTED], waiting_tables, captured_at), accepted


def tables_unknown_to_follower(counted: Tally, within: Extent) -> list[Name]:
    """Lists the tables with missing or extra rows that no statement of either side names, and of which the follower's
    topic contains no rows.
    """
    known = within.tables[FOLLOWER] | named_tables([*within.acts[FOLLOWER], *within.acts[LEADER]])
    return [each.name for each in counted.lines if (each.missing or each.extra) and each.name not in known]


def with_signs_of_life(audit: Audit, profiles: Mapping[str, Profile], max_age: float | None) -> Audit:
    """Adds the time of each commit log's newest entry to ``audit``.

    The verdict becomes "could not judge" if one of these entries is more than ``max_age`` seconds old.
    """
    newest = {side: newest_entry_us(each.kafka, resource=each.mysql_resource_name) for side, each in profiles.items()}
    leader, follower = (replace(getattr(audit, side), newest_us=us) for side, us in newest.items())
    dated = replace(audit, leader=leader, follower=follower)
    return dated if max_age is None else dated.no_older_than(max_age)


def _topic(profile: Profile, span: Span, contents: Contents | None) -> Topic:
    return Topic(
        resource=profile.mysql_resource_name,
        topic=profile.kafka.topic,
        records=contents.records if contents else 0,
        first=contents.first if contents else None,
        last=contents.last if contents else None,
        first_us=contents.first_us if contents else None,
        last_us=contents.last_us if contents else None,
        offsets={partition_name(partition): ends for partition, ends in span.partitions.items()},
    )


def _listed(
    streams: Streams, replication: Replication
) -> tuple[list[ForeignWrite], list[tuple[int, int, int]], list[Skip]]:
    """Lists foreign writes, their counts over time, and skipped records; in most audits all three are empty."""
    queries: dict[str, Query[Any]] = {}
    follower = streams.contents.get(FOLLOWER)
    if streams.watermark.foreign and follower and follower.first_us is not None and follower.last_us is not None:
        first_us, last_us = follower.first_us, follower.last_us
        queries["foreign"] = foreign_writes(streams.transactions, limit=_LISTED)
        queries["times"] = foreign_times(streams.transactions, first_us=first_us, last_us=last_us)
    if "skipped" in streams.not_run.values():
        queries["skipped"] = skipped_records(streams.records, resource=replication.resource, limit=_LISTED)
    results = dict(zip(queries, run_batched(*queries.values()), strict=True))
    return results.get("foreign", []), results.get("times", []), results.get("skipped", [])


def _waiting(streams: Streams) -> int | None:
    """Returns the commit time, in µs since 1970, of the oldest leader record that the follower has not applied; None if
    the follower has applied all records.
    """
    sequence, leader = streams.watermark.sequence, streams.contents.get(LEADER)
    if sequence is None or leader is None or leader.end <= sequence:
        return None
    waiting = streams.new_records.where(f"side = '{LEADER}' AND valid AND sequence > {sequence}")
    oldest = waiting.agg(F.min("ts_us")).first()
    return oldest[0] if oldest else None


def _drift_of_skipped_events(streams: Streams, within: Extent, scope: Scope) -> Iterator[SchemaDrift]:
    """Yields the objects that skipped events may have changed. Neither topic contains the changes of a skipped event,
    so comparing rows can't find them.
    """
    for side, end in within.ends.items():
        skips = [act for act in streams.skipped_events.get(side, []) if act.sequence <= end and scope.may_want(act)]
        yield from skipped_event_drift(skips, [*within.acts[side], *within.all_copy_ends[side]], side=side)


# Finds the drifted rows that an entry of ``--accept FILE`` accepts.

_END, _IS = "\x1e", "\x1f"  # the separators between the columns of a key, and between a column and its value
# Users write the values of a key in the file of ``--accept``: values with these tags as plain text, all other values as
# JSON, as they are in drift.keys.jsonl.
_TAGS = ("String", "Enum", "SignedInteger", "UnsignedInteger", "Decimal", "Year", "Bit")
_PLAIN = "coalesce(" + "".join(f"get_json_object(e.value, '$.{tag}'), " for tag in _TAGS) + "e.value)"
_KEY = f"array_join(transform(array_sort(map_entries(identity)), e -> concat(e.key, '{_IS}', {_PLAIN})), '{_END}')"


def with_entries(drifted: DataFrame, tables: Sequence[Table], entries: Sequence[Entry]) -> DataFrame:
    """Adds a column ``accepted`` to ``drifted_rows``: the number of the first entry that accepts the row, or NULL.

    ``tables`` contains the counts of these rows.
    """
    of_rows = [each for each in entries if ROWS in each.what]
    named = [
        {"database": table.database, "table": table.table, "naming": places}
        for table in tables
        if table.drifted and (places := [at for at, each in enumerate(of_rows) if each.names(*table.name)])
    ]
    if not named:
        return drifted.withColumn("accepted", F.lit(None).cast("int"))
    naming = local_frame(drifted.sparkSession, named, "database STRING, table STRING, naming ARRAY<INT>")
    numbers = F.array(*(F.lit(each.number) for each in of_rows))
    found = drifted.join(beside(naming), ["database", "table"], "left").withColumns({
        "hold": F.array(*map(_holds, of_rows)), "numbers": numbers,
    })  # fmt: skip
    first = "get(numbers, try_element_at(filter(naming, n -> get(hold, n)), 1))"
    return found.withColumn("accepted", F.expr(first)).select(*drifted.columns, "accepted")


def _holds(entry: Entry) -> Column:
    """Whether the conditions of an entry hold for a row of a table that the entry names."""
    found = F.lit(True)
    if entry.kinds is not None:
        found &= F.col("kind").isin(*entry.kinds)
    if entry.columns is not None:
        found &= F.expr("kind = 'different'")
        found &= F.size(F.array_except("columns", F.array(*map(F.lit, entry.columns)))) == 0
    if entry.keys is not None:
        found &= F.col("keyed") & F.expr(_KEY).isin(*map(_text, entry.keys))
    return F.coalesce(found, F.lit(False))


def _text(key: Mapping[str, str]) -> str:
    return _END.join(f"{name}{_IS}{key[name]}" for name in sorted(key))
