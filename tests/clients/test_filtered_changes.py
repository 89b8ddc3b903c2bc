"""pt-online-schema-change on a table that the filters name, with and without filters.shadow_tables."""

import re
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.clients.beside import Beside, execute
from tests.clients.percona import Tools, source, sysbench
from tests.harness.pair import Pair
from tests.harness.programs import refused, run, run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.integration, pytest.mark.clients]

FILTERS: dict[str, Any] = {"include_tables": ["sb.sbtest1", "all_of_it.*"]}
SHADOWS = FILTERS | {"shadow_tables": ["_{table}_new", "_{table}_old"]}
CHANGE = "ADD COLUMN extra INT NOT NULL DEFAULT 7, MODIFY pad VARCHAR(80) NOT NULL"


@pytest.fixture
def leader(mysql_server: MySqlFactory) -> MySql:
    return mysql_server(server_id=1)


@pytest.fixture
def follower(mysql_server: MySqlFactory) -> MySql:
    return mysql_server(server_id=2)


@pytest.fixture
def tools() -> Tools:
    return Tools.fetched()


def change_online(tools: Tools, leader: MySql, change: str, *options: str) -> None:
    table = source(leader, D="sb", t="sbtest1")
    tools.run("pt-online-schema-change", "--execute", f"--alter={change}", *options, table)


def test_with_shadow_tables(
    tmp_path: Path, leader: MySql, follower: MySql, mysql_server: MySqlFactory, kafka: Kafka, tools: Tools
) -> None:
    others = follower, mysql_server("--report-host=127.0.0.1", server_id=3)
    with Beside.running(tmp_path, leader, others, kafka, name="shadows", filters=SHADOWS) as beside:
        execute(leader, "CREATE DATABASE sb")
        tools.run(*sysbench(tools, leader, "prepare"))
        execute(leader, "CREATE DATABASE unseen", "CREATE TABLE unseen.t (i INT)", "INSERT INTO unseen.t VALUES (1)")
        load = tools.start(*sysbench(tools, leader, "--time=6", "--rate=50", "run"))
        change_online(tools, leader, CHANGE, "--chunk-size=300")
        load.communicate(timeout=120)
        beside.judge("pt-online-schema-change with include_tables and shadow_tables", "sb")
        assert "unseen" not in [name for (name,) in execute(follower, "SHOW DATABASES")]
    beside.audit()


def test_without_shadow_tables(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, tools: Tools) -> None:
    """What the message says, step by step, leads to the same rows, without a fresh copy."""
    pair = Pair.make(tmp_path, leader, follower, kafka, name="crossing", source={"filters": FILTERS})
    pair.on_leader("CREATE DATABASE sb")
    tools.run(*sysbench(tools, leader, "prepare"))
    pair.replicate()
    pair.on_leader("UPDATE sb.sbtest1 SET k = 1 WHERE id = 1")
    change_online(tools, leader, CHANGE)
    pair.on_leader("UPDATE sb.sbtest1 SET k = 2, extra = 8 WHERE id = 2")
    line = refused("cdc-producer", pair.source, "--until-current", status=3)
    assert "do its ALTER on the followers by hand, skip this statement, and then set filters.shadow_tables = " in line
    assert '["_{table}_new", "_{table}_old"]' in line
    run_well("cdc-consumer", pair.target, "--until-current")
    pair.on_follower(f"ALTER TABLE sb.sbtest1 {CHANGE}")
    found = re.search(r" at (\S+:\d+)[:;]", line)
    assert found, line
    run_well("cdc-producer", pair.source, "--skip", found[1], "--until-current")
    same = {"resource": "crossing", "topic": "crossing", "filters": SHADOWS}
    assert write_profile(tmp_path, leader, kafka, name="crossing-source", **same) == pair.source
    pair.replicate()
    assert content(follower, "sb") == content(leader, "sb")
    # One more change takes the table through the topic as a whole, after which the audit knows all of it.
    assert "skipped event" in audited(pair, tmp_path / "drift", status=1)
    change_online(tools, leader, "ENGINE=InnoDB")
    pair.on_leader("UPDATE sb.sbtest1 SET k = 3 WHERE id = 3")
    pair.replicate()
    assert content(follower, "sb") == content(leader, "sb")
    audited(pair, tmp_path / "equal", status=0)


def audited(pair: Pair, report: Path, *, status: int) -> str:
    run_well("cdc-producer", pair.capture, "--until-current")
    done = run("cdc-audit", "--leader", pair.source, "--follower", pair.capture, "--report", report)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout
