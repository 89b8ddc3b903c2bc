"""cdc-audit on what the programs make of hard streams: a topic a table, Kafka transactions that were aborted, leader
transactions that were cut, XA."""

import json
import signal
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import run, run_well
from tests.harness.server_fixtures import MySqlFactory
from tests.spark.conftest import RunAudit

pytestmark = [pytest.mark.spark, pytest.mark.integration]

# One large transaction becomes many of Kafka's, and a record several messages.
SMALL = {"commit_records": 4, "record_bytes": 1000, "message_bytes": 1000}


def test_hard_streams(mysql_server: MySqlFactory, kafka: Kafka, tmp_path: Path, run_audit: RunAudit) -> None:
    leader, follower = mysql_server(server_id=1), mysql_server(server_id=2)
    ours, theirs = ({"layout": "per_table", "prefix": f"hard-{side}.", "partitions": 2} for side in ("l", "f"))
    pair = Pair.make(
        tmp_path, leader, follower, kafka, name="hard", producer=SMALL,
        source={"kafka": ours}, target={"kafka": ours}, capture={"kafka": theirs},
    )  # fmt: skip
    pair.on_leader("CREATE DATABASE hard")
    pair.on_leader(
        "CREATE TABLE a (id INT PRIMARY KEY, name CHAR(100))",
        "CREATE TABLE b (name VARCHAR(20))",
        "XA START 'x'", "INSERT INTO a VALUES (-1, 'xa')", "INSERT INTO b VALUES ('xa')", "XA END 'x'",
        "XA PREPARE 'x'", "XA COMMIT 'x'",
        "BEGIN",
        "INSERT INTO a WITH RECURSIVE n AS (SELECT 0 i UNION ALL SELECT i + 1 FROM n WHERE i < 300) SELECT i, i FROM n",
        "INSERT INTO b SELECT name FROM a",
        "UPDATE a SET id = id + 1000 WHERE id % 2",
        "COMMIT",
        "DELETE FROM a WHERE id = 0",
        # 3 MB that don't compress: by default brokers take messages of 1 MB.
        "CREATE TABLE c (id INT PRIMARY KEY, t LONGTEXT)",
        "SET cte_max_recursion_depth = 30000, group_concat_max_len = 10000000",
        "INSERT INTO c WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n WHERE i < 24000) "
        "SELECT 1, GROUP_CONCAT(SHA2(i, 512)) FROM n",
        database="hard",
    )  # fmt: skip
    for profile in (pair.source, pair.capture):
        # What was sent by then is in the topics, in a Kafka transaction that nobody commits.
        done = run("killed_producer", profile, "after a flush", "30")
        assert done.returncode == -signal.SIGKILL, done.stderr
        run_well("cdc-producer", profile, "--until-current")
        run_well("cdc-consumer", pair.target, "--until-current")
    options = ["--leader", str(pair.source), "--follower", str(pair.capture), "--report", str(tmp_path / "report")]
    run_well("cdc-producer", pair.capture, "--until-current")
    done = run_audit(*options, "--consumer", str(pair.target))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    told = json.loads((tmp_path / "report/report.json").read_text())
    assert {(table["table"], table["leader_rows"], table["follower_rows"]) for table in told["tables"]} == {
        ("a", 301, 301),
        ("b", 303, 303),
        ("c", 1, 1),
    }
    assert content(pair.follower, "hard")["c"] == content(pair.leader, "hard")["c"]
