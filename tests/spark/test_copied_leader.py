"""A leader that was copied into its topic, and tables that were copied again, judged by what both servers logged."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from tests.harness.pair import Pair
from tests.harness.programs import run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_a_copied_leader_and_a_table_that_was_put_right(
    pair: Pair, kafka: Kafka, tmp_path: Path, spark: SparkSession
) -> None:
    name = "copied_leader"
    filters = {"filters": {"include_dbs": [name]}}
    made = Pair.make(
        tmp_path, pair.leader, pair.follower, kafka, name=name, source=filters | {"producer": {"start": "copy"}},
        target=filters, capture={"filters": {"include_dbs": [name, "cdc"]}},
    )  # fmt: skip
    made.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}",
        "CREATE TABLE k (id INT PRIMARY KEY, f FLOAT, t TIMESTAMP(3) NULL DEFAULT '2020-01-01 01:02:03', j JSON, "
        "e ENUM('a', 'ü'), b BINARY(4), v INT AS (id + 1))",
        "CREATE TABLE named (name VARCHAR(20) PRIMARY KEY, p DECIMAL(9, 3)) COLLATE utf8mb4_0900_ai_ci",
        "CREATE TABLE bare (n INT, f FLOAT, j JSON)",
        "CREATE VIEW shown AS SELECT id FROM k",
        "INSERT INTO k (id, f, j, e, b) WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
        """SELECT i, i / 7, JSON_OBJECT('n', CAST(i / 3 AS DECIMAL(9, 4)), 'd', CURRENT_DATE), 2, 'x' FROM n""",
        "INSERT INTO named VALUES ('é', 1.5), ('b', 2.25), ('Ça', -3)",
        "INSERT INTO bare SELECT id DIV 3, IF(id % 2, f, NULL), IF(id % 5, j, NULL) FROM k",
    )  # fmt: skip
    made.replicate()
    made.on_leader(
        "UPDATE k SET f = -f WHERE id % 100 = 0", "DELETE FROM named WHERE name = 'B'",
        "UPDATE bare SET f = -f WHERE n % 100 = 0", "DELETE FROM bare WHERE n = 7 LIMIT 1", database=name,
    )  # fmt: skip
    made.replicate()
    audit = made.audit(spark, tmp_path / "copied")
    assert (audit.verdict, audit.reasons, audit.schema) == ("no drift", [], [])
    assert not any(audit.discontinuities.values())
    assert {table.name[1]: table.leader_rows for table in audit.tables} == {"bare": 899, "k": 900, "named": 2}

    made.on_follower(
        "DELETE FROM k WHERE id % 300 = 1", "UPDATE k SET e = 1 WHERE id = 7", "INSERT INTO named VALUES ('zz', 9)",
        "SET sql_log_bin = 0", "DELETE FROM bare LIMIT 5", "INSERT INTO bare (n) VALUES (-1)", database=name,
    )  # fmt: skip
    run_well("cdc-producer", made.source, "--copy", f"{name}.*")
    made.replicate()
    audit = made.audit(spark, tmp_path / "again")
    assert (audit.verdict, audit.reasons, audit.drifted_rows, audit.under_copy) == ("no drift", [], 0, [])
    assert audit.foreign_writes == 3
