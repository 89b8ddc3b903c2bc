"""cdc-producer on real servers: what it writes, that it goes on where it stopped, and what it refuses."""

import signal
import socket
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import (
    end_offset,
    json_lines,
    records,
    refused,
    run_well,
    running,
    write_profile,
)
from tests.harness.relay import Relay
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


@pytest.fixture
def profile(tmp_path: Path, leader: MySql, kafka: Kafka, request: pytest.FixtureRequest) -> Path:
    """The test's own database and topic, both named after it, from now on."""
    name = request.node.originalname[:60]
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
    path = write_profile(tmp_path, leader, kafka, name=name, filters={"include_dbs": [name]}, producer={"start": "now"})
    run_well("cdc-producer", path, "--until-current")
    return path


def execute(server: MySql, *statements: str | bytes, database: str | None = None) -> None:
    with server.connect(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_a_transaction_larger_than_a_kafka_transaction_survives_kills(
    tmp_path: Path, leader: MySql, kafka: Kafka
) -> None:
    def profile(commit_records: int, port: int = leader.port) -> Path:
        limits = {"start": "now", "commit_records": commit_records, "record_bytes": 2000}
        own, through = {"include_dbs": ["large"]}, {"port": port}
        return write_profile(tmp_path, leader, kafka, name="large", filters=own, producer=limits, database=through)

    execute(leader, "CREATE DATABASE large", "CREATE TABLE large.a (i INT PRIMARY KEY, t VARCHAR(200))")
    path = profile(commit_records=3)
    run_well("cdc-producer", path, "--until-current")
    rows = ", ".join(f"({number}, REPEAT('x', 150))" for number in range(20_000))
    execute(leader, f"INSERT INTO large.a VALUES {rows}")
    with Relay(leader.port) as relay:
        relay.slowly = 0.01  # so that the kills come in time, however fast the machine is
        profile(commit_records=3, port=relay.port)
        for _ in range(4):
            with running("cdc-producer", path) as process:
                before = end_offset(kafka, "large")
                until(lambda before=before: end_offset(kafka, "large") > before + 20, what="more records")
                process.send_signal(signal.SIGKILL)
                process.wait()
    assert not records(path)[-1].last, "killed too late: the transaction was already through"
    run_well("cdc-producer", profile(commit_records=10_000), "--until-current")
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    assert [record.last for record in found] == [False] * (len(found) - 1) + [True]
    keys = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
    assert keys == list(range(20_000))


def test_a_second_producer_takes_over_and_the_first_says_so(profile: Path, leader: MySql) -> None:
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY)", database=profile.stem)
    with running("cdc-producer", profile) as first:
        until(lambda: len(records(profile)) == 1, what="the first record")
        with running("cdc-producer", profile) as second:
            assert first.wait(LIMIT_SECONDS) == 3
            assert first.stderr is not None
            where = f"process {second.pid} on host {socket.gethostname()}"
            assert f"another cdc-producer has taken over this topic: {where}" in first.stderr.read()
            execute(leader, "INSERT INTO a VALUES (1)", database=profile.stem)
            until(lambda: len(records(profile)) == 2, what="the second producer's record")


def test_a_second_producer_takes_over_from_a_busy_one(profile: Path, leader: MySql) -> None:
    """It must neither fence the second one in turn nor have it take what was written meanwhile for lost binlogs."""
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY)", database=profile.stem)
    written, enough = 0, threading.Event()

    def write() -> None:
        nonlocal written
        with leader.connect(database=profile.stem) as connection, connection.cursor() as cursor:
            while not enough.wait(0.002):
                cursor.execute(f"INSERT INTO a VALUES ({written})")
                written += 1

    writer = threading.Thread(target=write)
    with running("cdc-producer", profile) as first:
        until(lambda: len(records(profile)) == 1, what="the first record")
        writer.start()
        try:
            with running("cdc-producer", profile):
                assert first.wait(LIMIT_SECONDS) == 3
                assert first.stderr is not None
                assert "another cdc-producer has taken over" in first.stderr.read().splitlines()[-1]
                enough.set()
                writer.join()
                until(lambda: len(records(profile)) == 1 + written, what="the second producer's records")
        finally:
            enough.set()
    found = records(profile)
    assert [record.sequence for record in found] == list(range(1 + written))
    rows = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
    assert rows == list(range(written))


def test_an_open_transaction_of_something_else_in_the_topic_is_waited_for(
    profile: Path, leader: MySql, kafka: Kafka, tmp_path: Path
) -> None:
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY)", database=profile.stem)
    run_well("cdc-producer", profile, "--until-current")
    stranger = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "stranger"})
    stranger.init_transactions()
    stranger.begin_transaction()
    stranger.produce(profile.stem, b"{}")
    stranger.flush()
    execute(leader, "INSERT INTO a VALUES (1)", database=profile.stem)
    log = tmp_path / "log"
    with log.open("w") as stderr, running("cdc-producer", profile, "--until-current", stderr=stderr) as process:
        until(lambda: "a transaction of another client is open" in log.read_text(), what="what it waits for")
        stranger.abort_transaction()
        assert process.wait(LIMIT_SECONDS) == 0, log.read_text()
    assert [record.sequence for record in records(profile)] == [0, 1]


def test_a_row_that_is_larger_than_any_message(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """20 MB are 27 MB of base64: with default settings they are several messages."""

    def allowed(queue: int = 0, message: int = 8_000_000) -> Path:
        own = {"librdkafka": {"queue.buffering.max.kbytes": queue, "message.max.bytes": 60_000_000} if queue else {}}
        producer = {"start": "now", "message_bytes": message}
        return write_profile(tmp_path, leader, kafka, name="blob", filters=filters, kafka=own, producer=producer)

    filters = {"include_dbs": ["blob"]}
    run_well("cdc-producer", allowed(), "--until-current")
    execute(leader, "CREATE DATABASE `blob`")
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY, b LONGBLOB)", database="blob")
    execute(leader, "INSERT INTO a VALUES (1, REPEAT('x', 20000000))", database="blob")
    # Again and again, as a supervisor starts it: what is refused is not counted.
    for _ in range(2):
        line = refused("cdc-producer", allowed(queue=5_000), "--until-current", status=3)
        assert "a message of flv://blob/blob/a has 8000000 bytes, more than librdkafka accepts" in line
        assert "set producer.message_bytes to less" in line
    run_well("cdc-producer", allowed(queue=5_000, message=4_000_000), "--until-current")
    execute(leader, "UPDATE a SET i = 2", database="blob")
    path = allowed()
    run_well("cdc-producer", path, "--until-current")
    assert [len(value) // 26_000_000 for value in json_lines(path)] == [0, 0, 1, 2]
