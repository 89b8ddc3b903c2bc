"""Connects the stages of the audit, from both topics to its outcome. Stages are connected nowhere else."""

from dataclasses import dataclass, replace
from pathlib import Path

from pyspark.sql import SparkSession

from cdc.spark.comparison import compared_rows, extent, histories
from cdc.spark.continuation import covered, keep, past_verdicts
from cdc.spark.findings import (
    AcceptedFindings,
    RowFindings,
    compared_definitions,
    not_replicated,
    progress,
    row_findings,
    schema_findings,
    stream_findings,
    tables_unknown_to_follower,
    with_signs_of_life,
)
from cdc.spark.input.records import LEADER
from cdc.spark.input.small_data import in_background, uncache
from cdc.spark.inspection import inspected, preconditions
from cdc.spark.job.options import NO_TERMS, Terms
from cdc.spark.job.session import log_stage
from cdc.spark.report.files import staged
from cdc.spark.report.outcome import Audit, write
from cdc.spark.report.renderers import page
from cdc.spark.state.coverage import Covered
from cdc.spark.state.landing import Landing
from cdc.spark.state.store import StateStore
from cdc.spark.streams.preconditions import unmet
from cdc.spark.topics import Replication, Topics, read_topics

__all__ = ["Judgement", "audit_topics", "judge"]


def audit_topics(
    spark: SparkSession,
    replication: Replication,
    folder: Path,
    state: StateStore | None = None,
    *,
    landing: Landing | None = None,
    terms: Terms = NO_TERMS,
    repair: str = "",
) -> Audit:
    """Audits both topics as they are now, continuing from ``state`` if there is one, and writes the report to
    ``folder``. With ``landing`` the topics' messages are landed first, and read from there.

    ``terms`` are the conditions of the verdict, and ``repair`` is the command that requests new copies of drifted rows.
    """
    profiles = replication.profiles
    try:
        topics = read_topics(spark, replication, state, landing)
        if topics.folds_names:
            replication, terms = replication.folded(), terms.folded()
        with staged(folder) as aside:
            judgement = judge(topics, replication, aside, terms, for_state=state is not None)
            # Only a complete comparison is kept. A crash before ``keep`` leaves the old state; a crash after ``keep``
            # leaves the new state, with which the next audit reports the same drift.
            if state and not judgement.audit.reasons:
                keep(spark, state, topics, judgement.covered)
            audit = with_signs_of_life(judgement.audit, profiles, terms.max_age)
            audit = replace(audit, repair=repair if audit.drifted_rows and not audit.reasons else "")
            write(audit, page(audit, past_verdicts(audit, state)), aside)
    finally:
        uncache(spark)
    return audit


@dataclass(frozen=True, slots=True)
class Judgement:
    """The ``audit``, and the part of the topics that it ``covered``. ``covered`` is None if the next audit can't
    continue after this part.
    """

    audit: Audit
    covered: Covered | None = None


def judge(
    topics: Topics, replication: Replication, folder: Path, terms: Terms = NO_TERMS, *, for_state: bool = False
) -> Judgement:
    """Compares both ``topics``, and writes drifted rows and foreign writes (errant transactions) to ``folder``.

    ``for_state`` is true if the covered part will be kept in a state.
    """
    scope, held = replication.scope, topics.held

    streams = inspected(topics, replication, for_state=for_state)
    checks = preconditions(streams, topics, replication)
    found = stream_findings(streams, checks.integrity, topics, replication, folder)
    reasons = unmet(checks)
    if streams.watermark.sequence is None:
        return Judgement(Audit.of(found, reasons=reasons))
    within = extent(streams, scope, replication.profiles[LEADER].filters)
    if reasons := [*reasons, *scope.contradictions(within.acts[LEADER], streams.not_run)]:
        return Judgement(Audit.of(found, reasons=reasons))

    size = {"records": streams.new_size, "rows": streams.new_rows}
    log_stage("comparing the rows", **size)
    both = histories(streams, within, held, resource=replication.resource)
    with in_background(
        lambda: progress(streams, topics, for_state=for_state), topics.records.sparkSession
    ) as its_progress:
        comparison = compared_rows(both, streams, held, for_state=for_state, exact=terms.exact)
        reached, times = its_progress()
    defined = compared_definitions(streams, within, replication)
    entries = terms.in_force(found.audited_at)
    left_out = not_replicated(within, defined)
    schema, objects = schema_findings(defined, streams, within, scope, [*left_out, *entries])
    sections = found, reached, schema
    if reason := scope.silent(tables_unknown_to_follower(comparison.tally, within)):
        return Judgement(Audit.of(*sections, RowFindings(list(comparison.tally.lines)), reasons=[reason]))

    log_stage("finding the causes of what differs, and writing the report", **size)
    rows, taken = row_findings(comparison, streams, within, defined.unmatched, folder, [*left_out, *entries])
    accepted = AcceptedFindings.of(terms.accepted, entries, objects, taken)
    audit = Audit.of(*sections, rows.with_older(both.perhaps_older), accepted)
    return Judgement(audit, covered(topics, streams, within, comparison, times) if for_state else None)
