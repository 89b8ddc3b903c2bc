"""The audit, as spark-submit runs it: is the follower the leader, at the sequence it says it is at?

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:<version of pyspark> cdc/spark/audit.py \
        --leader producer_profile.toml --follower follower_profile.toml --report DIR

``cdc`` must be installed for the Python that runs it. Exit status: 0 no drift, 1 drift, 2 could not judge. Foreign
writes that left no drift are told, and leave it 0.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.profile import Profile
from cdc.service import exit_status
from cdc.spark.brokers import Span, kafka_options, span
from cdc.spark.cascades import without_cascades
from cdc.spark.definitions import Unmatched, definitions
from cdc.spark.doubts import doubts
from cdc.spark.drift import DriftedRow, compare, discontinuities, drifted_rows, placed, tables
from cdc.spark.fold import changes, fold, segments
from cdc.spark.folder import HTML, PARQUET, clear
from cdc.spark.integrity import integrity
from cdc.spark.lag import apply_lag
from cdc.spark.lifelines import Act, lifelines, named
from cdc.spark.marks import marks, statements_settled
from cdc.spark.options import SMALL, arguments, consumer_of, profiles_of
from cdc.spark.page import page
from cdc.spark.renamed import renames, under_leaders_names
from cdc.spark.report import Audit, Topic, terminal, write
from cdc.spark.scope import Scope
from cdc.spark.skipped import skipped
from cdc.spark.survey import Contents, statements, survey
from cdc.spark.topics import FOLLOWER, LEADER, parse, read, within
from cdc.spark.watermark import foreign_writes, hole, transactions, watermark
from cdc.topic_tail import partition_name

__all__ = ["judge", "main"]

_LISTED = 100
_RECORDS_A_TASK = 50_000
_ORDER = ("database", "table", "kind", "leader_last.sequence", "follower_last.sequence", "rows")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the audit and give its exit status."""
    options = arguments("audit.py").parse_args(argv)
    try:
        return exit_status(lambda: _run(options), program="cdc-audit")
    except Exception as error:  # noqa: BLE001 - whatever fails here is no verdict, and 1 would read as drift
        print(f"cdc-audit: Spark failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}", file=sys.stderr)
        return 2


def _run(options: argparse.Namespace) -> int:
    profiles = dict(zip((LEADER, FOLLOWER), profiles_of(options), strict=True))
    consumer = consumer_of(options)
    clear(options.report)
    # The follower's end first: all it has by then came from the leader's topic, so the end taken later covers it.
    spans = {side: span(profiles[side].kafka) for side in (FOLLOWER, LEADER)}
    spark = _session(sum(each.size for each in spans.values()))
    messages = [
        read(spark, spans[side], options=kafka_options(profile.kafka), side=side) for side, profile in profiles.items()
    ]
    records = parse(messages[0].unionByName(messages[1]))
    records = within(under_leaders_names(records, renames(profiles, consumer)), spans)
    records = records.persist(StorageLevel.MEMORY_AND_DISK)
    audit = judge(spark, records, profiles, spans, options.report, consumer=consumer)
    write(audit, page(audit), options.report)
    print("\n".join(terminal(audit)))
    print(f"report: {(options.report / HTML).resolve()}")
    spark.stop()
    return audit.exit_status


def _session(size: int) -> SparkSession:
    """Spark, set for ``size`` records: what serves large audits costs small ones seconds, and the other way round."""
    builder = SparkSession.builder.appName("cdc-audit").config("spark.sql.session.timeZone", "UTC")
    builder = builder.config("spark.sql.shuffle.partitions", 1 + size // _RECORDS_A_TASK)
    builder = builder.config("spark.sql.adaptive.enabled", str(size > SMALL).lower())
    # A cast that fails is an error, not a NULL that drops out of a comparison.
    spark = builder.config("spark.sql.ansi.enabled", "true").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def judge(
    spark: SparkSession,
    records: DataFrame,
    profiles: Mapping[str, Profile],
    spans: Mapping[str, Span],
    folder: Path,
    *,
    consumer: Profile | None = None,
) -> Audit:
    """Judge ``records`` of both topics (as ``topics.parse`` gives them); the drifted rows go to ``folder``.

    The follower's are under the leader's names. ``consumer`` is the consumer's profile, whose filters count.
    """
    contents, scope = survey(records), Scope(consumer.filters if consumer else None)
    resource, last = profiles[LEADER].mysql_resource_name, {side: held.end for side, held in contents.items()}
    whole = transactions(records, resource=resource, ends=last).persist(StorageLevel.MEMORY_AND_DISK)
    resources = {side: profile.mysql_resource_name for side, profile in profiles.items()}
    mark, sound, acts = watermark(whole), integrity(records, whole, resources), statements(records)
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
        skipped=skipped(records, resource=resource, limit=_LISTED),
        breaks=sound.examples,
    )
    if audit.reasons or mark.sequence is None:
        return audit
    ends = {LEADER: mark.sequence, FOLLOWER: None if mark.open_from is None else mark.open_from - 1}
    acts = {side: _upto(acts.get(side, []), ends[side], scope) for side in ends}
    settled = statements_settled(records, resource) if contents[FOLLOWER].noted else {}
    if unclear := list(scope.contradictions(acts[LEADER], settled)):
        return replace(audit, reasons=unclear)
    # Most audits have none of them, and then nothing needs to be joined.
    told = contents[FOLLOWER].conflicts or "skipped" in settled.values()
    noted = marks(records, whole, resource=resource, noted=told, foreign=bool(mark.foreign))
    names = {side: _wanted(contents.get(side), scope) for side in ends}
    held = {side: _held(records, side, end) for side, end in ends.items()}
    held[FOLLOWER] = without_cascades(held[FOLLOWER], whole, contents, noted[FOLLOWER])
    comparison = _compared(spark, held, acts, names, noted).persist(StorageLevel.MEMORY_AND_DISK)
    defined = definitions(
        acts[LEADER], acts[FOLLOWER], resource=resource, settled=settled, rows=names[LEADER] | names[FOLLOWER]
    )
    audit = replace(
        audit,
        sequence=mark.sequence,
        lag=apply_lag(whole, upto=mark.sequence),
        tables=tables(comparison),
        schema_drift=len(defined.drift),
        schema=defined.drift[:_LISTED],
    )
    known = names[FOLLOWER] | named([*acts[FOLLOWER], *acts[LEADER]])
    if silent := scope.silent([line for line in audit.tables if line.missing and line.name not in known]):
        return replace(audit, reasons=[silent])
    audit = _with_drift(audit, comparison, defined.unmatched, names[LEADER] | names[FOLLOWER], folder)
    return replace(audit, discontinued=placed(records, audit.discontinued))


def _wanted(contents: Contents | None, scope: Scope) -> frozenset[tuple[str, str]]:
    return frozenset(name for name in contents.tables if scope.wants_table(*name)) if contents else frozenset()


def _topic(profile: Profile, span: Span, contents: Contents | None) -> Topic:
    return Topic(
        resource=profile.mysql_resource_name,
        topic=profile.kafka.topic,
        records=contents.records if contents else 0,
        first=contents.first if contents else None,
        last=contents.last if contents else None,
        offsets={partition_name(place): ends for place, ends in span.partitions.items()},
    )


def _upto(acts: Iterable[Act], end: int | None, scope: Scope) -> list[Act]:
    return [act for act in acts if (end is None or act.sequence <= end) and scope.wants(act)]


def _held(records: DataFrame, side: str, end: int | None) -> DataFrame:
    held = records.where(F.col("side") == side)
    return held if end is None else held.where(F.col("sequence") <= end)


def _compared(
    spark: SparkSession,
    held: Mapping[str, DataFrame],
    acts: Mapping[str, list[Act]],
    names: Mapping[str, frozenset[tuple[str, str]]],
    marks: Mapping[str, DataFrame | None],
) -> DataFrame:
    """Both sides' folds compared: the leader's up to the watermark, the follower's up to its last whole transaction.

    What the follower has beyond the watermark did not come from the leader, so it belongs in the comparison. Rows of
    tables that are not in ``names`` stay out of it.
    """
    folds = []
    for side in (LEADER, FOLLOWER):
        lives = segments(spark, lifelines(names[side], acts[side]))
        folds.append(fold(changes(held[side], lives, marks[side])))
    return compare(*folds)


def _with_drift(
    audit: Audit,
    comparison: DataFrame,
    statements: Sequence[Unmatched],
    names: frozenset[tuple[str, str]],
    folder: Path,
) -> Audit:
    total = sum(line.missing + line.extra + line.different for line in audit.tables)
    first = []
    if total:
        drifted = drifted_rows(comparison, statements, names)
        drifted.write.parquet((folder / PARQUET).resolve().as_uri())
        first = drifted.orderBy(*_ORDER).limit(_LISTED).collect()
    counts, discontinued = discontinuities(comparison, limit=_LISTED)
    return replace(
        audit,
        drifted_rows=total,
        drifted=[DriftedRow(**row.asDict(recursive=True)) for row in first],
        discontinuities=counts,
        discontinued=discontinued,
    )


if __name__ == "__main__":
    sys.exit(main())
