"""Percona Toolkit at work on a leader with the pair and a replica of MySQL's own beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import is_free
from tests.clients.beside import Beside, execute
from tests.clients.percona import SIZE, Tools, source, sysbench
from tests.harness.server_fixtures import MySqlFactory

pytestmark = [pytest.mark.integration, pytest.mark.clients]

USUAL_PORT = 3306  # at which tools look for replicas of a leader at that port
# Changes of a table that pt-online-schema-change makes, and its options.
CHANGES = {
    "a column": ("ADD COLUMN extra INT NOT NULL DEFAULT 7", []),
    "a type": ("MODIFY pad VARCHAR(80) NOT NULL, ADD KEY (c)", ["--chunk-size=300"]),
    "the engine": ("ENGINE=InnoDB", ["--no-drop-old-table"]),
    "no column": ("DROP COLUMN extra", ["--preserve-triggers"]),
    "the key": ("DROP PRIMARY KEY, ADD PRIMARY KEY (id, k)", ["--no-check-alter", "--no-check-unique-key-change"]),
}


@pytest.fixture
def tools() -> Tools:
    return Tools.fetched()


@pytest.fixture
def others(mysql_server: MySqlFactory) -> tuple[MySql, MySql]:
    """The follower, and the native replica, which reports its address as a DBA has it do."""
    return mysql_server(server_id=2), mysql_server("--report-host=127.0.0.1", server_id=3)


@pytest.fixture(params=[0, USUAL_PORT])
def leader(request: pytest.FixtureRequest, mysql_server: MySqlFactory) -> Iterator[MySql]:
    port = int(request.param)
    assert not port or is_free(port), f"port {port} is in use"
    server = mysql_server(port=port)
    yield server
    server.kill()


def test_an_online_schema_change_under_load(
    tmp_path: Path, leader: MySql, others: tuple[MySql, MySql], kafka: Kafka, tools: Tools
) -> None:
    name = f"osc{leader.port}"
    with Beside.running(tmp_path, leader, others, kafka, name=name) as beside:
        execute(leader, "CREATE DATABASE sb")
        tools.run(*sysbench(tools, leader, "prepare"))
        for what, (change, options) in CHANGES.items():
            load = tools.start(*sysbench(tools, leader, "--time=6", "--rate=50", "run"))
            table = source(leader, D="sb", t="sbtest1")
            tools.run("pt-online-schema-change", "--execute", f"--alter={change}", *options, table)
            said, _ = load.communicate(timeout=120)
            beside.judge(f"pt-online-schema-change: {what}", "sb")
            assert "queries performed" in said, said
    beside.audit()


def test_checksum_archiver_and_heartbeat(
    tmp_path: Path, leader: MySql, others: tuple[MySql, MySql], kafka: Kafka, tools: Tools
) -> None:
    """pt-table-checksum logs its statements as such, and they mean nothing to a follower: its database is left out."""
    name, filters = f"percona{leader.port}", {"exclude_dbs": ["percona"]}
    with Beside.running(tmp_path, leader, others, kafka, name=name, filters=filters) as beside:
        execute(leader, "CREATE DATABASE sb")
        tools.run(*sysbench(tools, leader, "prepare"))
        beside.compare("sb")
        found = tools.run(
            "pt-table-checksum",
            "--databases=sb",
            "--no-check-binlog-format",
            "--recursion-method=hosts",
            source(leader),
        )
        assert "sb.sbtest1" in found, found
        execute(leader, "CREATE TABLE sb.archive LIKE sb.sbtest1")
        tools.run(
            "pt-archiver", f"--source={source(leader, D='sb', t='sbtest1')}",
            f"--dest={source(leader, D='sb', t='archive')}", "--where=id % 2", "--limit=100", "--commit-each",
        )  # fmt: skip
        assert execute(leader, "SELECT COUNT(*) FROM sb.archive") == [(SIZE // 2,)]
        beat = ["--update", "--create-table", "--interval=0.1", "--run-time=3", "--database=sb", "--table=beat"]
        tools.run("pt-heartbeat", *beat, source(leader))
        beside.judge("pt-table-checksum, pt-archiver, pt-heartbeat", "sb")
    beside.audit()
