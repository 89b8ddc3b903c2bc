"""Statements that the follower executes in another form: the servers agree, and the audit calls that no drift."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_tables_of_tablespaces_that_the_follower_has_not(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    name = "own_files"
    only = {"producer": {"start": "now"}, "filters": {"include_dbs": [name, "cdc"]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, **only)
    for profile in (pair.source, pair.capture):
        run_well("cdc-producer", profile, "--until-current")
    pair.on_leader(f"CREATE TABLESPACE `{name} 1` ADD DATAFILE '{name}.ibd'", f"CREATE DATABASE {name}")
    pair.on_leader(
        f"CREATE TABLE a (tablespace INT PRIMARY KEY) COMMENT 'TABLESPACE x', TABLESPACE = `{name} 1`",
        "CREATE TABLE b (i INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (2)",
        f"ALTER TABLE b TABLESPACE `{name} 1`, ADD COLUMN j INT DEFAULT 3",
        "CREATE TABLE c LIKE a",
        "INSERT INTO b VALUES (4, 4)",
        f"CREATE TABLE d (i INT PRIMARY KEY) TABLESPACE `{name} 1` SELECT i, j FROM b",
        "ALTER TABLE a TABLESPACE innodb_file_per_table",
        database=name,
    )
    log = pair.replicate()
    assert log.count("table gets a tablespace of its own sequence") == 3
    assert f'instead_of="{name} 1"' in log
    theirs, ours = content(leader, name), content(follower, name)
    for table in "abcd":
        assert theirs[table]["rows"] == ours[table]["rows"], table
    assert "TABLESPACE `innodb_file_per_table`" in ours["b"]["definition"]
    assert pair.audit(spark, tmp_path / "report").exit_status == 0
    pair.on_leader(f"DROP DATABASE {name}", f"DROP TABLESPACE `{name} 1`")
