"""The sandbox itself: servers that come up, come back, and never outlive whoever started them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from cdc.config.profile import load
from cdc.errors import UserError
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MARIADB, MYSQL, MySql, maria_db
from cdc.sandbox.server.process import Process, wait_until
from cdc.sandbox.servers import Servers
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration


def _value(server: MySql, sql: str) -> object:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    assert row is not None
    return row[0]


def test_a_new_server_is_fit_for_replication_and_outlives_kills(tmp_path: Path, leader: MySql, follower: MySql) -> None:
    """It has an empty binlog, the user, and an identity of its own; its data and port are those of before a kill."""
    server = MySql(tmp_path / "mysql").start()
    try:
        for setting, wanted in {
            "gtid_mode": "ON",
            "binlog_format": "ROW",
            "binlog_row_metadata": "FULL",
            "binlog_row_image": "FULL",
            "sync_binlog": 1,
            "innodb_flush_log_at_trx_commit": 1,
            "gtid_executed": "",
        }.items():
            assert _value(server, f"SELECT @@GLOBAL.{setting}") == wanted
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOG STATUS")
            row = cursor.fetchone()
            assert row is not None
            assert row[0] == "binlog.000001"
            cursor.execute("SHOW BINLOG EVENTS")
            assert [event[2] for event in cursor.fetchall()] == ["Format_desc", "Previous_gtids"]
            cursor.execute("CREATE DATABASE kept")
        port = server.port
        server.kill()
        assert not server.running()
        server.start()
        assert server.port == port
        assert _value(server, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'kept'") == 1
    finally:
        server.kill()
    for identity in ("@@server_uuid", "@@server_id"):
        assert _value(leader, f"SELECT {identity}") != _value(follower, f"SELECT {identity}")


def test_a_new_mariadb_is_fit_for_replication_and_outlives_kills(tmp_path: Path) -> None:
    server = maria_db(tmp_path / "mariadb", server_id=7).start()
    try:
        assert "MariaDB" in str(_value(server, "SELECT VERSION()"))
        for setting, wanted in {
            "server_id": 7,
            "gtid_strict_mode": 1,
            "binlog_format": "ROW",
            "binlog_row_metadata": "FULL",
            "binlog_row_image": "FULL",
            "gtid_binlog_pos": "",
        }.items():
            assert _value(server, f"SELECT @@GLOBAL.{setting}") == wanted
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINLOG EVENTS")
            assert [event[2] for event in cursor.fetchall()] == ["Format_desc", "Gtid_list", "Binlog_checkpoint"]
        with server.root() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE kept")
        server.kill()
        server.start()
        assert _value(server, "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'kept'") == 1
    finally:
        server.kill()


def test_a_sandbox_knows_the_kind_of_its_leader(tmp_path: Path) -> None:
    (tmp_path / ".cdc-sandbox").touch()
    (tmp_path / "ports.json").write_text('{"leader": "mariadb", "leader_port": 1, "follower_port": 2, "kafka_port": 3}')
    found = Servers.found(tmp_path)
    assert (found.leader.dialect, found.follower.dialect, found.leader.port) == (MARIADB, MYSQL, 1)


def test_a_sandbox_of_another_version_is_not_started_on_its_data(tmp_path: Path) -> None:
    """MySQL 9.7 would change the data of 8.0 before it refuses them."""
    (tmp_path / ".cdc-sandbox").touch()
    (tmp_path / "ports.json").write_text('{"mysql": "8.0", "leader_port": 1, "follower_port": 2, "kafka_port": 3}')
    assert "MySQL 8.0." in Servers.found(tmp_path).directions()
    for options in ({}, {"mysql": "8.0", "leader": "mariadb"}):
        with pytest.raises(UserError, match="the data there are of servers with --"):
            Servers(tmp_path, **options).start(say=print)


def test_a_setting_the_server_refuses_is_said_in_its_words(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown variable 'no-such-setting=1'"):
        MySql(tmp_path / "mysql", extra_args=["--no-such-setting=1"]).start()


def test_a_port_in_use_is_an_error(leader: MySql, kafka: Kafka, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"port {leader.port} is in use"):
        MySql(tmp_path / "mysql", port=leader.port).start()
    with pytest.raises(UserError, match=f"port {kafka.port} is in use"):
        Kafka(tmp_path / "kafka", port=kafka.port).start()


def test_a_server_that_runs_is_not_started_twice(leader: MySql) -> None:
    with pytest.raises(UserError, match="runs already"):
        MySql(leader.folder).start()


def test_a_broker_unpacks_its_libraries_in_its_folder(kafka: Kafka) -> None:
    """A killed JVM removes none of them. What a killed broker has when it starts again, integration/consumer/
    test_consumer.py shows."""
    admin = kafka.admin()
    admin.create_topics([NewTopic("packed", num_partitions=1)])["packed"].result(timeout=LIMIT_SECONDS)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "compression.type": "lz4"})
    producer.produce("packed", b"x" * 10_000)
    producer.flush(LIMIT_SECONDS)
    maps = Path(f"/proc/{kafka.process.pid}/maps").read_text().split()
    unpacked = {Path(word) for word in maps if word.endswith(".so") and "lz4" in word}
    assert unpacked
    assert all(path.is_relative_to(kafka.folder) for path in unpacked)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_servers_die_with_whoever_started_them(number: signal.Signals, tmp_path: Path) -> None:
    """Whatever program a server is: a small one takes its place."""
    program = (
        "import pathlib, signal, sys; from cdc.sandbox.server.process import Process\n"
        # A shell that runs the tests in the background has its children ignore Ctrl-C.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "Process('sleep', folder=pathlib.Path(sys.argv[1])).start(['sleep', '600'])\n"
        "print('up', flush=True); signal.pause()"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    server = Process("sleep", folder=tmp_path)
    with starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "up\n"
        assert server.running()
        starter.send_signal(number)
    assert wait_until(lambda: not server.running(), seconds=LIMIT_SECONDS)


def test_a_program_dies_with_its_guard(tmp_path: Path) -> None:
    process = Process("sleep", folder=tmp_path)
    process.start(["sleep", "600"])
    guard = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(guard, signal.SIGKILL)
    assert wait_until(lambda: not process.running(), seconds=LIMIT_SECONDS)
    process.kill()


def _sandbox(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "cdc.sandbox", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_up_outlives_its_command_until_down(tmp_path: Path) -> None:
    where = ("--dir", tmp_path)
    up = _sandbox("up", *where, "--leader-port=0", "--follower-port=0", "--kafka-port=0")
    assert (up.returncode, up.stderr) == (0, "")
    try:
        status = _sandbox("status", *where)
        assert status.returncode == 0
        assert status.stdout.count(" runs\n") == 3
        assert [load(tmp_path / f"{name}_profile.toml").database.user for name in ("producer", "consumer")] == [
            "fluvio"
        ] * 2
        asked = subprocess.run(
            [tmp_path / "mysql-follower", "-Ne", "SELECT CURRENT_USER()"], capture_output=True, text=True, check=True
        )
        assert asked.stdout == "fluvio@%\n"
        again = _sandbox("up", *where)
        assert again.returncode == 2
        assert "leader runs already" in again.stderr
    finally:
        down = _sandbox("down", *where, "--wipe")
    assert down.stdout.startswith("stopped leader, follower, kafka\n")
    assert not (tmp_path / "leader").exists()
    assert _sandbox("status", *where).returncode == 2


def test_a_sandbox_that_cannot_start_whole_does_not_start_at_all(tmp_path: Path, kafka: Kafka) -> None:
    where = ("--dir", tmp_path)
    up = _sandbox("up", *where, "--leader-port=0", "--follower-port=0", f"--kafka-port={kafka.port}")
    assert up.returncode == 2
    assert (
        up.stderr == f"cdc-sandbox: [CDC-SANDBOX-PORT] port {kafka.port} is in use; at kafka; hint: give another port\n"
    )
    assert _sandbox("down", *where).stdout == "nothing ran\n"
