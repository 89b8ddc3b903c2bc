"""A follower whose capture begins with a copy of it, long after its consumer: the audit judges from there on."""

from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load
from cdc.sandbox.server.kafka import Kafka
from cdc.spark.compare.row_drift import BEFORE_CAPTURE, FOREIGN
from cdc.spark.ddl.table_copies import ALTERED
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.pipeline import audit_topics
from cdc.spark.report.outcome import Audit
from cdc.spark.state.coverage import identity
from cdc.spark.state.store import StateStore
from cdc.spark.topics import Replication
from tests.checks.compare import content
from tests.checks.told import told
from tests.harness.pair import Pair
from tests.harness.programs import run, run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]

NAME = "late_capture"
NUMBERS = "WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 900) SELECT "


def made(folder: Path, pair: Pair, kafka: Kafka) -> Pair:
    """A pair whose follower has applied changes for a while, and has been changed by others, before its capture."""
    only = {"filters": {"include_dbs": [NAME]}}
    capture = {"filters": {"include_dbs": [NAME, "cdc"]}, "producer": {"start": "copy"}}
    found = Pair.make(folder, pair.leader, pair.follower, kafka, name=NAME, source=only, target=only, capture=capture)
    found.on_leader(
        f"CREATE DATABASE {NAME}", f"USE {NAME}",
        "CREATE TABLE k (id INT PRIMARY KEY, f FLOAT, t TIMESTAMP(3) NULL, j JSON, e ENUM('a', 'ü'), b BINARY(4), "
        "v INT AS (id + 1), d DECIMAL(9, 3))",
        "CREATE TABLE named (name VARCHAR(20) PRIMARY KEY, p DECIMAL(9, 3)) COLLATE utf8mb4_0900_ai_ci",
        "CREATE TABLE bare (n INT, f FLOAT, j JSON)",
        "CREATE TABLE altered (id INT PRIMARY KEY)", "INSERT INTO altered VALUES (1), (2), (3)",
        "ALTER TABLE altered ADD n INT NOT NULL DEFAULT 7",
        "CREATE TABLE nothing (id INT PRIMARY KEY)", "CREATE TABLE gone (id INT PRIMARY KEY)",
        f"INSERT INTO k (id, f, j, e, b) {NUMBERS} i, i / 7, "
        "JSON_OBJECT('n', CAST(i / 3 AS DECIMAL(9, 4)), 'd', CURRENT_DATE), 2, 'x' FROM n",
        "INSERT INTO named VALUES ('é', 1.5), ('b', 2.25), ('Ça', -3)",
        "INSERT INTO bare SELECT id DIV 3, IF(id % 2, f, NULL), IF(id % 5, j, NULL) FROM k",
        "INSERT INTO gone VALUES (1)",
    )  # fmt: skip
    found.replicate()
    found.on_leader("UPDATE k SET f = -f WHERE id % 100 = 0", "DELETE FROM k WHERE id = 5", "DROP TABLE gone",
                    "DELETE FROM bare WHERE n = 7 LIMIT 1", database=NAME)  # fmt: skip
    found.replicate()
    found.on_follower(
        "DELETE FROM k WHERE id = 7", "UPDATE k SET e = 1 WHERE id = 8", "INSERT INTO k (id) VALUES (1000)",
        "UPDATE named SET name = 'B' WHERE name = 'b'", "DELETE FROM bare WHERE n = 9 AND f IS NULL LIMIT 1",
        "UPDATE altered SET n = 8 WHERE id = 2", database=NAME,
    )  # fmt: skip
    return found


def by_kind(audit: Audit) -> list[tuple[str, str, str]]:
    return sorted((row.table, row.kind, row.cause) for row in audit.drifted)


PLANTED = [
    ("bare", "missing", BEFORE_CAPTURE), ("k", "different", BEFORE_CAPTURE), ("k", "extra", BEFORE_CAPTURE),
    ("k", "missing", BEFORE_CAPTURE), ("named", "extra", BEFORE_CAPTURE), ("named", "missing", BEFORE_CAPTURE),
]  # fmt: skip


@pytest.mark.long
def test_a_capture_that_begins_with_a_copy(pair: Pair, kafka: Kafka, tmp_path: Path, spark: SparkSession) -> None:
    """``make test`` has tests/spark/test_verdicts.py, with late_capture.txt, of what two servers might log."""
    late = made(tmp_path, pair, kafka)
    profiles = {LEADER: load(late.source), FOLLOWER: load(late.capture)}
    run_well("cdc-producer", late.capture, "--until-current")

    def audited(step: str) -> Audit:
        """On from the state, and from the beginning: one verdict."""
        whole = late.audit(spark, tmp_path / step)
        with closing(StateStore.open(spark, tmp_path / "state", identity(profiles, None))) as state:
            stepwise = audit_topics(spark, Replication(profiles), tmp_path / f"{step} stepwise", state)
        assert told(stepwise, ordered=False) == told(whole, ordered=False)
        return whole

    # The leader is idle: the copy of the checkpoint tells how far the follower is.
    first = audited("idle")
    assert (first.verdict, first.reasons, by_kind(first)) == ("drift", [], PLANTED)
    assert [(each.table, each.late) for each in first.under_copy] == [("altered", ALTERED)]
    assert (first.foreign_writes, first.schema, first.discontinuities) == (0, [], {"leader": 0, "follower": 0})
    late.on_leader(
        "UPDATE k SET f = 1 WHERE id = 9", "UPDATE altered SET n = 9 WHERE id = 3", "ALTER TABLE named ADD x INT",
        "UPDATE named SET x = 1 WHERE name = 'é'", "CREATE TABLE later LIKE k", "INSERT INTO later (id) VALUES (1)",
        "UPDATE bare SET f = -f WHERE n % 100 = 0", database=NAME,
    )  # fmt: skip
    late.replicate()
    late.on_follower("UPDATE later SET d = 1", "DELETE FROM k WHERE id = 11", database=NAME)
    drifted = audited("drifted")
    foreign = [("k", "missing", FOREIGN), ("later", "different", FOREIGN)]
    assert (drifted.verdict, by_kind(drifted)) == ("drift", sorted([*PLANTED, *foreign]))
    assert (drifted.foreign_writes, drifted.schema) == (2, [])

    # The ways out: rows are repaired, and the leader copies what can't be judged.
    asked = run("cdc-repair", late.source, "--report", tmp_path / "drifted")
    assert asked.returncode == 0, asked
    run_well("cdc-producer", late.source, "--copy", f"{NAME}.altered")
    late.replicate()
    clean = audited("clean")
    assert (clean.verdict, clean.reasons, clean.under_copy, clean.drifted_rows) == ("no drift", [], [], 0)
    assert {table.table: table.leader_rows for table in clean.tables if table.leader_rows} == {
        "altered": 3, "bare": 899, "k": 899, "later": 1, "named": 3,
    }  # fmt: skip
    assert content(late.follower, NAME) == content(late.leader, NAME)
