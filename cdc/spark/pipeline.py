"""The verdict: both topics' records, judged stage by stage. Only here and in ``audit`` do the stages meet."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.spark.compare.row_drift import JOINED, DriftedRow, Tally, discontinuities, drifted_rows, placed, tally, told_of
from cdc.spark.comparison import (
    Comparison,
    History,
    compared_as_needed,
    compared_where_touched,
    compared_whole,
    records_upto,
)
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.renaming import own_schema, renames
from cdc.spark.input.spans import Span
from cdc.spark.inspection import LISTED, Seen, of_streams, seen_in
from cdc.spark.job.session import set_for
from cdc.spark.lag.summary import lag
from cdc.spark.lag.transit import Transit, transit
from cdc.spark.report.files import PARQUET
from cdc.spark.report.outcome import Audit
from cdc.spark.schema.definitions import SchemaDrift, Unmatched, definitions
from cdc.spark.schema.lineage import Act, Name, lifelines, named
from cdc.spark.schema.scope import Scope
from cdc.spark.state.coverage import Covered, Held, can_be_resumed
from cdc.spark.state.layers import few_touched, stay
from cdc.spark.state.parquet_check import write
from cdc.spark.streams.consumer_notes import marks
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.left_out import left_out

__all__ = ["judge"]

_ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")


def judge(
    records: DataFrame,
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    folder: Path,
    *,
    arrivals: DataFrame,
    consumer: Profile | None = None,
    before: Held | None = None,
    keep: Callable[[Covered | None], None] | None = None,
) -> Audit:
    """Judge ``records`` of both topics (as ``topics.parse`` gives them); the drifted rows go to ``folder``.

    The follower's are under the leader's names; ``arrivals`` says when they were in Kafka. Filters of the profile
    ``consumer`` count. What ``before`` covers is not among the records; where it judged, ``keep`` gets what
    they add, None where the next audit can't go on from there.
    """
    seen, scope = seen_in(records, profiles, before), _scope(profiles, consumer)
    renamed = renames(profiles, consumer)
    audit = of_streams(seen, profiles, spans, scope, renamed, before)
    if audit.reasons or seen.mark.sequence is None:
        return audit
    ends = {LEADER: seen.mark.sequence, FOLLOWER: seen.last_whole}
    acts = {side: _upto(seen.acts.get(side, []), ends[side], scope) for side in ends}
    if unclear := list(scope.contradictions(acts[LEADER], seen.settled)):
        return replace(audit, reasons=unclear)
    known = _known(seen, resource=audit.leader.resource)
    names = {side: _wanted(seen.contents.get(side), scope) for side in ends}
    within = records_upto(ends, seen.records, seen.new, seen.contents, known[FOLLOWER])
    histories = _histories(within, names, acts, known, before)
    comparison = _comparison(within, seen, histories, before, kept=keep is not None)
    counted, told = _counted(comparison)
    took = _transit(seen, arrivals, before, kept=keep is not None)
    audit = replace(audit, sequence=seen.mark.sequence, waiting_us=_waiting(seen), lag=lag(took) if took else None)
    audit = _compared(audit, seen, names, acts, counted, told, scope, renamed, folder)
    if keep and not audit.reasons:
        resumable = can_be_resumed(seen.new, before, upto=ends[LEADER])
        keep(_covered(seen, ends, comparison, counted, told, took, arrivals, spans) if resumable else None)
    return audit


def _comparison(
    records: DataFrame, seen: Seen, histories: Mapping[str, History], before: Held | None, *, kept: bool
) -> Comparison:
    """The rows to be compared; those for a state are looked into more than once."""
    if not kept and not before:
        return compared_as_needed(records, histories, seen.contents)
    lives = [each for history in histories.values() for each in history.lives]
    few = before and few_touched(before, seen.rows) and stay({line.name for line in before.tally.lines}, lives)
    if before:
        # Both sides' of each row that is looked up, or of all.
        held = 2 * (before.opened + seen.rows if few else before.rows + before.above)
        set_for(records.sparkSession, sum(each.records for each in seen.read.values()), rows=seen.rows + held)
    rows, rest = compared_where_touched(histories, before) if before and few else compared_whole(histories, before)
    return Comparison(rows.persist(StorageLevel.MEMORY_AND_DISK), rest, touched=bool(few))


def _counted(comparison: Comparison) -> tuple[Tally, DataFrame | None]:
    """The tally of all rows, and those of which there is more to tell, None where there are none."""
    if comparison.rows is None:
        return comparison.rest.plus(Tally()), None
    counted = comparison.rest.plus(tally(comparison.rows))
    if not counted.drifted and not any(counted.breaks.values()):
        return counted, None
    # Without a state all is compared once more here, which few audits need: to keep it would cost all of them more.
    return counted, told_of(comparison.rows).persist(StorageLevel.MEMORY_AND_DISK)


def _transit(seen: Seen, arrivals: DataFrame, before: Held | None, *, kept: bool) -> Transit | None:
    assert seen.mark.sequence is not None  # else there is no verdict
    after, held = (before.next[LEADER] - 1, before.transit) if before else (-1, None)
    found = transit(seen.new, arrivals, after=after, upto=seen.mark.sequence, before=held)
    return replace(found, bins=found.bins.persist(StorageLevel.MEMORY_AND_DISK)) if found and kept else found


def _waiting(seen: Seen) -> int | None:
    """When the oldest of the leader's records that the follower has not applied was committed; None without any."""
    mark, leader = seen.mark.sequence, seen.contents.get(LEADER)
    assert mark is not None  # else there is no verdict
    if leader is None or leader.end <= mark:
        return None
    waiting = seen.records.where(f"side = '{LEADER}' AND valid AND sequence > {mark}").agg(F.min("ts_us")).first()
    return waiting[0] if waiting else None


def _covered(
    seen: Seen,
    ends: Mapping[str, int],
    comparison: Comparison,
    counted: Tally,
    told: DataFrame | None,
    took: Transit | None,
    arrivals: DataFrame,
    spans: Mapping[str, Span],
) -> Covered:
    assert comparison.rows is not None  # for a state they are compared
    return Covered(
        ends=ends,
        contents=seen.contents,
        rows=comparison.rows.select(*JOINED),
        touched=comparison.touched,
        open=told.select("hash") if told else None,
        tally=counted,
        mark=seen.mark,
        transit=took,
        transactions=seen.new,
        records=seen.records,
        arrivals=arrivals,
        spans=spans,
    )


def _compared(
    audit: Audit,
    seen: Seen,
    names: Mapping[str, frozenset[Name]],
    acts: Mapping[str, list[Act]],
    counted: Tally,
    told: DataFrame | None,
    scope: Scope,
    renames: Renames,
    folder: Path,
) -> Audit:
    """``audit`` with what the rows and the statements of both sides have to say of each other.

    ``counted`` is of all rows, and ``told`` has those of which there is more to tell.
    """
    rows = names[LEADER] | names[FOLLOWER]
    resource = audit.leader.resource
    defined = definitions(
        acts[LEADER], acts[FOLLOWER], resource=resource, settled=seen.settled, rows=rows, renames=renames
    )
    differ = [*_left_out(seen, scope), *defined.drift]
    audit = replace(audit, tables=list(counted.lines), schema_drift=len(differ), schema=differ[:LISTED])
    named_there = names[FOLLOWER] | named([*acts[FOLLOWER], *acts[LEADER]])
    if silent := scope.silent(
        [each.name for each in counted.lines if (each.missing or each.extra) and each.name not in named_there]
    ):
        return replace(audit, reasons=[silent])
    audit = replace(audit, drifted_rows=counted.drifted, discontinuities=dict(counted.breaks))
    if told is None:
        return audit
    audit = _with_discontinued(audit, told, seen.told)
    return _with_drift(audit, told, defined.unmatched, rows, seen.transactions, folder) if counted.drifted else audit


def _left_out(seen: Seen, scope: Scope) -> Iterator[SchemaDrift]:
    """What may differ since an event was left out: with nothing of it in either topic, the rows can't tell."""
    assert seen.mark.sequence is not None  # else there is no verdict
    for side, end in ((LEADER, seen.mark.sequence), (FOLLOWER, seen.last_whole)):
        skips = [act for act in seen.left_out.get(side, []) if act.sequence <= end and scope.may_want(act)]
        yield from left_out(skips, _upto(seen.acts.get(side, []), end, scope), side=side)


def _known(seen: Seen, *, resource: str) -> Mapping[str, DataFrame | None]:
    # Most audits have none of them, and then nothing needs to be joined.
    noted = seen.contents[FOLLOWER].conflicts or "skipped" in seen.settled.values()
    return marks(seen.told, seen.new, resource=resource, noted=noted, foreign=bool(seen.mark.foreign))


def _scope(profiles: Mapping[str, Profile], consumer: Profile | None) -> Scope:
    return Scope(consumer.filters if consumer else None, own_schema(profiles, consumer))


def _wanted(contents: Contents | None, scope: Scope) -> frozenset[Name]:
    return frozenset(name for name in contents.tables if scope.wants_table(*name)) if contents else frozenset()


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
        )
        for side, of_side in acts.items()
    }


def _with_discontinued(audit: Audit, comparison: DataFrame, records: DataFrame) -> Audit:
    sides = [side for side, count in audit.discontinuities.items() if count]
    found = discontinuities(comparison, sides, limit=LISTED)
    return replace(audit, discontinued=placed(records, found))


def _with_drift(
    audit: Audit,
    comparison: DataFrame,
    statements: Sequence[Unmatched],
    names: frozenset[Name],
    transactions: DataFrame,
    folder: Path,
) -> Audit:
    drifted = drifted_rows(comparison, statements, names, transactions)
    write(drifted, (folder / PARQUET).absolute(), option="option --report")
    first = drifted.orderBy(*_ORDER).limit(LISTED).collect()
    causes: dict[str, int] = dict(drifted.groupBy("cause").agg(F.sum("rows")).collect())
    listed = [DriftedRow(**row.asDict(recursive=True)) for row in first]
    return replace(audit, drifted_by_cause=causes, drifted=listed)
