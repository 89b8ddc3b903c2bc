"""Topics that are written without Kafka transactions: what a producer still writes that was replaced is void to all."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.spark import table
from tests.harness.pair import Pair
from tests.harness.programs import end_offset, records, run_well
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = [pytest.mark.spark, pytest.mark.integration]

NAME = "replaced"


def is_stopped(process: "subprocess.Popen[str]") -> bool:
    return (Path("/proc") / str(process.pid) / "stat").read_text().rpartition(")")[2].split()[0] == "T"


def made_pair(
    folder: Path, pair: Pair, kafka: Kafka, name: str, *, transactions: bool = False, **filters: list[str]
) -> Pair:
    """Of the database ``name``; ``filters`` are the producer's beside it."""
    tables = {"kafka": {"transactions": transactions}, "filters": {"include_dbs": [name]}}
    source = tables | {"filters": tables["filters"] | filters}
    capture = tables | {"filters": {"include_dbs": [name, "cdc"]}}
    return Pair.make(
        folder, pair.leader, pair.follower, kafka, name=name, source=source, target=tables, capture=capture
    )


def test_a_producer_that_was_replaced_and_still_writes(
    pair: Pair, kafka: Kafka, tmp_path: Path, spark: SparkSession
) -> None:
    """The new one has other filters, so that the records of the two differ under the same numbers."""
    made = made_pair(tmp_path, pair, kafka, NAME)
    pair.on_leader(
        f"CREATE DATABASE {NAME}", f"USE {NAME}", "CREATE TABLE a (i INT PRIMARY KEY)",
        "CREATE TABLE b (i INT PRIMARY KEY)", "INSERT INTO a VALUES (1)",
    )  # fmt: skip
    made.replicate()
    command = [sys.executable, "-m", "tests.altered.paused_producer", made.source, "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as former:
        pair.on_leader("INSERT INTO b VALUES (2)", "INSERT INTO a VALUES (3)", database=NAME)
        until(lambda: is_stopped(former), what="the producer's pause")
        made = made_pair(tmp_path, pair, kafka, NAME, exclude_tables=[f"{NAME}.b"])
        made.replicate()
        before = end_offset(kafka, NAME)
        former.send_signal(signal.SIGCONT)
        _, log = former.communicate(timeout=LIMIT_SECONDS)
    assert former.returncode == 3, log
    assert "another cdc-producer has taken over" in log
    assert end_offset(kafka, NAME) > before  # so there is something that must not count
    pair.on_leader("INSERT INTO a VALUES (4)", database=NAME)
    made.replicate()

    found = records(made.source)
    assert [record.sequence for record in found] == list(range(len(found)))
    assert [record.uri.table for record in found if record.rows] == ["a"] * 3
    assert sorted(row.i for row in table(spark, load(made.source), f"{NAME}.a").collect()) == [1, 3, 4]
    audit = made.audit(spark, tmp_path / "audit", consumer=True)
    assert (audit.verdict, audit.reasons, audit.foreign_writes) == ("no drift", [], 0)


def test_they_are_as_those_with_transactions(pair: Pair, kafka: Kafka, tmp_path: Path, spark: SparkSession) -> None:
    """From a topic with transactions to one without, and back: one stream, in which each start has a mark."""
    name = "to_and_fro"
    pair.on_leader(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.a (i INT PRIMARY KEY)")
    for number, transactions in enumerate((True, False, False, True)):
        made = made_pair(tmp_path, pair, kafka, name, transactions=transactions)
        pair.on_leader(f"INSERT INTO {name}.a VALUES ({number})")
        run_well("cdc-producer", made.source, "--until-current")
        run_well("cdc-consumer", made.target, "--until-current")
    assert [record.sequence for record in records(made.source)] == list(range(6))
    assert sorted(row.i for row in table(spark, load(made.source), f"{name}.a").collect()) == [0, 1, 2, 3]
    audit = made.audit(spark, tmp_path / "audit")
    assert (audit.verdict, audit.reasons) == ("no drift", [])
