"""cdc-producer's connection to the leader: cut, killed, starved, and settings that change while it lasts."""

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cdc.kafka import commit_log
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import events, position
from tests.harness.leader_settings import gtid_options
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import json_lines, records, refused, run_well, running, write_profile
from tests.harness.relay import Relay
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def keys(path: Path) -> list[int]:
    """The keys in the topic, which must have neither gap nor repeat."""
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    return [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]


def insert(leader: MySql, rows: int) -> None:
    """One statement, one transaction, of ``rows`` rows of 16 kB."""
    ((first,),) = execute(leader, "SELECT COUNT(*) FROM d.a")
    values = ", ".join(f"({number}, REPEAT('x', 16000))" for number in range(first, first + rows))
    execute(leader, f"INSERT INTO d.a VALUES {values}")


def dumps(leader: MySql) -> list[int]:
    """The connections over which the leader sends its binlog."""
    return [row[0] for row in execute(leader, "SHOW PROCESSLIST") if str(row[4]).startswith("Binlog Dump")]


def dump_state(leader: MySql) -> str:
    """Returns the state, as SHOW PROCESSLIST has it, of the newest connection that sends the binlog."""
    rows = execute(leader, "SHOW PROCESSLIST")
    return str(max(row for row in rows if str(row[4]).startswith("Binlog Dump"))[6])


def newest(kafka: Kafka, topic: str) -> Entry:
    """The commit log's newest entry."""
    settings = {"bootstrap.servers": kafka.bootstrap_servers}
    return next(iter(commit_log.entries(settings, topic=f"{topic}.commits", resource=topic)))


Trouble = Callable[[MySql, "subprocess.Popen[str]", Relay], None]


def stall(leader: MySql, process: "subprocess.Popen[str]", relay: Relay) -> None:
    """The leader ends the connection of a producer that does not read."""
    process.send_signal(signal.SIGSTOP)
    try:
        relay.slowly = 0.0
        execute(leader, f"KILL {max(dumps(leader))}")
        until(lambda: not dumps(leader), what="the leader's end of the connection")
    finally:
        process.send_signal(signal.SIGCONT)


def kill(leader: MySql, process: "subprocess.Popen[str]", relay: Relay) -> None:
    """The leader ends the stream as if it were complete."""
    execute(leader, f"KILL QUERY {max(dumps(leader))}")
    relay.slowly = 0.0


def restart(leader: MySql, process: "subprocess.Popen[str]", relay: Relay) -> None:
    leader.stop()
    leader.start()
    relay.slowly = 0.0


@pytest.mark.parametrize(("gtids", "troubles"), [("ON", (stall, restart)), in_long_runs("OFF", (kill, restart))])
def test_a_connection_that_ends_in_the_middle_of_a_statement(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, gtids: str, troubles: tuple[Trouble, ...]
) -> None:
    leader = mysql_server(*gtid_options(gtids))
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY, t VARCHAR(16000))")
    with Relay(leader.port) as relay:
        steps, through = {"commit_records": 2, "record_bytes": 100_000}, {"port": relay.port}
        path = write_profile(tmp_path, leader, kafka, name=f"ends-{gtids}", producer=steps, database=through)
        for relay.reset in (False, True):
            insert(leader, 165)
            relay.cuts = [2_500_000, 500_000, 1_200_000]
            log = run_well("cdc-producer", path, "--until-current")
            assert not relay.cuts, log
        # More than sockets hold, so that the leader has to wait for one who does not read.
        for trouble in troubles:
            insert(leader, 400)
            relay.slowly = 0.002  # so that the trouble comes in time, however fast the machine is
            with running("cdc-producer", path) as process:
                until(lambda: newest(kafka, path.stem).partial, what="a part of the transaction")
                assert dump_state(leader).startswith("Sending")
                trouble(leader, process, relay)
                insert(leader, 1)
                end = Position(*position(leader))
                until(lambda end=end: newest(kafka, path.stem).position == end, what=f"all rows, {trouble.__name__}")
    ((rows,),) = execute(leader, "SELECT COUNT(*) FROM d.a")
    assert keys(path) == list(range(rows))


def test_settings_that_change_while_it_is_connected(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """And tools that look for replicas, to connect to each, do not find the producer."""
    leader = mysql_server()
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (`ж` TINYINT UNSIGNED)", "CREATE TABLE d.hidden (i INT)")
    copies = {"on_unrepeatable": "copy"}  # no copy would be the last one while the leader logs all rows so
    path = write_profile(
        tmp_path, leader, kafka, name="settings", filters={"exclude_tables": ["d.hidden"]}, producer=copies
    )
    run_well("cdc-producer", path, "--until-current")
    with running("cdc-producer", path) as process:
        execute(leader, "INSERT INTO d.a VALUES (250)")
        until(lambda: len(records(path)) == 3, what="the first row")
        assert dumps(leader)
        assert execute(leader, "SHOW REPLICAS") == []
        execute(
            leader,
            "SET GLOBAL binlog_checksum = NONE", *["INSERT INTO d.a VALUES (251), (252), (253)"] * 2,
            "ALTER TABLE d.a COMMENT 'to the last letter'",
            "SET GLOBAL binlog_checksum = CRC32", "INSERT INTO d.a VALUES (254)",
            "SET GLOBAL binlog_row_metadata = MINIMAL", "INSERT INTO d.hidden VALUES (1)",
            "SET GLOBAL binlog_row_metadata = FULL", "INSERT INTO d.a VALUES (255)",
        )  # fmt: skip
        until(lambda: len(records(path)) == 8, what="all records")
        assert process.poll() is None
        execute(leader, "SET GLOBAL binlog_row_metadata = MINIMAL", "INSERT INTO d.a VALUES (1)")
        assert process.wait(LIMIT_SECONDS) == 3
        assert process.stderr is not None
        assert "SET PERSIST binlog_row_metadata = FULL" in process.stderr.read()
    found = records(path)
    assert [record.query for record in found if record.query][2:] == ["ALTER TABLE d.a COMMENT 'to the last letter'"]
    rows = [row.after[0]["UnsignedInteger"] for record in found for row in record.rows if row.after]
    assert rows == [250, 251, 252, 253, 251, 252, 253, 254, 255]
    assert {record.columns for record in found if record.rows} == {("ж",)}


def test_table_numbers_start_anew_with_a_server(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """A restarted server gives numbers that other tables had before; filters tell schemas apart."""
    leader = mysql_server()
    # Its numbers begin where those after the later restarts do, whatever tables it had in earlier tests.
    leader.stop()
    leader.start()
    tables = ("one.a", "one.b", "two.a")
    execute(leader, "CREATE DATABASE one", "CREATE DATABASE two")
    execute(leader, *(f"CREATE TABLE {table} (i INT, name CHAR(5) DEFAULT '{table}')" for table in tables))
    path = write_profile(tmp_path, leader, kafka, name="numbers", filters={"include_tables": ["one.a", "one.b"]})
    some = write_profile(tmp_path, leader, kafka, name="some", filters={"include_tables": ["one.a"]})
    numbers = []
    for turn in range(3):
        start = position(leader)
        execute(leader, *(f"INSERT INTO {tables[(turn + i) % 3]} (i) VALUES ({turn})" for i in range(3)))
        maps = [event.data[19:25] for event in events(leader, start) if event.type == et.TABLE_MAP]
        numbers.append(dict(zip(maps, [tables[(turn + i) % 3] for i in range(3)], strict=True)))
        leader.stop()
        leader.start()
    shared = set(numbers[0]) & set(numbers[1]) & set(numbers[2])
    assert any(len({each[number] for each in numbers}) == 3 for number in shared), "no number was given again"
    for profile, wanted in ((path, {"one.a", "one.b"}), (some, {"one.a"})):
        run_well("cdc-producer", profile, "--until-current")
        rows = [(record, row.after) for record in records(profile) for row in record.rows if row.after]
        assert {f"{record.uri.database}.{record.uri.table}" for record, _ in rows} == wanted
        assert all(after[1] == {"String": f"{record.uri.database}.{record.uri.table}"} for record, after in rows)
        assert len(rows) == 3 * len(wanted)


def test_a_table_map_that_cannot_be_carried_is_not_passed_over(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """The reader stops at the same event each time, also when what follows could be read."""
    execute(leader, "CREATE DATABASE half", "CREATE TABLE half.a (i INT)")
    path = write_profile(
        tmp_path, leader, kafka, name="half", filters={"include_dbs": ["half"]}, producer={"start": "now"}
    )
    run_well("cdc-producer", path, "--until-current")
    minimal, full = (f"SET GLOBAL binlog_row_metadata = {value}" for value in ("MINIMAL", "FULL"))
    execute(leader, minimal, "INSERT INTO half.a VALUES (1)", full, "INSERT INTO half.a VALUES (2)")
    line = refused("cdc-producer", path, "--until-current", status=3)
    assert "binlog_row_metadata" in line
    assert refused("cdc-producer", path, "--until-current", status=3) == line
    assert json_lines(path) == []


def test_failures_between_which_records_are_committed_do_not_add_up(
    tmp_path: Path, leader: MySql, kafka: Kafka
) -> None:
    """As in a rolling restart, with an interval between the failures that is shorter than ``Retry`` knows by itself."""
    execute(leader, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY)")
    path = write_profile(
        tmp_path, leader, kafka, name="rolling", filters={"include_dbs": ["d"]}, producer={"retry_seconds": 0}
    )
    run_well("cdc-producer", path, "--until-current")
    with running("cdc-producer", path) as process:
        for number in range(6):
            execute(leader, f"INSERT INTO d.a VALUES ({number})")
            until(lambda number=number: process.poll() is not None or number in keys(path), what=f"row {number}")
            assert process.poll() is None, f"ended with {process.returncode} after {number} failures"
            execute(leader, *(f"KILL {connection}" for connection in dumps(leader)))
