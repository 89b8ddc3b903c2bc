"""Both programs seen from outside: figures that are true, health that says no, a terminal that stays readable."""

import json
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cdc import __version__
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.checks.binlog import position
from tests.harness.outside import get, health, labels, on_terminal, scrape
from tests.harness.programs import after_now, own_name, refused, run, run_well, running, write_profile
from tests.harness.relay import Relay
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def execute(server: MySql, *statements: str) -> list[tuple[object, ...]]:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


@pytest.fixture
def port() -> int:
    return free_port()


def producer_profile(folder: Path, leader: MySql, kafka: Kafka, name: str, port: int, /, **tables: object) -> Path:
    """From now on, and only the database ``name``."""
    given: dict[str, Any] = {"filters": {"include_dbs": [name]}, "producer": {}, "metrics": {"port": port}} | tables
    given["producer"] = {"start": after_now(leader)} | given["producer"]
    path = write_profile(folder, leader, kafka, name=name, resource=name, **given)
    if given["producer"]["start"] == "now":
        run_well("cdc-producer", path, "--until-current")
    execute(leader, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.a (i INT PRIMARY KEY, t TEXT)")
    return path


def consumer_profile(source: Path, follower: MySql, kafka: Kafka, port: int, /, **tables: object) -> Path:
    """Applies what the producer with ``source`` writes."""
    name, topic = f"{source.stem}_consumer", source.stem
    given = {"metrics": {"port": port}} | tables
    return write_profile(source.parent, follower, kafka, name=name, topic=topic, resource=topic, **given)


def test_the_producers_figures(tmp_path: Path, leader: MySql, kafka: Kafka, port: int) -> None:
    path = producer_profile(tmp_path, leader, kafka, "figures", port)
    execute(leader, "CREATE DATABASE unwanted", "CREATE TABLE unwanted.a (i INT PRIMARY KEY)")
    with running("cdc-producer", path):
        for number in range(5):
            execute(
                leader, f"INSERT INTO figures.a VALUES ({number}, 'x')", f"INSERT INTO unwanted.a VALUES ({number})"
            )
        drained = {"cdc_producer_filtered_events_total": 7, "cdc_producer_behind_seconds": 0}
        until(lambda: drained.items() <= scrape(port).items(), what="all, and that there is no more")
        found, identified = scrape(port), labels(port, "cdc_info")
        bounds = [each["le"] for each in labels(port, "cdc_producer_delay_seconds_bucket")]
        file, offset = position(leader)
    assert found["cdc_producer_records_total"] == 7
    assert found["cdc_producer_next_sequence"] == 7
    assert found["cdc_producer_leader_transactions_total"] == 14
    assert found["cdc_producer_record_bytes_total"] > 7 * 200
    assert found["cdc_producer_binlog_file_number"] == int(str(file).rpartition(".")[2])
    assert found["cdc_producer_binlog_offset_bytes"] == offset
    assert found["cdc_producer_behind_seconds"] == 0
    assert 0 <= found["cdc_producer_leader_silence_seconds"] < LIMIT_SECONDS
    assert 0 < found["cdc_producer_delay_seconds_sum"] < LIMIT_SECONDS * found["cdc_producer_delay_seconds_count"]
    assert found["cdc_producer_commit_seconds_count"] >= 1
    assert found["cdc_producer_reconnects_total"] == found["cdc_producer_waiting"] == 0
    assert found["process_resident_memory_bytes"] > 1e6
    assert found["cdc_build_info"] == found["cdc_info"] == 1
    server = f"127.0.0.1:{leader.port}"
    identity = {"program": "cdc-producer", "leader": "figures", "topic": "figures", "server": server}
    assert identified == [identity | {"version": __version__}]
    assert (bounds[0], bounds[-1]) == ("0.001", "+Inf")


def test_an_event_that_is_long_on_its_way_is_waiting(tmp_path: Path, leader: MySql, kafka: Kafka, port: int) -> None:
    with Relay(leader.port) as relay:
        slow = {"database": {"port": relay.port}}
        path = producer_profile(tmp_path, leader, kafka, "slowly", port, **slow)
        with running("cdc-producer", path):
            until(lambda: scrape(port).get("cdc_producer_behind_seconds") == 0, what="the leader's end")
            relay.slowly = 0.02
            values = ", ".join(f"({number}, REPEAT('x', 60000))" for number in range(10))
            execute(leader, f"INSERT INTO slowly.a VALUES {values}")
            until(lambda: scrape(port)["cdc_producer_behind_seconds"] > 0, what="seconds behind")
            relay.slowly = 0.0
            until(lambda: scrape(port)["cdc_producer_behind_seconds"] == 0, what="the leader's end again")


def test_the_consumers_figures(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, port: int) -> None:
    source = producer_profile(tmp_path, leader, kafka, "applied", 0)
    own = {"filters": {"exclude_tables": ["applied.b"]}, "producer": {"alive_seconds": 1}}
    target = consumer_profile(source, follower, kafka, port, **own)
    execute(leader, "CREATE TABLE applied.b (i INT)", "INSERT INTO applied.b VALUES (1), (2), (3)")
    execute(leader, "INSERT INTO applied.a VALUES (1, 'x'), (2, 'y')")
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")
    execute(follower, "DELETE FROM applied.a WHERE i = 1")
    execute(
        leader, "UPDATE applied.a SET t = 'z'", "INSERT INTO applied.b VALUES (4)", "ALTER TABLE applied.a ADD j INT"
    )
    run_well("cdc-producer", source, "--until-current")
    with running("cdc-consumer", target):
        until(lambda: scrape(port).get("cdc_consumer_sequence") == 7, what="all applied")
        drained = {"cdc_consumer_lag_records": 0, "cdc_consumer_behind_seconds": 0}
        until(lambda: drained.items() <= scrape(port).items(), what="no lag")
        found, identified = scrape(port), labels(port, "cdc_info")
        with follower.root() as connection, connection.cursor() as cursor:
            cursor.execute("LOCK TABLES applied.a READ")
            execute(leader, "INSERT INTO applied.a VALUES (9, 'late', 1)", "INSERT INTO applied.a VALUES (10, 'l', 1)")
            run_well("cdc-producer", source, "--until-current")
            until(lambda: scrape(port)["cdc_consumer_lag_records"] == 2, what="lag")
            until(lambda: scrape(port)["cdc_consumer_behind_seconds"] > 0, what="seconds behind")
            assert scrape(port)["cdc_consumer_sequence"] == 7
        # No lag shows what the leader has while no producer runs.
        until(lambda: ails(port, "producer"), what="that nothing is heard of the producer")
        assert "nothing heard of the producer for" in health(port)[1]["producer"]["says"]
        assert scrape(port)["cdc_consumer_producer_silence_seconds"] > 3
        # Its own servers answer: a restart of the consumer would not help.
        assert (get(port, "/readyz")[0], get(port, "/healthz")[0]) == (200, 503)
        until(lambda: scrape(port)["cdc_consumer_sequence"] == 9, what="the rows that the lock held up")
    assert found["cdc_consumer_records_total"] == 3
    assert found["cdc_consumer_rows_total"] == 3
    assert found["cdc_consumer_filtered_rows_total"] == 1
    assert found["cdc_consumer_conflicts_total"] == 1
    assert found["cdc_consumer_statements_total"] == 1
    assert found["cdc_consumer_apply_seconds_count"] >= 2
    assert found["cdc_consumer_delay_seconds_count"] == found["cdc_consumer_apply_seconds_count"]
    assert 0 < found["cdc_consumer_delay_seconds_sum"] < LIMIT_SECONDS * found["cdc_consumer_delay_seconds_count"]
    assert [each["program"] for each in identified] == ["cdc-consumer"]
    assert found["cdc_consumer_behind_seconds"] == found["cdc_consumer_retries_total"] == 0


def test_with_a_topic_for_each_table(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    layout = {"layout": "per_table", "prefix": "own."}
    ports = free_port(), free_port()
    source = producer_profile(tmp_path, leader, kafka, "split", ports[0], kafka=layout)
    target = consumer_profile(source, follower, kafka, ports[1], kafka=layout)
    execute(leader, "CREATE TABLE split.b (i INT PRIMARY KEY)", "INSERT INTO split.b VALUES (1)")
    with running("cdc-producer", source), running("cdc-consumer", target):
        until(lambda: scrape(ports[1]).get("cdc_consumer_sequence") == 3, what="all applied")
        assert healthy(ports[0])
        assert healthy(ports[1])
        assert "own.split_b" in health(ports[1])[1]["kafka"]["says"]
        until(lambda: scrape(ports[1])["cdc_consumer_lag_records"] == 0, what="no lag")


@pytest.mark.parametrize("program", ["cdc-producer", "cdc-consumer"])
def test_a_port_that_is_taken(tmp_path: Path, leader: MySql, kafka: Kafka, port: int, program: str) -> None:
    path = write_profile(tmp_path, leader, kafka, name="port_taken", metrics={"port": port})
    with socket.create_server(("127.0.0.1", port)):
        line = refused(program, path)
    assert f"127.0.0.1:{port}" in line
    assert "metrics.port" in line


def test_an_address_of_another_machine(tmp_path: Path, leader: MySql, kafka: Kafka, port: int) -> None:
    path = write_profile(tmp_path, leader, kafka, name="elsewhere", metrics={"port": port, "host": "192.0.2.1"})
    assert "192.0.2.1" in refused("cdc-producer", path)


def healthy(port: int) -> bool:
    return health(port)[0] == 200


def ails(port: int, *names: str) -> bool:
    """Whether the answer is 503 and exactly these checks fail."""
    status, checks = health(port)
    return status == 503 and {name for name, check in checks.items() if not check["ok"]} == set(names)


def test_the_producers_health(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_at_a_distance: RemoteKafka, port: int
) -> None:
    leader, kafka = mysql_server(), kafka_at_a_distance
    path = producer_profile(tmp_path, leader, kafka, "health", port)
    with running("cdc-producer", path) as process:
        until(lambda: healthy(port), what="health")
        assert set(health(port)[1]) == {"stream", "leader", "kafka"}
        leader.kill()
        until(lambda: ails(port, "stream"), what="no health without the leader")
        assert "leader" in health(port)[1]["stream"]["says"]
        assert scrape(port)["cdc_producer_waiting"] == 1
        leader.start()
        until(lambda: healthy(port), what="health with the leader back")
        kafka.kill()
        until(lambda: ails(port, "stream", "kafka"), what="no health without the broker")
        # It rightly waits: a supervisor that asks whether it lives must not restart it.
        assert (get(port, "/livez")[0], get(port, "/readyz")[0]) == (200, 503)
        kafka.start()
        until(lambda: healthy(port), what="health with the broker back")
        execute(leader, "INSERT INTO health.a VALUES (1, 'x')")
        until(lambda: scrape(port)["cdc_producer_next_sequence"] == 3, what="the row")
        assert scrape(port)["cdc_producer_reconnects_total"] >= 2
        assert process.poll() is None


def test_a_leader_that_hangs_is_noticed_before_the_connection_is_given_up(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, port: int
) -> None:
    leader = mysql_server()
    path = producer_profile(tmp_path, leader, kafka, "sleeper", port)
    with running("cdc-producer", path):
        until(lambda: healthy(port), what="health")
        os.kill(leader.process.pid, signal.SIGSTOP)
        try:
            until(lambda: ails(port, "leader"), what="a leader without heartbeats")
        finally:
            os.kill(leader.process.pid, signal.SIGCONT)
        until(lambda: healthy(port), what="health with the leader awake")


def test_the_consumers_health(
    tmp_path: Path, leader: MySql, mysql_server: MySqlFactory, kafka_at_a_distance: RemoteKafka, port: int
) -> None:
    follower, kafka = mysql_server(server_id=2), kafka_at_a_distance
    source = producer_profile(tmp_path, leader, kafka, "recovers", 0)
    # No producer runs beside it, however long this takes.
    target = consumer_profile(source, follower, kafka, port, producer={"alive_seconds": 86_400})
    run_well("cdc-producer", source, "--until-current")
    said = tmp_path / "said"
    with said.open("w") as log, running("cdc-consumer", target, stderr=log) as process:
        until(lambda: scrape(port).get("cdc_consumer_sequence") == 1, what="what is there")
        assert healthy(port)
        follower.kill()
        until(lambda: ails(port, "follower"), what="no health without the follower")
        assert (get(port, "/livez")[0], get(port, "/readyz")[0]) == (200, 503)
        execute(leader, "INSERT INTO recovers.a VALUES (1, 'x')")
        run_well("cdc-producer", source, "--until-current")
        until(lambda: ails(port, "follower", "stream"), what="retries")
        follower.start()
        until(lambda: healthy(port), what="health with the follower back")
        until(lambda: scrape(port)["cdc_consumer_sequence"] == 2, what="the row")
        assert scrape(port)["cdc_consumer_retries_total"] > 0
        kafka.kill()
        until(lambda: ails(port, "kafka"), what="no health without the broker")
        assert "cdc_consumer_sequence" in scrape(port)
        until(lambda: "kafka unreachable" in said.read_text(), what="that the log tells")
        assert "kafka answers again" not in said.read_text()
        kafka.start()
        until(lambda: healthy(port), what="health with the broker back")
        # Nothing new is in the topic, so nothing but a question tells.
        until(lambda: "kafka answers again" in said.read_text(), what="that the log tells it, too")
        assert process.poll() is None


def test_it_answers_while_it_works_and_ends_while_it_is_asked(
    tmp_path: Path, leader: MySql, kafka: Kafka, port: int
) -> None:
    limits = {"start": after_now(leader), "commit_records": 100}
    path = producer_profile(tmp_path, leader, kafka, "busy", port, producer=limits)
    values = ", ".join(f"({number}, 'x')" for number in range(100))
    with leader.root(database="busy") as connection, connection.cursor() as cursor:
        for _ in range(300):
            cursor.execute(f"INSERT INTO a VALUES {values}")
            cursor.execute("DELETE FROM a")
    seen: list[float] = []
    with Relay(leader.port) as relay, asking_for_ever(port):
        relay.slowly = 0.001  # so that it is asked in time, however fast the machine is
        through = {"filters": {"include_dbs": ["busy"]}, "producer": limits, "database": {"port": relay.port}}
        write_profile(tmp_path, leader, kafka, name="busy", resource="busy", metrics={"port": port}, **through)
        with running("cdc-producer", path):
            until(lambda: "cdc_producer_next_sequence" in scrape(port), what="the first answer")
            while (found := scrape(port))["cdc_producer_next_sequence"] < 602:
                seen.append(found["cdc_producer_records_total"])
    assert seen == sorted(seen)
    assert len(set(seen)) > 2, "it was through before it was asked"


@contextmanager
def asking_for_ever(port: int) -> Iterator[None]:
    """A client that never comes to the end of its request: it must not hold up the end of the program."""
    enough = threading.Event()

    def ask() -> None:
        while not enough.wait(0.1):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
                while not enough.wait(0.1):
                    connection.sendall(b"x")

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        enough.set()
        asking.join()


@pytest.mark.parametrize("path", ["/", "/metrics/more", "/health"])
def test_anything_else_is_not_there(tmp_path: Path, leader: MySql, kafka: Kafka, port: int, path: str) -> None:
    profile = write_profile(
        tmp_path, leader, kafka, name="paths", metrics={"port": port}, producer={"start": "now"},
        topic=f"paths-{own_name(tmp_path)}",
    )  # fmt: skip
    with running("cdc-producer", profile):
        until(lambda: healthy(port), what="health")
        assert get(port, path)[0] == 404


def test_a_terminals_last_line(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    source = producer_profile(tmp_path, leader, kafka, "terminal", 0)
    target = consumer_profile(source, follower, kafka, 0)
    with on_terminal("cdc-producer", source) as producer, on_terminal("cdc-consumer", target, columns=40) as consumer:
        until(lambda: re.search("sequence 2  .* 0.0 s behind", producer.screen()[-1]), what="the producer's line")
        until(lambda: "sequence 1  " in consumer.screen()[-1], what="the consumer's line")
        assert len(consumer.screen()[-1]) < 40
        execute(leader, "ALTER TABLE terminal.a ADD j INT", "INSERT INTO terminal.a VALUES (1, 'x', 1)")
        until(lambda: "sequence 3  " in consumer.screen()[-1], what="the line after a log line")
        assert any("statement applied" in line for line in consumer.screen())
    for terminal in (producer, consumer):
        # Whole log lines, each beginning with its time, and nothing of the line is left.
        *lines, last = terminal.screen()
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info ", line) for line in lines), lines
        assert "stopped" in lines[-1]
        assert last == ""
        assert 1 < terminal.text.count("sequence ") < 2 * 60


def test_without_a_terminal_there_is_no_line(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    path = producer_profile(tmp_path, leader, kafka, "piped", 0, log={"format": "json"})
    execute(leader, "INSERT INTO piped.a VALUES (1, 'x')")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(LIMIT_SECONDS)
        under_systemd = dict(os.environ) | {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        done = run("cdc-producer", path, "--until-current", env=under_systemd)
        reports = [systemd.recv(4096).decode()]
        while reports[-1] != "STOPPING=1":
            reports.append(systemd.recv(4096).decode())
    assert done.returncode == 0, done.stderr
    [ready] = [report for report in reports if report.startswith("READY=1\nSTATUS=")]
    assert "sequence 3 " in ready or "sequence 3 " in reports[-2]
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == ["replicating", "stopped"]
    assert lines[-1]["records"] == 3
    assert lines[-1]["next_sequence"] == 3


def test_the_log_tells_what_an_operator_asks(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    leader = mysql_server()
    path = producer_profile(tmp_path, leader, kafka, "story", 0, log={"format": "json"})
    with running("cdc-producer", path) as process:
        assert process.stderr is not None
        assert json.loads(process.stderr.readline())["event"] == "replicating"
        leader.kill()
        waits = json.loads(process.stderr.readline())
        assert waits["event"] == "waiting for a server"
        assert f"127.0.0.1:{leader.port}" in waits["error"]
        leader.start()
        events = [json.loads(process.stderr.readline())["event"]]
        while events[-1] != "replicating":
            events.append(json.loads(process.stderr.readline())["event"])
        assert events[-2:] == ["no longer waiting", "replicating"]
        process.send_signal(signal.SIGTERM)
        ended = json.loads(process.stderr.readline())
        assert (ended["event"], ended["signal"]) == ("ended by a signal", "SIGTERM")
        last = json.loads(process.stderr.readline())
        assert process.wait(LIMIT_SECONDS) == 0
    assert (last["event"], last["reconnects"]) == ("stopped", 1)
