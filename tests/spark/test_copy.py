"""A follower that began from a copy (consumer.start): what the copy held is never compared, and the report says so."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.spark.compare import row_drift
from cdc.spark.report.phrases import verdict_sentence
from cdc.spark.report.renderers import terminal
from tests.harness.dump import dump, restore
from tests.harness.pair import Pair
from tests.harness.programs import run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]

UNTIL = "--until-current"


def test_a_follower_that_began_from_a_copy(pair: Pair, kafka: Kafka, tmp_path: Path, spark: SparkSession) -> None:
    """Also where the follower's capture has seen the copy, statement by statement, as foreign writes."""
    name = "began_from_a_copy"
    filters = {"filters": {"include_dbs": [name]}, "producer": {"start": "now"}}
    capture = {"filters": {"include_dbs": [name, "cdc"]}, "producer": {"start": "now"}}
    make = lambda **target: Pair.make(  # noqa: E731
        tmp_path, pair.leader, pair.follower, kafka, name=name, source=filters, capture=capture, target=target
    )
    made = make()
    run_well("cdc-producer", made.source, UNTIL)
    run_well("cdc-producer", made.capture, UNTIL)
    pair.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE k (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE bare (n INT)", "INSERT INTO k VALUES (1, 1), (2, 2), (3, 3)",
        "INSERT INTO bare VALUES (1), (1), (2)", "UPDATE k SET n = 9 WHERE id = 2",
        "ALTER TABLE bare ADD COLUMN a INT DEFAULT 5",
    )  # fmt: skip
    text, held = dump(pair.leader, name)
    restore(pair.follower, text.replace("SET @@SESSION.SQL_LOG_BIN= 0;", ""))
    made = make(consumer={"start": held})
    pair.on_leader(
        "UPDATE k SET n = 7 WHERE id = 1", "INSERT INTO bare VALUES (1, 5)", "DELETE FROM bare WHERE n = 2",
        "ALTER TABLE k ADD COLUMN a INT", "INSERT INTO k VALUES (4, 4, 4)", database=name,
    )  # fmt: skip
    made.replicate()
    audit = made.audit(spark, tmp_path / "true")
    assert (audit.verdict, audit.reasons, audit.schema, audit.copy) == ("no drift", [], [], held)
    sentence = verdict_sentence(audit)
    assert sentence.startswith("What has changed since the copy that it began from is on ")
    assert sentence.endswith(": 2 rows in 2 tables. No other row was compared.")
    assert "What the copy held was never compared" in "\n".join(terminal(audit))
    # Writes to rows that were in the copy only, of which one is undone.
    made.on_follower(
        "UPDATE k SET n = 0 WHERE id = 3", "UPDATE k SET n = 0 WHERE id = 2", "UPDATE k SET n = 9 WHERE id = 2",
        database=name,
    )  # fmt: skip
    audit = made.audit(spark, tmp_path / "drifted")
    found = [(each.table, each.kind, each.columns, each.cause) for each in audit.drifted]
    assert found == [("k", "different", ["n"], row_drift.FOREIGN)]
    assert audit.drifted[0].identity == {"id": '{"SignedInteger":3}'}
    assert sum(write.tables == [f"{name}.k"] for write in audit.foreign) >= 3
    assert f"have changed since were compared: {name}." in "\n".join(terminal(audit))


def test_a_capture_that_begins_with_a_copy_of_its_follower(
    pair: Pair, kafka: Kafka, tmp_path: Path, spark: SparkSession
) -> None:
    """It has the follower's rows, and not how they came: they are compared from there on."""
    name = "a_capture_that_begins_with_a_copy"
    capture = {"filters": {"include_dbs": [f"{name}*", "cdc"]}, "producer": {"start": "copy"}}
    source = {"filters": {"include_dbs": [f"{name}*"]}}
    made = Pair.make(tmp_path, pair.leader, pair.follower, kafka, name=f"{name}_", source=source, capture=capture)
    made.on_leader(f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, n INT)",
                   f"INSERT INTO {name}.t VALUES (1, 1), (2, 2)")  # fmt: skip
    made.replicate()
    run_well("cdc-producer", made.capture, UNTIL)
    made.on_leader(f"UPDATE {name}.t SET n = 7 WHERE id = 1")
    made.replicate()
    audit = made.audit(spark, tmp_path / "report")
    assert (audit.verdict, audit.reasons, audit.captured_at) == ("no drift", [], 3)
    assert [(each.table, each.leader_rows) for each in audit.tables if each.leader_rows] == [("t", 2)]
