"""The session of an audit: how it is set for tables that are larger than its memory."""

import os
import subprocess
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc.spark.input.small_data import cached, uncache
from cdc.spark.job.session import configure_for
from tests.harness.heap import sessions_of
from tests.harness.wait import LIMIT_SECONDS
from tests.spark.test_cdc_audit import QUICK

pytestmark = pytest.mark.spark

# 560 MB, more than the heap, in records of 100 rows, 20 kB each.
RECORDS = 28_000
CACHES_THEM = f"""
from pyspark import StorageLevel
from cdc.spark.job.session import session, configure_for

spark = session()
assert spark.conf.get("spark.sql.variable.substitute") == "false"  # whatever spark-submit was told
configure_for(spark, {RECORDS})
row = "array(string(id * 100 + row), repeat('x', 200))"
records = spark.range(0, {RECORDS}, 1, 2).selectExpr(f"transform(sequence(1, 100), row -> {{row}}) AS rows")
assert records.persist(StorageLevel.MEMORY_AND_DISK).count() == {RECORDS}
"""


@pytest.mark.parametrize(
    ("records", "rows", "tasks", "adaptive"),
    [
        (0, 0, "1", "false"),
        (200_000, 1_000_000, "6", "false"),
        (200_001, 0, "5", "true"),
        (10_000, 1_000_001, "21", "true"),
        (10_000_000_000, 0, "20000", "true"),
    ],
)
def test_rows_are_sorted_in_small_tasks_where_they_are_many(
    spark: SparkSession, records: int, rows: int, tasks: str, adaptive: str
) -> None:
    configure_for(spark, records, rows=rows)
    names = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    assert tuple(map(spark.conf.get, names)) == (tasks, adaptive)
    configure_for(spark, 0)


@pytest.mark.parametrize("adaptive", [False, True])
def test_persisted_frames_leave_no_session_in_the_heap(spark: SparkSession, adaptive: bool) -> None:
    """As those of an audit of few records, and those of a lake, whose queries are adaptive."""
    configure_for(spark, 0)
    if adaptive:
        spark.conf.set("spark.sql.adaptive.enabled", "true")
    try:
        counted = []
        for number in range(3):
            assert cached(spark.range(number, 10)).count() == 10 - number
            uncache(spark)
            counted.append(sessions_of(spark))
        assert len(set(counted)) == 1, counted
    finally:
        configure_for(spark, 0)


def test_each_function_of_pyspark_asks_the_jvm_once(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    F.lit("known by now")
    assert spark._jvm is not None
    client, asked = spark._jvm._gateway_client, []
    real = client.send_command

    def send(command: str, *arguments: Any, **options: Any) -> Any:
        asked.append(command)
        return real(command, *arguments, **options)

    monkeypatch.setattr(client, "send_command", send)
    F.lit("x")
    # What Python forgets is told to the JVM whenever it is.
    assert len([command for command in asked if not command.startswith("m\n")]) == 1, asked


def test_what_is_cached_may_be_larger_than_the_heap() -> None:
    settings = (
        f"--conf spark.ui.enabled=false --conf spark.sql.variable.substitute=true --driver-java-options '{QUICK}'"
    )
    small = f"--driver-memory 512m --master local[2] {settings} pyspark-shell"
    ours = {"PYSPARK_SUBMIT_ARGS": small, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", CACHES_THEM]
    done = subprocess.run(
        command, env=os.environ | ours, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
