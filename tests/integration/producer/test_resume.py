"""Where cdc-producer begins and goes on by what the leader has: its transactions, and those that it has not sent."""

import threading
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.harness.programs import records, run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> list[tuple[object, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def executed(server: MySql) -> str:
    ((text,),) = execute(server, "SELECT @@GLOBAL.gtid_executed")
    return str(text)


def test_a_gtid_set_of_any_length(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    leader = mysql_server()
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY)")
    for number in range(60):
        gtid = f"{number:08x}-71ca-11e1-9e33-c80aa9429562:{number + 1}"
        execute(leader, f"SET gtid_next = '{gtid}'", f"INSERT INTO d.a VALUES ({number})")
    assert len(executed(leader)) > 2000
    path = write_profile(tmp_path, leader, kafka, name="long_set")
    run_well("cdc-producer", path, "--until-current")
    run_well("cdc-producer", path, "--until-current")
    assert len(records(path)) == 62
    now = write_profile(tmp_path, leader, kafka, name="long_set_now", producer={"start": "now"})
    run_well("cdc-producer", now, "--until-current")
    execute(leader, "INSERT INTO d.a VALUES (1000)")
    run_well("cdc-producer", now, "--until-current")
    assert len(records(now)) == 1


@pytest.mark.newer("RESET BINARY LOGS AND GTIDS")
def test_a_stream_that_begins_amid_a_commit_has_that_transaction(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    """A commit is in the binlog, and the position behind it, before its GTID is executed: it is none of those before
    the stream, also if it is the leader's first one.
    """
    leader = mysql_server()
    execute(
        leader,
        "CREATE DATABASE d",
        "CREATE TABLE d.a (i INT)",
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 600000",
        "RESET BINARY LOGS AND GTIDS",
    )
    for number, before in enumerate(("no transaction", "another one")):
        execute(leader, "SET GLOBAL rpl_semi_sync_source_enabled = ON")
        waiting = threading.Thread(target=execute, args=(leader, f"INSERT INTO d.a VALUES ({number})"))
        (_, end), done = position(leader), executed(leader)
        waiting.start()
        until(lambda end=end: position(leader)[1] != end, what="the commit in the binlog")
        assert executed(leader) == done
        path = write_profile(tmp_path, leader, kafka, name=f"amid_a_commit_{number}", producer={"start": "now"})
        run_well("cdc-producer", path, "--until-current")
        execute(leader, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
        waiting.join()
        execute(leader, "INSERT INTO d.a VALUES (10)")
        run_well("cdc-producer", path, "--until-current")
        assert len(records(path)) == 2, f"the transaction after {before}"


def test_a_leader_that_waits_for_a_replica_is_waited_for(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    leader = mysql_server()
    execute(
        leader,
        "CREATE DATABASE d",
        "CREATE TABLE d.a (i INT PRIMARY KEY)",
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_timeout = 600000",
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
    )
    path = write_profile(tmp_path, leader, kafka, name="semi_sync")
    waiting = threading.Thread(target=execute, args=(leader, "INSERT INTO d.a VALUES (1)"))
    run_well("cdc-producer", path, "--until-current")
    with running("cdc-producer", path):
        waiting.start()
        until(lambda: len(records(path)) == 3, what="what no replica has acknowledged")
    said = tmp_path / "said"
    with said.open("w") as log, running("cdc-producer", path, stderr=log):
        until(lambda: "has not executed all that it has sent" in said.read_text(), what="that it waits")
        execute(leader, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
        waiting.join()
        execute(leader, "INSERT INTO d.a VALUES (2)")
        until(lambda: len(records(path)) == 4, what="what comes after it")
