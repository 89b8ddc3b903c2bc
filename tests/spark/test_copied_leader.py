"""A leader that was copied into its topic, and tables that were copied again, judged by what both servers logged."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import run, run_well

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
        "CREATE TRIGGER fires BEFORE INSERT ON named FOR EACH ROW SET NEW.p = NEW.p + 1",
        "CREATE EVENT runs ON SCHEDULE EVERY 1 DAY STARTS '2100-01-01' DO DELETE FROM named",
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


def test_drifted_rows_are_repaired(pair: Pair, tmp_path: Path, spark: SparkSession) -> None:
    """More than report.json lists, with keys of several columns, and one row that is in the way of another."""
    database, report = "drifted_rows_are_repaired", tmp_path / "report"
    pair.on_leader(
        "CREATE TABLE k (name VARCHAR(20) COLLATE utf8mb4_0900_ai_ci, day DATE, n INT, j JSON, "
        "PRIMARY KEY (name, day), UNIQUE (n))",
        "INSERT INTO k WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 600) "
        "SELECT CONCAT('É''', i), '2020-02-29' + INTERVAL i DAY, i, JSON_OBJECT('n', i) FROM n",
        "CREATE TABLE some (id INT PRIMARY KEY)", "INSERT INTO some VALUES (1), (2)",
        database=database,
    )  # fmt: skip
    pair.replicate()
    pair.on_follower(
        "UPDATE k SET n = n + 1000 WHERE n <= 60", "UPDATE k SET n = 1 WHERE n = 1002", "DELETE FROM k WHERE n > 560",
        "INSERT INTO k SELECT CONCAT(name, '😀'), day, 10000 + n, j FROM k WHERE n BETWEEN 100 AND 120",
        "UPDATE k SET name = 'e''200' WHERE n = 200", "INSERT INTO some VALUES (3)",
        database=database,
    )  # fmt: skip
    audit = pair.audit(spark, report)
    assert [(each.table, each.missing, each.extra, each.different) for each in audit.tables] == [
        ("k", 100, 22, 1), ("some", 0, 1, 0),
    ]  # fmt: skip
    shown = run("cdc-repair", pair.source, "--report", report, "--dry-run")
    assert shown.returncode == 0, shown.stderr
    print(shown.stdout)
    pair.on_leader("UPDATE k SET n = -n WHERE n % 7 = 0", "DELETE FROM k WHERE n = 3", database=database)
    told = run("cdc-repair", pair.source, "--report", report)
    assert (told.returncode, told.stdout.count("by their keys")) == (0, 2), told
    log = pair.replicate()
    assert log.count("rows repaired") == 2
    print(log)
    again = pair.audit(spark, tmp_path / "again")
    assert (again.verdict, again.reasons, again.drifted_rows) == ("no drift", [], 0)
    assert content(pair.follower, database) == content(pair.leader, database)
