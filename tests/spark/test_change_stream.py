"""A stream of the data source goes on through an ALTER and records of several messages, and after a restart."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.spark import register
from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.spark, pytest.mark.integration]

LARGE = 300_000


MODES: dict[str, dict[str, Any]] = {
    "single": {}, "plain": {"transactions": False}, "per_table": {"layout": "per_table"},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_stream_goes_on(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, spark: SparkSession, mode: str
) -> None:
    """`make test` has test_tables, which reads such a stream without Spark."""
    leader = mysql_server()
    settings = {"kafka": MODES[mode], "producer": {"message_bytes": 100_000}}
    pair = Pair.make(tmp_path, leader, leader, kafka, name=f"stream-{mode}", source=settings)
    pair.on_leader("CREATE DATABASE streamed")
    register(spark)
    steps = [
        ("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))", "INSERT INTO t VALUES (1, 'a'), (2, 'b')"),
        ("UPDATE t SET name = 'c' WHERE id = 1", "ALTER TABLE t ADD big LONGTEXT, RENAME COLUMN name TO title"),
        (f"INSERT INTO t VALUES (3, 'd', REPEAT('x', {LARGE}))", "DELETE FROM t WHERE id = 2"),
        ("CREATE TABLE u (id INT PRIMARY KEY)", "BEGIN", "INSERT INTO u VALUES (1)", "DELETE FROM t WHERE id = 3",
         "COMMIT"),
    ]  # fmt: skip
    for number, statements in enumerate(steps):
        pair.on_leader(*statements, database="streamed")
        run_well("cdc-producer", pair.source, "--until-current")
        reader = spark.readStream.format("cdc").option("profile", str(pair.source))
        written = reader.load().writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = written.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        query.awaitTermination()
        assert query.exception() is None, number
    batch = spark.read.format("cdc").option("profile", str(pair.source)).load()
    found = spark.read.schema(batch.schema).parquet(str(tmp_path / "out"))
    columns = ["database", "table", "op", "before", "after", "sequence", "row", "gtid", "position", "ends_transaction"]
    assert texts(found.select(*columns)) == texts(batch.select(*columns))
    rows = {(row.sequence, row.op): row for row in found.collect() if row.database == "streamed"}
    assert [op for _, op in sorted(rows)] == ["insert", "update", "insert", "delete", "insert", "delete"]
    (large,) = (row for row in rows.values() if row.op == "insert" and row.after and row.after.get("big"))
    assert len(large.after["big"]) > LARGE


def texts(frame: DataFrame) -> list[str]:
    """The rows in an order that no partition and no map decides."""
    return sorted(json.dumps(row.asDict(recursive=True), sort_keys=True) for row in frame.collect())
