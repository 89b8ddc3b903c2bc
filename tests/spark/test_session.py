"""The session of an audit: how it is set for tables that are larger than its memory."""

import os
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from cdc.spark.job.session import configure_for
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.spark

# 800 MB, in records of 100 rows, 20 kB each.
RECORDS = 40_000
CACHES_THEM = f"""
from pyspark import StorageLevel
from cdc.spark.job.session import session, configure_for

spark = session()
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
    ],
)
def test_rows_are_sorted_in_small_tasks_where_they_are_many(
    spark: SparkSession, records: int, rows: int, tasks: str, adaptive: str
) -> None:
    configure_for(spark, records, rows=rows)
    names = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")
    assert tuple(map(spark.conf.get, names)) == (tasks, adaptive)
    configure_for(spark, 0)


def test_what_is_cached_may_be_larger_than_the_heap() -> None:
    small = "--driver-memory 512m --master local[2] --conf spark.ui.enabled=false pyspark-shell"
    ours = {"PYSPARK_SUBMIT_ARGS": small, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", CACHES_THEM]
    done = subprocess.run(
        command, env=os.environ | ours, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
