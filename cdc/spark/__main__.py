"""The program cdc-audit: runs the audit on this machine, in a Spark that it starts with the Kafka connector."""

import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from cdc.service.logs import event, print_error, setup_logging
from cdc.service.private_files import MASK
from cdc.service.process import exit_status
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.spans import early_reasons, span
from cdc.spark.job.check import check_audit
from cdc.spark.job.launch import FOR_LITTLE, Runtime, launched
from cdc.spark.job.options import SMALL, accepted_drift, consumer_profile, parse_options, side_profiles
from cdc.spark.job.output import root_cause
from cdc.spark.report.files import clear

__all__ = ["main"]

_LOG = logging.getLogger("cdc.audit")


def main() -> int:
    """Runs cdc.spark.audit with the options of the command line, and returns its exit status."""
    # Ctrl-C needs no traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return exit_status(lambda: _run(sys.argv[1:]), program="cdc-audit")
    except Exception as error:  # noqa: BLE001 - any failure here is no verdict, and exit status 1 would mean drift
        print_error("cdc-audit", f"Spark failed: {type(error).__name__}: {root_cause(error)}")
        return 2


def _run(options: Sequence[str]) -> int:
    # Spark writes rows to temporary files, which other users must not read.
    os.umask(MASK)
    given = parse_options("cdc-audit", options)
    if given.check:
        return check_audit(given)
    profiles = side_profiles(given)
    by_side = {"leader": profiles[0], "follower": profiles[1]}
    setup_logging(level=profiles[0].log.level, form=profiles[0].log.format)
    consumer = consumer_profile(given)
    if given.accept:
        accepted_drift(given.accept)
    runtime = Runtime.of(os.environ)
    # cdc.spark.audit clears the report, too; but Spark takes seconds to start, and here a wrong folder is reported at
    # once. With --state, the report may be cleared only after the state is locked, because another audit may use both.
    if given.state is None:
        clear(given.report)
    spans = {side: span(profile.kafka) for side, profile in by_side.items() if kafka_options(profile.kafka)}
    own = (consumer or profiles[1]).consumer.schema
    kept = given.state is not None or given.from_lake is not None
    for reason in early_reasons(by_side, spans, own, kept=kept, max_age=given.max_age):
        # The audit continues, since its report names all reasons. Meanwhile the user can correct the causes that are
        # logged here.
        event(_LOG, "cannot judge", level=logging.WARNING, reason=reason)
    # The messages of --from-lake may be many.
    small = sum(each.size for each in spans.values()) <= SMALL and given.watch is None and given.from_lake is None
    progress = not small and sys.stderr.isatty()
    java = FOR_LITTLE if small else ()
    archived = given.watch is None
    with launched(runtime, os.environ, java=java, progress=progress, archived=archived) as (jvm, keep):
        # The modules are imported while the JVM starts, which takes about as long.
        from cdc.spark.audit import main as audit

        def started(settings: Mapping[str, str]) -> None:
            # PySpark's handler of SIGINT is replaced: it calls the JVM in the middle of another call, and ends with a
            # traceback.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            keep(settings)

        jvm.require_started()
        return audit(options, started=started)


if __name__ == "__main__":
    sys.exit(main())
