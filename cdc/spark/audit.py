"""The audit, as spark-submit runs it: is the follower the leader, at the sequence it says it is at?

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:<version of pyspark> cdc/spark/audit.py \
        --leader producer_profile.toml --follower follower_profile.toml --report DIR

``cdc`` must be installed for the Python that runs it. Exit status: 0 no drift, 1 drift, 2 could not judge. Foreign
writes that left no drift are told, and leave it 0.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import get_terminal_size

from py4j.protocol import Py4JError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cdc.config.profile import Profile
from cdc.config.topic_names import PER_TABLE
from cdc.service.logs import print_error, setup_logging
from cdc.service.process import exit_status
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.records import FOLLOWER, LEADER, parse, read, within
from cdc.spark.input.renaming import own_schema, renames, under_leaders_names
from cdc.spark.input.spans import newest_entry_us, span, topic_ids
from cdc.spark.job.options import consumer_of, parsed, profiles_of
from cdc.spark.job.session import SparkGone, cut_short, ended, gone, session, set_for
from cdc.spark.job.watch import watched
from cdc.spark.lag.arrivals import read_arrivals
from cdc.spark.page.document import page
from cdc.spark.pipeline import judge
from cdc.spark.report.files import HTML, clear, staged
from cdc.spark.report.outcome import Audit, write
from cdc.spark.report.terminal import terminal
from cdc.spark.state.coverage import Covered, Held
from cdc.spark.state.identity import identity
from cdc.spark.state.state import State

__all__ = ["audit_topics", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the audit and give its exit status."""
    options = parsed("audit.py", argv)
    try:
        return exit_status(lambda: _run(options), program="cdc-audit")
    except Exception as error:  # noqa: BLE001 - whatever fails here is no verdict, and 1 would read as drift
        print_error("cdc-audit", f"Spark failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return 2


def _run(options: argparse.Namespace) -> int:
    profiles, consumer = dict(zip((LEADER, FOLLOWER), profiles_of(options), strict=True)), consumer_of(options)
    setup_logging(level=profiles[LEADER].log.level, form=profiles[LEADER].log.format)
    spark = session()
    state = State.open(spark, options.state, identity(profiles, consumer)) if options.state else None
    # Not before the state is ours: the report may be that of an audit which uses it.
    clear(options.report)

    def audited() -> Audit:
        try:
            return audit_topics(spark, profiles, consumer, options.report, state, max_age=options.max_age)
        except Exception as error:
            if gone(spark):
                hint = "start cdc-audit again; where memory ran out, the kernel's log says so"
                raise SparkGone("Spark's JVM has ended", hint=hint) from error
            raise

    if options.watch is None:
        audit = audited()
        print("\n".join(terminal(audit, width=get_terminal_size((0, 0)).columns)))
        print(f"report: {(options.report / HTML).resolve()}")
        status = audit.exit_status
    else:
        status = watched(audited, interval=options.watch, listen=options.metrics, cancel=lambda: cut_short(spark))
    if state:
        state.close()
    ended(spark)
    return status


def audit_topics(
    spark: SparkSession,
    profiles: Mapping[str, Profile],
    consumer: Profile | None,
    folder: Path,
    state: State | None = None,
    *,
    max_age: float | None = None,
) -> Audit:
    """Judge both topics as they are now, on from ``state`` where there is one, and write the report to ``folder``.

    It is no verdict where a commit log is older than ``max_age`` seconds.
    """
    # The follower's end first: all it has by then came from the leader's topic, so the end taken later covers it.
    spans = {side: span(profiles[side].kafka) for side in (FOLLOWER, LEADER)}
    ids = {side: topic_ids(profiles[side].kafka, each) for side, each in spans.items()}
    before = state.held(ids) if state else None
    new = {side: each.after(before.offsets[side]) if before else each for side, each in spans.items()}
    set_for(spark, sum(each.size for each in new.values()))
    messages = [
        read(spark, new[side], options=kafka_options(profile.kafka), side=side) for side, profile in profiles.items()
    ]
    events_of = [side for side, profile in profiles.items() if profile.kafka.layout == PER_TABLE]
    records = parse(messages[0].unionByName(messages[1]), events_of=events_of)
    schema = own_schema(profiles, consumer)
    records = within(under_leaders_names(records, renames(profiles, consumer), schema=schema), spans)
    arrivals = _arrivals(spark, profiles, before)
    if state:
        # They are looked into once more, to say where to read on.
        arrivals = arrivals.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        with staged(folder) as aside:
            audit = judge(
                records.persist(StorageLevel.MEMORY_AND_DISK),
                profiles,
                spans,
                aside,
                arrivals=arrivals,
                consumer=consumer,
                before=before,
                keep=(lambda covered: _keep(spark, state, before, covered, ids)) if state else None,
            )
            audit = _dated(audit, profiles, max_age)
            write(audit, page(audit), aside)
    finally:
        spark.catalog.clearCache()
    return audit


def _dated(audit: Audit, profiles: Mapping[str, Profile], max_age: float | None) -> Audit:
    """``audit`` with what the commit logs tell of their producers."""
    newest = {side: newest_entry_us(each.kafka, resource=each.mysql_resource_name) for side, each in profiles.items()}
    leader, follower = (replace(getattr(audit, side), newest_us=us) for side, us in newest.items())
    dated = replace(audit, leader=leader, follower=follower)
    return dated if max_age is None else dated.no_older_than(max_age)


def _arrivals(spark: SparkSession, profiles: Mapping[str, Profile], before: Held | None) -> DataFrame:
    begins = before.arrivals if before else {}
    logs = [
        read_arrivals(spark, each.kafka, side=side, resource=each.mysql_resource_name, begin=begins.get(side, 0))
        for side, each in profiles.items()
    ]
    return logs[0].unionByName(logs[1])


def _keep(
    spark: SparkSession,
    state: State,
    before: Held | None,
    covered: Covered | None,
    ids: Mapping[str, Mapping[str, str]],
) -> None:
    """Save the state. Where that fails it is told: it costs the next audit time, but this one not its verdict."""
    if covered is None:
        print("cdc-audit: the state was not kept: the follower is inside of a transaction of the leader's; the next "
              "audit on it reads again what this one read", file=sys.stderr, flush=True)  # fmt: skip
        return
    # Spark would add a trace of each task that failed.
    spark.sparkContext.setLogLevel("OFF")
    try:
        state.keep(before, covered, ids)
    except (OSError, Py4JError, PySparkException) as error:
        # What --watch cancels when it stops is no failure of the save.
        if gone(spark) or "SPARK_JOB_CANCELLED" in str(error):
            raise
        print_error("cdc-audit", f"the state was not kept: {_bottom(error)}")
    spark.sparkContext.setLogLevel("ERROR")


def _bottom(error: Exception) -> str:
    """What lies at the bottom of it: Spark tells the causes one below the other, each with its trace."""
    causes = re.findall(r"^(?:Caused by)?: (.+)", str(error), re.MULTILINE)
    return causes[-1] if causes else str(error).partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
