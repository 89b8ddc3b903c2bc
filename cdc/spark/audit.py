"""Runs the audit as a script for spark-submit: is the follower equal to the leader at the sequence that it has applied?

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:<its version> cdc/spark/audit.py \
        --leader producer_profile.toml --follower follower_profile.toml --report DIR

``cdc`` must be installed for the Python that runs it. Exit status: 0 no drift, 1 drift, 2 could not judge. Foreign
writes (errant transactions) that left no drift are reported, and the exit status stays 0.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from shutil import get_terminal_size

from cdc.service.logs import print_error, setup_logging
from cdc.service.monitor import info
from cdc.service.process import exit_status, printed
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.job.options import Terms, accepted_drift, consumer_profile, parse_options, side_profiles
from cdc.spark.job.output import root_cause
from cdc.spark.job.session import SparkGone, cancel_jobs, session, stop
from cdc.spark.job.watch import watched
from cdc.spark.pipeline import audit_topics
from cdc.spark.private_names import has_stopped
from cdc.spark.report.files import HTML, clear, repair_command
from cdc.spark.report.outcome import Audit
from cdc.spark.report.renderers import terminal
from cdc.spark.state.coverage import identity
from cdc.spark.state.landing import Landing
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Replication

__all__ = ["audit_topics", "main"]


def main(argv: Sequence[str] | None = None, *, started: Callable[[Mapping[str, str]], None] | None = None) -> int:
    """Runs the audit and returns its exit status. ``started`` is called with Spark's settings once Spark runs."""
    options = parse_options("audit.py", argv)
    try:
        return exit_status(lambda: _run(options, started), program="cdc-audit")
    except Exception as error:  # noqa: BLE001 - any failure here is no verdict, and exit status 1 would mean drift
        print_error("cdc-audit", f"Spark failed: {type(error).__name__}: {root_cause(error)}")
        return 2


def _run(options: argparse.Namespace, started: Callable[[Mapping[str, str]], None] | None) -> int:
    profiles, consumer = dict(zip((LEADER, FOLLOWER), side_profiles(options), strict=True)), consumer_profile(options)
    setup_logging(level=profiles[LEADER].log.level, form=profiles[LEADER].log.format)
    spark = session()
    if started is not None:
        started(dict(spark.sparkContext.getConf().getAll()))
    state = StateStore.open(spark, options.state, identity(profiles, consumer)) if options.state else None
    landing = Landing.open(spark, options.from_lake) if options.from_lake else None
    # The report is cleared only when the state is locked: another audit that uses the same state may be writing the
    # report.
    clear(options.report)

    accepted = accepted_drift(options.accept) if options.accept else ()
    terms = Terms(max_age=options.max_age, exact=options.exact, accepted=accepted)

    repair = repair_command(options.leader, options.report)

    def audited() -> Audit:
        try:
            return audit_topics(
                spark, Replication(profiles, consumer), options.report, state, landing=landing, terms=terms,
                repair=repair,
            )  # fmt: skip
        except Exception as error:
            if has_stopped(spark):
                hint = "start cdc-audit again; if memory ran out, the kernel's log says so"
                raise SparkGone("Spark's JVM has ended", code="CDC-SPARK-ENDED", hint=hint) from error
            raise

    if options.watch is None:
        audit = audited()
        lines = [*terminal(audit, width=get_terminal_size((0, 0)).columns)]
        lines += [f"repair: {audit.repair}"] if audit.repair else []
        lines.append(f"report: {(options.report / HTML).resolve()}")
        status = printed(lines, program="cdc-audit", status=audit.exit_status)
    else:
        labels, listen = info("cdc-audit", profiles[LEADER]), options.metrics
        status = watched(audited, interval=options.watch, listen=listen, info=labels, cancel=lambda: cancel_jobs(spark))
    for each in (state, landing):
        if each:
            each.close()
    stop(spark)
    return status


if __name__ == "__main__":
    sys.exit(main())
