"""Where cdc-producer begins and goes on: after what a copy of the leader holds, and by what the leader has."""

import threading
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.leader_settings import gtid_options
from tests.harness.programs import records, refused, run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration

NO_GTIDS = gtid_options("OFF")
STRANGER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def execute(server: MySql, *statements: str) -> list[tuple[object, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def executed(server: MySql) -> str:
    ((text,),) = execute(server, "SELECT @@GLOBAL.gtid_executed")
    return str(text)


def copied(leader: MySql) -> tuple[str, str]:
    """A leader that has purged its first binlog, is copied and goes on: the copy's GTIDs, and its place."""
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY)", "INSERT INTO d.a VALUES (1)")
    execute(leader, "FLUSH BINARY LOGS", "PURGE BINARY LOGS TO 'binlog.000002'", "INSERT INTO d.a VALUES (2)")
    held = executed(leader)
    file, offset = execute(leader, "SHOW BINARY LOG STATUS")[0][:2]
    execute(leader, "INSERT INTO d.a VALUES (3)", "FLUSH BINARY LOGS", "UPDATE d.a SET i = 10 WHERE i = 1")
    return held, f"{file}:{offset}"


def started(folder: Path, leader: MySql, kafka: Kafka, name: str, start: str) -> Path:
    return write_profile(folder, leader, kafka, name=name, producer={"start": start})


@pytest.mark.parametrize("gtids", [True, False])
def test_after_a_copy(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, gtids: bool) -> None:
    leader = mysql_server(*(() if gtids else NO_GTIDS))
    held, place = copied(leader)
    name = f"copied-{gtids}"
    path = started(tmp_path, leader, kafka, name, held if gtids else place)
    run_well("cdc-producer", path, "--until-current")
    execute(leader, "INSERT INTO d.a VALUES (4)")
    run_well("cdc-producer", path, "--until-current")
    assert [(record.sequence, record.operation) for record in records(path)] == [(0, "Add"), (1, "Update"), (2, "Add")]
    assert [row.after for record in records(path) for row in record.rows] == [
        [{"SignedInteger": number}] for number in (3, 10, 4)
    ]


def test_after_what_is_no_copy_of_this_leader(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    leader = mysql_server()
    held, place = copied(leader)
    uuid = held.partition(":")[0]

    def said(start: str) -> str:
        return refused("cdc-producer", started(tmp_path, leader, kafka, "no_copy", start), "--until-current")

    assert "has not executed all of" in said(f"{held},{STRANGER}:1-3")
    assert "purged binlogs that the copy lacks" in said(f"{uuid}:1")
    assert "the leader has GTIDs" in said(place)
    assert "is not a position to start from" in said("yesterday")


def test_at_a_place_that_is_none(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    leader = mysql_server(*NO_GTIDS)
    copied(leader)
    file, size = execute(leader, "SHOW BINARY LOG STATUS")[0][:2]
    (inside,) = [row[1] for row in execute(leader, f"SHOW BINLOG EVENTS IN '{file}'") if row[2] == "Table_map"]

    def said(start: str) -> str:
        return refused("cdc-producer", started(tmp_path, leader, kafka, "no_place", start), "--until-current")

    assert f"the leader has no {file}:{int(str(size)) + 1}" in said(f"{file}:{int(str(size)) + 1}")
    assert "the leader has no binlog.000001:4" in said("binlog.000001:4")
    assert "has no GTIDs" in said(f"{STRANGER}:1-3")
    assert "the leader refuses the position" in said(f"{file}:{int(str(inside)) + 3}")
    path = started(tmp_path, leader, kafka, "inside", f"{file}:{inside}")
    assert "transaction" in refused("cdc-producer", path, "--until-current", status=3)


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
    now = started(tmp_path, leader, kafka, "long_set_now", "now")
    run_well("cdc-producer", now, "--until-current")
    execute(leader, "INSERT INTO d.a VALUES (1000)")
    run_well("cdc-producer", now, "--until-current")
    assert len(records(now)) == 1


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
