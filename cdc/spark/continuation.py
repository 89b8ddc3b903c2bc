"""Saves in the state which part of the topics an audit covered, for the next audit."""

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.service.logs import print_error
from cdc.spark.compare.row_drift import as_folded
from cdc.spark.comparison import Comparison, Extent
from cdc.spark.input.records import LEADER
from cdc.spark.inspection import Streams
from cdc.spark.job.output import root_cause, was_cancelled
from cdc.spark.lag import Transit
from cdc.spark.private_names import Py4JError, has_stopped, without_log
from cdc.spark.report.outcome import Audit
from cdc.spark.state.coverage import Covered, can_be_resumed
from cdc.spark.state.folder import PastVerdict
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Topics

__all__ = ["covered", "keep", "past_verdicts"]


def covered(
    topics: Topics, streams: Streams, within: Extent, comparison: Comparison, times: Transit | None
) -> Covered | None:
    """Determines the part of ``topics`` that the audit covered. Returns None if the next audit can't continue after
    this part.

    ``comparison`` and ``times`` must have been computed with ``for_state``.
    """
    if not can_be_resumed(streams.new_transactions, topics.held, upto=within.ends[LEADER]):
        return None
    assert comparison.rows is not None  # with ``for_state`` rows are compared one by one
    return Covered(
        ends=within.ends,
        contents=streams.contents,
        rows=as_folded(comparison.rows),
        touched=comparison.touched,
        open=comparison.listed.select("hash") if comparison.listed else None,
        tally=comparison.tally,
        mark=streams.watermark,
        transit=times,
        transactions=streams.new_transactions,
        ids=streams.ids,
        records=streams.new_records,
        arrivals=topics.arrivals,
        spans=topics.spans,
    )


def keep(spark: SparkSession, state: StateStore, topics: Topics, found: Covered | None) -> None:
    """Adds ``found``, which the audit covered, to ``state``.

    A failure is only logged: the next audit takes longer, but the verdict of this audit is not affected.
    """
    if found is None:
        print("cdc-audit: the state was not kept: the follower is inside of a transaction of the leader's; the next "
              "audit reads the same records again", file=sys.stderr, flush=True)  # fmt: skip
        return
    try:
        with without_log(spark):  # it would contain a stack trace for each task that fails
            state.save(topics.held, found, topics.ids)
    except (OSError, Py4JError, PySparkException) as error:
        # Jobs that --watch cancels when it stops have not failed.
        if has_stopped(spark) or was_cancelled(error):
            raise
        print_error("cdc-audit", f"the state was not kept: {root_cause(error)}")


def past_verdicts(audit: Audit, state: StateStore | None) -> list[PastVerdict]:
    """Adds the verdict of ``audit`` to ``state``, and returns it with the verdicts of earlier audits; empty without a
    state.

    A failure to write the verdicts is only logged: no verdict depends on earlier verdicts.
    """
    if state is None:
        return []
    verdict = PastVerdict(
        at=audit.audited_at,
        exit_status=audit.exit_status,
        sequence=audit.sequence,
        drifted_rows=audit.drifted_rows,
        schema_drift=audit.schema_drift,
        accepted=audit.accepted_rows + audit.accepted_objects,
        foreign_writes=audit.foreign_writes,
    )
    try:
        return state.remembered(verdict)
    except OSError as error:
        print_error("cdc-audit", f"the history of verdicts was not kept: {error}")
        return [verdict]
