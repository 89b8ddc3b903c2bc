"""The audit, as spark-submit runs it: is the follower the leader, at the sequence it says it is at?

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:<version of pyspark> cdc/spark/audit.py \
        --leader producer_profile.toml --follower follower_profile.toml --report DIR

``cdc`` must be installed for the Python that runs it. Exit status: 0 no drift, 1 drift, 2 could not judge. Foreign
writes that left no drift are told, and leave it 0.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import get_terminal_size

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from cdc.profile import Profile
from cdc.service import exit_status
from cdc.spark.arrivals import read_arrivals
from cdc.spark.brokers import Span, kafka_options, span, topic_ids
from cdc.spark.cascades import without_cascades
from cdc.spark.covered import Covered, Held, can_be_resumed
from cdc.spark.definitions import Unmatched, definitions
from cdc.spark.doubts import doubts
from cdc.spark.drift import DriftedRow, compare, discontinuities, drifted_rows, placed, tables
from cdc.spark.fold import carried, changes, fold, segments, with_era_told_from_the_end
from cdc.spark.folder import HTML, PARQUET, clear, staged
from cdc.spark.foreign_times import foreign_times
from cdc.spark.integrity import integrity
from cdc.spark.lag import lag
from cdc.spark.lifelines import Act, lifelines, named
from cdc.spark.marks import marks, statements_settled
from cdc.spark.options import consumer_of, parsed, profiles_of
from cdc.spark.page import page
from cdc.spark.renamed import renames, under_leaders_names
from cdc.spark.report import Audit, Topic, write
from cdc.spark.scope import Scope
from cdc.spark.session import session, set_for
from cdc.spark.skipped import skipped
from cdc.spark.state import State, identity
from cdc.spark.survey import Contents, joined, statements, survey
from cdc.spark.terminal import terminal
from cdc.spark.topics import FOLLOWER, LEADER, parse, read, within
from cdc.spark.watch import watched
from cdc.spark.watermark import foreign_writes, hole, transactions, watermark
from cdc.topic_tail import partition_name

__all__ = ["judge", "main"]

_LISTED = 100
_ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the audit and give its exit status."""
    options = parsed("audit.py", argv)
    try:
        return exit_status(lambda: _run(options), program="cdc-audit")
    except Exception as error:  # noqa: BLE001 - whatever fails here is no verdict, and 1 would read as drift
        print(f"cdc-audit: Spark failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    profiles, consumer = dict(zip((LEADER, FOLLOWER), profiles_of(options), strict=True)), consumer_of(options)
    clear(options.report)
    spark = session()
    state = State.open(spark, options.state, identity(profiles, consumer)) if options.state else None

    def audited() -> Audit:
        return audit_topics(spark, profiles, consumer, options.report, state)

    if options.watch is None:
        audit = audited()
        print("\n".join(terminal(audit, width=get_terminal_size((0, 0)).columns)))
        print(f"report: {(options.report / HTML).resolve()}")
        status = audit.exit_status
    else:
        status = watched(
            audited, interval=options.watch, listen=options.metrics, cancel=spark.sparkContext.cancelAllJobs
        )
    if state:
        state.close()
    spark.stop()
    return status


def audit_topics(
    spark: SparkSession,
    profiles: Mapping[str, Profile],
    consumer: Profile | None,
    folder: Path,
    state: State | None = None,
) -> Audit:
    """Judge both topics as they are now, on from ``state`` where there is one, and write the report to ``folder``."""
    # The follower's end first: all it has by then came from the leader's topic, so the end taken later covers it.
    spans = {side: span(profiles[side].kafka) for side in (FOLLOWER, LEADER)}
    ids = {name: id_ for side in spans for name, id_ in topic_ids(profiles[side].kafka, spans[side]).items()}
    before = state.held(ids) if state else None
    new = {side: each.after(before.offsets[side]) if before else each for side, each in spans.items()}
    set_for(spark, sum(each.size for each in new.values()) + (state.rows if state else 0))
    messages = [
        read(spark, new[side], options=kafka_options(profile.kafka), side=side) for side, profile in profiles.items()
    ]
    records = parse(messages[0].unionByName(messages[1]))
    records = within(under_leaders_names(records, renames(profiles, consumer)), spans)
    logs = [
        read_arrivals(spark, profile.kafka, side=side, resource=profile.mysql_resource_name)
        for side, profile in profiles.items()
    ]
    with staged(folder) as aside:
        audit = judge(
            spark,
            records.persist(StorageLevel.MEMORY_AND_DISK),
            profiles,
            spans,
            aside,
            arrivals=logs[0].unionByName(logs[1]),
            consumer=consumer,
            before=before,
            keep=(lambda covered: state.keep(before, covered, ids)) if state else None,
        )
        write(audit, page(audit), aside)
    spark.catalog.clearCache()
    return audit


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

    The follower's are under the leader's names. ``arrivals`` says when they were in Kafka (module arrivals).
    ``consumer`` is the consumer's profile, whose filters count. The records are those that ``before`` does not cover;
    where it judged, ``keep`` gets what they add.
    """
    contents, scope = survey(records), Scope(consumer.filters if consumer else None)
    told, next_ones = records, before.next if before else {}
    if before:
        contents, told = joined(before.contents, contents), records.unionByName(before.records)
    resource, last = profiles[LEADER].mysql_resource_name, {side: held.end for side, held in contents.items()}
    resources = {side: profile.mysql_resource_name for side, profile in profiles.items()}
    new = transactions(records, resource=resource, ends=last).persist(StorageLevel.MEMORY_AND_DISK)
    whole = new.unionByName(before.transactions) if before else new
    sound = integrity(records, new, resources, next_ones=next_ones, earlier=before.transactions if before else None)
    mark, acts = watermark(whole), statements(told)
    audit = Audit(
        audited_at=datetime.now(UTC).isoformat(timespec="seconds"),
        leader=_topic(profiles[LEADER], spans[LEADER], contents.get(LEADER)),
        follower=_topic(profiles[FOLLOWER], spans[FOLLOWER], contents.get(FOLLOWER)),
        reasons=doubts(
            profiles,
            contents,
            mark,
            sound,
            scope=scope,
            renames=renames(profiles, consumer),
            acts=acts,
            lost=None if mark.begins is None else hole(whole, begins=mark.begins),
        ),
        foreign_writes=mark.foreign,
        foreign=foreign_writes(whole, limit=_LISTED) if mark.foreign else [],
        foreign_over_time=_foreign_times(whole, contents) if mark.foreign else [],
        skipped=skipped(told, resource=resource, limit=_LISTED),
        breaks=sound.examples,
    )
    if audit.reasons or mark.sequence is None:
        return audit
    ends = {LEADER: mark.sequence, FOLLOWER: None if mark.open_from is None else mark.open_from - 1}
    acts = {side: _upto(acts.get(side, []), ends[side], scope) for side in ends}
    settled = statements_settled(told, resource) if contents[FOLLOWER].noted else {}
    if unclear := list(scope.contradictions(acts[LEADER], settled)):
        return replace(audit, reasons=unclear)
    # Most audits have none of them, and then nothing needs to be joined.
    noted_any = contents[FOLLOWER].conflicts or "skipped" in settled.values()
    noted = marks(told, whole, resource=resource, noted=noted_any, foreign=bool(mark.foreign))
    names = {side: _wanted(contents.get(side), scope) for side in ends}
    held = {side: _held(records, side, end) for side, end in ends.items()}
    held[FOLLOWER] = without_cascades(held[FOLLOWER], whole, contents, noted[FOLLOWER])
    lives = {side: _lives(spark, names[side], acts[side], next_ones.get(side, 0)) for side in ends}
    folds = {
        side: _folded(held[side], lives[side], noted[side], before.folds[side] if before else None) for side in ends
    }
    if keep:
        folds = {side: each.persist(StorageLevel.MEMORY_AND_DISK) for side, each in folds.items()}
    comparison = compare(folds[LEADER], folds[FOLLOWER]).persist(StorageLevel.MEMORY_AND_DISK)
    defined = definitions(
        acts[LEADER], acts[FOLLOWER], resource=resource, settled=settled, rows=names[LEADER] | names[FOLLOWER]
    )
    audit = replace(
        audit,
        sequence=mark.sequence,
        lag=lag(whole, arrivals, upto=mark.sequence),
        tables=tables(comparison),
        schema_drift=len(defined.drift),
        schema=defined.drift[:_LISTED],
    )
    known = names[FOLLOWER] | named([*acts[FOLLOWER], *acts[LEADER]])
    if silent := scope.silent([line.name for line in audit.tables if line.missing and line.name not in known]):
        return replace(audit, reasons=[silent])
    audit = _with_drift(audit, comparison, defined.unmatched, names[LEADER] | names[FOLLOWER], folder)
    audit = replace(audit, discontinued=placed(told, audit.discontinued))
    if keep and can_be_resumed(new, contents, after=next_ones.get(LEADER, 0) - 1, upto=mark.sequence):
        last = {side: contents[side].end if end is None else end for side, end in ends.items()}
        eras = {side: with_era_told_from_the_end(folds[side], lives[side]) for side in folds}
        keep(Covered(last, contents, eras, new, records, discontinued=any(audit.discontinuities.values())))
    return audit


def _wanted(contents: Contents | None, scope: Scope) -> frozenset[tuple[str, str]]:
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


def _upto(acts: Iterable[Act], end: int | None, scope: Scope) -> list[Act]:
    return [act for act in acts if (end is None or act.sequence <= end) and scope.wants(act)]


def _held(records: DataFrame, side: str, end: int | None) -> DataFrame:
    held = records.where(F.col("side") == side)
    return held if end is None else held.where(F.col("sequence") <= end)


def _lives(spark: SparkSession, names: frozenset[tuple[str, str]], acts: Sequence[Act], since: int) -> DataFrame:
    """The lifelines from sequence ``since`` on, of all tables that there are or were; others' rows are left out."""
    return segments(spark, lifelines(names | named(acts), [act for act in acts if act.sequence >= since]))


def _folded(records: DataFrame, lives: DataFrame, marks: DataFrame | None, before: DataFrame | None) -> DataFrame:
    """One side's rows: the leader's up to the watermark, the follower's up to its last whole transaction.

    What the follower has beyond the watermark did not come from the leader, so it belongs in the comparison.
    """
    made = changes(records, lives, marks)
    return fold(made if before is None else made.unionByName(carried(before, lives)))


def _with_drift(
    audit: Audit,
    comparison: DataFrame,
    statements: Sequence[Unmatched],
    names: frozenset[tuple[str, str]],
    folder: Path,
) -> Audit:
    total = sum(line.missing + line.extra + line.different for line in audit.tables)
    first: list[Row] = []
    causes: dict[str, int] = {}
    if total:
        drifted = drifted_rows(comparison, statements, names)
        drifted.write.parquet((folder / PARQUET).resolve().as_uri())
        first = drifted.orderBy(*_ORDER).limit(_LISTED).collect()
        causes = dict(drifted.groupBy("cause").agg(F.sum("rows")).collect())
    counts, discontinued = discontinuities(comparison, limit=_LISTED)
    return replace(
        audit,
        drifted_rows=total,
        drifted_by_cause=causes,
        drifted=[DriftedRow(**row.asDict(recursive=True)) for row in first],
        discontinuities=counts,
        discontinued=discontinued,
    )


if __name__ == "__main__":
    sys.exit(main())
