"""The program cdc-seed: builds a new follower from a leader's topics alone."""

import argparse
import gc
import logging
import os
import sys
from functools import partial
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

from cdc.config.profile import BOTH_SERVERS, KAFKA_ONLY, Profile, load
from cdc.consumer.check import list_problems
from cdc.errors import UserError
from cdc.service.command_line import CheckList, add_common_options
from cdc.service.java import require_java_for_spark, with_spark
from cdc.service.logs import event, print_error, setup_logging
from cdc.service.private_files import MASK
from cdc.service.process import exit_status, printed, stop_on_signals
from cdc.service.retry import Retry
from cdc.spark.job.check import check_runtime, check_spark_topics
from cdc.spark.job.output import root_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]

_LOG = logging.getLogger("cdc.seed")

_EPILOG = """\
The follower is empty at first. It runs the leader's statements, and gets each row that is left as its last change has
it. Then cdc-consumer continues. If cdc-seed is stopped or killed, it continues when it is started again.

exit status: 0 the follower is as the leader was then; 2 something must be changed first, or it was stopped; 3 the
follower refuses a row or a statement; 4 a server is unreachable for longer than consumer.retry_seconds
"""
_EXAMPLES = """
cdc-seed --leader producer_profile.toml --follower consumer_profile.toml
cdc-seed --leader producer_profile.toml --follower consumer_profile.toml --at 2026-03-01T12:30:00+01:00
"""


def main() -> int:
    """Runs the program; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="cdc-seed",
        description="Make an empty follower equal to the leader, of the topics alone, with Spark.",
        epilog=_EPILOG,
    )
    parser.add_argument("--leader", type=Path, required=True, metavar="PROFILE", help="profile of cdc-producer")
    parser.add_argument("--follower", type=Path, required=True, metavar="PROFILE", help="profile of cdc-consumer")
    parser.add_argument(
        "--at",
        metavar="SEQUENCE|GTID|TIME",
        help="as the leader was then; a time without a zone is UTC (default: as it is now)",
    )
    parser.add_argument("--check", action="store_true", help="list what must be changed first, write nothing")
    add_common_options(parser, examples=_EXAMPLES)
    arguments = parser.parse_args()
    try:
        return exit_status(lambda: _run(arguments), program="cdc-seed")
    except Exception as error:
        if not _is_of_spark(error):
            raise
        print_error("cdc-seed", f"Spark failed: {type(error).__name__}: {root_cause(error)}")
        return 2


def _run(arguments: argparse.Namespace) -> int:
    # Spark writes rows to temporary files. Other users must not be able to read these files.
    os.umask(MASK)
    leader, follower = load(arguments.leader, servers=KAFKA_ONLY), load(arguments.follower, servers=BOTH_SERVERS)
    setup_logging(level=follower.log.level, form=follower.log.format)
    if arguments.check:
        return _check(leader, follower)
    if util.find_spec("pyspark") is None:
        raise UserError("PySpark is not installed", code="CDC-SEED-NO-PYSPARK", hint=with_spark())
    require_java_for_spark(os.environ)
    # These modules are imported only after the check for PySpark, since importing them without PySpark fails.
    from cdc.seed.pipeline import run
    from cdc.spark.input.spans import span
    from cdc.spark.job.launch import FIRST_COMPILER, FOR_MUCH
    from cdc.spark.job.options import SMALL
    from cdc.spark.job.session import cancelling, started

    gc.set_threshold(1_000_000, 50, 1000)  # the same thresholds as in cdc-consumer
    stop = stop_on_signals()
    retry = Retry(seconds=follower.consumer.retry_seconds, log=partial(event, _LOG), stop=stop)
    at = int(arguments.at) if arguments.at is not None and arguments.at.isdecimal() else arguments.at

    def spark() -> "SparkSession":
        java = [*FOR_MUCH, *(FIRST_COMPILER if span(leader.kafka).size <= SMALL else ())]
        return cancelling(started(dict(os.environ), "cdc-seed", java=java), stop)

    try:
        loaded = run(spark, leader, follower, at=at, retry=retry, stop=stop)
    except Exception as error:
        if not (stop.is_set() and _is_of_spark(error)):
            raise
        loaded = None  # a signal stopped the load, so the error reports only that Spark's job was cancelled
    if loaded is None:
        hint = "run cdc-seed again; it continues"
        raise UserError("stopped before the follower was fully loaded", code="CDC-SEED-STOPPED", hint=hint)
    line = (
        f"the follower is as the leader was after sequence {loaded.sequence}: {loaded.rows:,} rows and "
        f"{loaded.statements:,} statements; start cdc-consumer, which continues from there"
    )
    return printed([line], program="cdc-seed")


def _check(leader: Profile, follower: Profile) -> int:
    """Prints what must be changed before the follower can be loaded; returns the exit status."""
    items = CheckList()
    check_runtime(items, os.environ)
    check_spark_topics(items, leader)
    list_problems(items, follower, leader=None)
    return items.end()


def _is_of_spark(error: Exception) -> bool:
    # A ConnectionError comes from Py4J's connection to the JVM, because errors of all other connections were translated
    # earlier.
    return type(error).__module__.startswith(("pyspark", "py4j")) or isinstance(error, ConnectionError)


if __name__ == "__main__":
    sys.exit(main())
