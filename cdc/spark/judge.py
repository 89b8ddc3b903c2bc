"""The verdict: both topics' records, judged stage by stage. Only here and in ``audit`` do the stages meet."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.profile import Profile
from cdc.renames import Renames
from cdc.spark.agreement import Agreement
from cdc.spark.brokers import Span
from cdc.spark.covered import Covered, Held, can_be_resumed
from cdc.spark.definitions import Unmatched, definitions
from cdc.spark.doubts import doubts
from cdc.spark.drift import DriftedRow, compare, discontinuities, drifted_rows, placed, tables, told_of
from cdc.spark.fold import with_era_told_from_the_end
from cdc.spark.folder import PARQUET
from cdc.spark.foreign_times import foreign_times
from cdc.spark.history import History, folds_needed, records_upto
from cdc.spark.integrity import integrity
from cdc.spark.lag import lag
from cdc.spark.lifelines import Act, Name, lifelines, named
from cdc.spark.marks import marks, statements_settled
from cdc.spark.renamed import renames
from cdc.spark.report import Audit, Topic
from cdc.spark.scope import Scope
from cdc.spark.session import set_for
from cdc.spark.skipped import skipped
from cdc.spark.survey import Contents, joined, statements, survey
from cdc.spark.topics import FOLLOWER, LEADER
from cdc.spark.watermark import Watermark, foreign_writes, hole, transactions, watermark
from cdc.topic_tail import partition_name

__all__ = ["judge"]

_LISTED = 100
_ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")


@dataclass(frozen=True, slots=True)
class _Seen:
    """Both topics: what this audit read (``records``, ``new`` transactions), and that together with what was held.

    ``read`` are the contents of the former, ``contents`` of the latter. ``settled`` says which of the leader's
    sequences the follower did without, and how its ledger calls that.
    """

    records: DataFrame
    new: DataFrame
    told: DataFrame
    transactions: DataFrame
    read: Mapping[str, Contents]
    contents: Mapping[str, Contents]
    settled: Mapping[int, str]


def judge(
    spark: SparkSession,
    records: DataFrame,
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    folder: Path,
    *,
    arrivals: DataFrame,
    consumer: Profile | None = None,
    before: Held | None = None,
    keep: Callable[[Covered], None] | None = None,
) -> Audit:
    """Judge ``records`` of both topics (as ``topics.parse`` gives them); the drifted rows go to ``folder``.

    The follower's are under the leader's names; ``arrivals`` says when they were in Kafka. Filters of the profile
    ``consumer`` count. What ``before`` covers is not among the records; where it judged, ``keep`` gets what they add.
    """
    seen, scope = _seen(records, profiles, before), Scope(consumer.filters if consumer else None)
    _set_for(spark, seen.read, before)
    mark, acts = watermark(seen.transactions), statements(seen.told)
    audit = _of_streams(seen, profiles, spans, mark, acts, scope, renames(profiles, consumer), before)
    if audit.reasons or mark.sequence is None:
        return audit
    ends = {LEADER: mark.sequence, FOLLOWER: _last_whole(seen, mark)}
    acts = {side: _upto(acts.get(side, []), ends[side], scope) for side in ends}
    if unclear := list(scope.contradictions(acts[LEADER], seen.settled)):
        return replace(audit, reasons=unclear)
    known = _known(seen, mark, resource=audit.leader.resource)
    names = {side: _wanted(seen.contents.get(side), scope) for side in ends}
    within = records_upto(ends, seen.records, seen.transactions, seen.contents, known[FOLLOWER])
    histories = _histories(within, names, acts, known, before)
    folds, agreed = folds_needed(within, histories, seen.contents, whole=bool(keep or before))
    if keep and folds:
        folds = {side: each.persist(StorageLevel.MEMORY_AND_DISK) for side, each in folds.items()}
    comparison = compare(folds[LEADER], folds[FOLLOWER]) if folds else None
    audit = replace(audit, sequence=mark.sequence, lag=lag(seen.transactions, arrivals, upto=mark.sequence))
    audit = _compared(audit, seen, names, acts, comparison, agreed, scope, renames(profiles, consumer), folder)
    if folds and keep and not audit.reasons and can_be_resumed(seen.new, seen.contents, before, upto=ends[LEADER]):
        keep(_covered(seen, ends, folds, histories, spans, discontinued=any(audit.discontinuities.values())))
    return audit


def _set_for(spark: SparkSession, read: Mapping[str, Contents], before: Held | None) -> None:
    rows = sum(each.rows for each in read.values()) + (before.rows if before else 0)
    set_for(spark, sum(each.records for each in read.values()), rows=rows)


def _compared(
    audit: Audit,
    seen: _Seen,
    names: Mapping[str, frozenset[Name]],
    acts: Mapping[str, list[Act]],
    comparison: DataFrame | None,
    agreed: Agreement | None,
    scope: Scope,
    renames: Renames,
    folder: Path,
) -> Audit:
    """``audit`` with what the rows and the statements of both sides have to say of each other.

    ``comparison`` is of all rows, or of those that are not ``agreed``; None where all are.
    """
    rows = names[LEADER] | names[FOLLOWER]
    resource = audit.leader.resource
    defined = definitions(
        acts[LEADER], acts[FOLLOWER], resource=resource, settled=seen.settled, rows=rows, renames=renames
    )
    lines, breaks = tables(comparison) if comparison else ([], dict.fromkeys(names, 0))
    lines = agreed.with_open(lines) if agreed else lines
    audit = replace(audit, tables=lines, schema_drift=len(defined.drift), schema=defined.drift[:_LISTED])
    named_there = names[FOLLOWER] | named([*acts[FOLLOWER], *acts[LEADER]])
    if silent := scope.silent(
        [each.name for each in lines if (each.missing or each.extra) and each.name not in named_there]
    ):
        return replace(audit, reasons=[silent])
    drifted = sum(line.missing + line.extra + line.different for line in lines)
    audit = replace(audit, drifted_rows=drifted, discontinuities=breaks)
    if comparison is None or not (drifted or any(breaks.values())):
        return audit
    # All is compared once more here, which few audits need: to keep the comparison would cost all of them more.
    told = told_of(comparison).persist(StorageLevel.MEMORY_AND_DISK)
    audit = _with_discontinued(audit, told, seen.told)
    return _with_drift(audit, told, defined.unmatched, rows, folder) if drifted else audit


def _covered(
    seen: _Seen,
    ends: Mapping[str, int],
    folds: Mapping[str, DataFrame],
    histories: Mapping[str, History],
    spans: Mapping[str, Span],
    *,
    discontinued: bool,
) -> Covered:
    kept = {side: with_era_told_from_the_end(folds[side], histories[side].segments()) for side in folds}
    return Covered(ends, seen.contents, kept, seen.new, seen.records, discontinued=discontinued, spans=spans)


def _seen(records: DataFrame, profiles: Mapping[str, Profile], before: Held | None) -> _Seen:
    read = survey(records)
    contents = joined(before.contents, read) if before else read
    ends, resource = {side: held.end for side, held in contents.items()}, profiles[LEADER].mysql_resource_name
    new = transactions(records, resource=resource, ends=ends)
    told = records.unionByName(before.records) if before else records
    noted = FOLLOWER in contents and contents[FOLLOWER].noted
    return _Seen(
        records=records,
        new=new,
        told=told,
        transactions=new.unionByName(before.transactions) if before else new,
        read=read,
        contents=contents,
        settled=statements_settled(told, resource) if noted else {},
    )


def _of_streams(
    seen: _Seen,
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    mark: Watermark,
    acts: Mapping[str, list[Act]],
    scope: Scope,
    renames: Renames,
    before: Held | None,
) -> Audit:
    """What is to be said of the topics by themselves, and why they can't be compared if they can't."""
    resources = {side: profile.mysql_resource_name for side, profile in profiles.items()}
    sound = integrity(
        seen.records,
        seen.new,
        seen.read,
        resources,
        next_ones=before.next if before else None,
        earlier=before.transactions if before else None,
        torn=bool(mark.torn),
    )
    lost = None if mark.begins is None else hole(seen.transactions, begins=mark.begins)
    limits = {side: span.limit for side, span in spans.items()}
    reasons = doubts(
        profiles, seen.contents, mark, sound, scope=scope, renames=renames, acts=acts, lost=lost, limits=limits
    )
    return Audit(
        audited_at=datetime.now(UTC).isoformat(timespec="seconds"),
        leader=_topic(profiles[LEADER], spans[LEADER], seen.contents.get(LEADER)),
        follower=_topic(profiles[FOLLOWER], spans[FOLLOWER], seen.contents.get(FOLLOWER)),
        reasons=reasons,
        foreign_writes=mark.foreign,
        foreign=foreign_writes(seen.transactions, limit=_LISTED) if mark.foreign else [],
        foreign_over_time=_foreign_times(seen.transactions, seen.contents) if mark.foreign else [],
        skipped=skipped(seen.told, resource=resources[LEADER], limit=_LISTED)
        if "skipped" in seen.settled.values()
        else [],
        breaks=sound.examples,
    )


def _last_whole(seen: _Seen, mark: Watermark) -> int:
    return seen.contents[FOLLOWER].end if mark.open_from is None else mark.open_from - 1


def _known(seen: _Seen, mark: Watermark, *, resource: str) -> Mapping[str, DataFrame | None]:
    # Most audits have none of them, and then nothing needs to be joined.
    noted = seen.contents[FOLLOWER].conflicts or "skipped" in seen.settled.values()
    return marks(seen.told, seen.transactions, resource=resource, noted=noted, foreign=bool(mark.foreign))


def _wanted(contents: Contents | None, scope: Scope) -> frozenset[Name]:
    return frozenset(name for name in contents.tables if scope.wants_table(*name)) if contents else frozenset()


def _topic(profile: Profile, span: Span, contents: Contents | None) -> Topic:
    return Topic(
        resource=profile.mysql_resource_name,
        topic=profile.kafka.topic,
        records=contents.records if contents else 0,
        first=contents.first if contents else None,
        last=contents.last if contents else None,
        first_us=contents.first_us if contents else None,
        last_us=contents.last_us if contents else None,
        offsets={partition_name(place): ends for place, ends in span.partitions.items()},
    )


def _foreign_times(transactions: DataFrame, contents: Mapping[str, Contents]) -> list[tuple[int, int, int]]:
    first_us, last_us = contents[FOLLOWER].first_us, contents[FOLLOWER].last_us
    assert first_us is not None and last_us is not None  # there are foreign writes
    return foreign_times(transactions, first_us=first_us, last_us=last_us)


def _upto(acts: Iterable[Act], end: int, scope: Scope) -> list[Act]:
    return [act for act in acts if act.sequence <= end and scope.wants(act)]


def _histories(
    records: DataFrame,
    names: Mapping[str, frozenset[Name]],
    acts: Mapping[str, Sequence[Act]],
    known: Mapping[str, DataFrame | None],
    before: Held | None,
) -> dict[str, History]:
    """Both sides', with the lifelines of all tables that there are or were; others' rows are left out."""
    return {
        side: History(
            records=records.where(F.col("side") == side),
            lives=lifelines(
                names[side] | named(of_side),
                [act for act in of_side if not before or act.sequence >= before.next[side]],
            ),
            marks=known[side],
            held=before.folds[side] if before else None,
        )
        for side, of_side in acts.items()
    }


def _with_discontinued(audit: Audit, comparison: DataFrame, records: DataFrame) -> Audit:
    sides = [side for side, count in audit.discontinuities.items() if count]
    found = discontinuities(comparison, sides, limit=_LISTED)
    return replace(audit, discontinued=placed(records, found))


def _with_drift(
    audit: Audit,
    comparison: DataFrame,
    statements: Sequence[Unmatched],
    names: frozenset[Name],
    folder: Path,
) -> Audit:
    drifted = drifted_rows(comparison, statements, names)
    drifted.write.parquet((folder / PARQUET).resolve().as_uri())
    first = drifted.orderBy(*_ORDER).limit(_LISTED).collect()
    causes: dict[str, int] = dict(drifted.groupBy("cause").agg(F.sum("rows")).collect())
    listed = [DriftedRow(**row.asDict(recursive=True)) for row in first]
    return replace(audit, drifted_by_cause=causes, drifted=listed)
