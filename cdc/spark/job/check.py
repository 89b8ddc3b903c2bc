"""Prints what must be changed before a program on Spark can run (``--check``). Starts no Spark, and writes nothing."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path

from cdc.config.profile import Profile
from cdc.errors import UserError
from cdc.kafka.broker_checks import check_topics
from cdc.service.command_line import CheckList
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.spans import early_reasons, span
from cdc.spark.job.launch import Runtime, known_jars, package_names, remembered_jars
from cdc.spark.job.options import accepted_drift, consumer_profile, side_profiles

__all__ = ["check_audit", "check_folder", "check_runtime", "check_spark_topics"]

_GROUP = "cdc-producer"  # Spark's Kafka source reads with groups of such names


def check_audit(given: argparse.Namespace) -> int:
    """Prints what must be changed before an audit with the options ``given``; returns the exit status, 0 or 2."""
    items = CheckList()
    check_runtime(items, os.environ)
    check_folder(items, given.report, option="--report")
    if given.state is not None:
        check_folder(items, given.state, option="--state")
    if given.from_lake is not None:
        check_folder(items, given.from_lake, option="--from-lake")
    if given.accept:
        with items.noting():
            items.fine(f"{given.accept} accepts drift with {len(accepted_drift(given.accept))} entries")
    with items.noting():
        leader, follower = side_profiles(given)
        consumer, before = consumer_profile(given), items.problems
        for profile in (leader, follower):
            check_spark_topics(items, profile)
        if items.problems > before:
            return items.end()  # topics that can't be read show no reasons
        by_side = {"leader": leader, "follower": follower}
        own = (consumer or follower).consumer.schema
        spans = {side: span(profile.kafka) for side, profile in by_side.items()}
        kept = given.state is not None or given.from_lake is not None
        for reason in early_reasons(by_side, spans, own, kept=kept, max_age=given.max_age):
            items.note(f"an audit now could not judge: {reason}")
    return items.end()


def check_runtime(items: CheckList, environment: Mapping[str, str], *, lake: str | None = None) -> None:
    """Prints whether Java and PySpark are there, and which packages Spark would load. ``lake`` is the format of a lake
    for which it needs one besides the Kafka connector.
    """
    with items.noting():
        runtime = Runtime.of(environment)
        items.fine(f"Spark is in {runtime.home}, Java is {runtime.java}")
        names = package_names(environment, runtime.home, lake=lake)
        if names and not known_jars(environment, remembered_jars(environment), names):
            hint = "without a way to Maven Central name their jars in CDC_SPARK_JARS, separated by commas"
            items.note(f"Spark loads {names} when it starts for the first time", hint=hint)


def check_folder(items: CheckList, folder: Path | str, *, option: str) -> None:
    """Prints whether ``folder``, which an ``option`` names, can be written to. Addresses such as hdfs://… are not
    checked.
    """
    if "://" in str(folder):
        items.note(f"{option} {folder} is not checked: only Spark can reach it")
        return
    path = Path(folder).absolute()
    nearest = next(each for each in (path, *path.parents) if each.exists())
    with items.noting():
        if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
            raise UserError(
                f"{nearest} can't be written to",
                code="CDC-CHECK-FOLDER",
                where=f"option {option} {folder}",
                hint="name a folder of this user's, or change the owner of that one",
            )
        items.fine(f"{option} {folder} can be written to")


def check_spark_topics(items: CheckList, profile: Profile) -> None:
    """Prints whether Spark can read the topics of ``profile``."""
    check_topics(items, profile.kafka, group=_GROUP)
    with items.noting():
        kafka_options(profile.kafka)  # raises UserError for properties that Spark's client does not have
