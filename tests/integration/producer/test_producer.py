"""cdc-producer on real servers: what it writes, that it goes on where it stopped, and what it refuses."""

import signal
import threading
from pathlib import Path

import pytest
from confluent_kafka import Producer

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import (
    end_offset,
    json_lines,
    own_name,
    records,
    refused,
    run_well,
    running,
    write_profile,
)
from tests.harness.relay import Relay
from tests.harness.server_fixtures import MySqlFactory
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


def test_positions_are_those_of_the_server(profile: Path, leader: MySql) -> None:
    execute(
        leader,
        "CREATE TABLE a (i INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1)",
        "FLUSH BINARY LOGS",
        "BEGIN",
        "INSERT INTO a VALUES (2)",
        "DELETE FROM a WHERE i = 1",
        "COMMIT",
        database=profile.stem,
    )
    run_well("cdc-producer", profile, "--until-current")
    found = records(profile)
    assert [record.operation for record in found] == ["Query", "Add", "Add", "Delete"]
    with leader.connect() as connection, connection.cursor() as cursor:
        for record in found:
            cursor.execute(f"SHOW BINLOG EVENTS IN '{record.position.file}' FROM {record.position.offset} LIMIT 1")
            kind = cursor.fetchone()[2]
            assert kind == {"Query": "Query", "Add": "Write_rows", "Delete": "Delete_rows"}[record.operation]
    assert [(record.index, record.last) for record in found[2:]] == [(0, False), (1, True)]
    assert found[2].transaction == found[3].transaction


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
    rows = ", ".join(f"({number}, REPEAT('x', 150))" for number in range(40_000))
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
    assert keys == list(range(40_000))


def test_the_position_moves_on_while_the_filter_lets_nothing_through(profile: Path, leader: MySql) -> None:
    execute(leader, "CREATE DATABASE elsewhere", "CREATE TABLE elsewhere.a (i INT)")
    execute(leader, "INSERT INTO elsewhere.a VALUES (1)", "FLUSH BINARY LOGS", "INSERT INTO elsewhere.a VALUES (2)")
    run_well("cdc-producer", profile, "--until-current")
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOG STATUS")
        file, offset = cursor.fetchone()[:2]
    log = run_well("cdc-producer", profile, "--until-current")
    assert f"position={file}:{offset}" in log.splitlines()[0]
    assert records(profile) == []


def test_a_second_producer_takes_over_and_the_first_says_so(profile: Path, leader: MySql) -> None:
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY)", database=profile.stem)
    with running("cdc-producer", profile) as first:
        until(lambda: len(records(profile)) == 1, what="the first record")
        with running("cdc-producer", profile):
            assert first.wait(LIMIT_SECONDS) == 3
            assert first.stderr is not None
            assert "another cdc-producer has taken over" in first.stderr.read()
            execute(leader, "INSERT INTO a VALUES (1)", database=profile.stem)
            until(lambda: len(records(profile)) == 2, what="the second producer's record")


def test_a_second_producer_takes_over_from_a_busy_one(profile: Path, leader: MySql) -> None:
    """It must neither fence the second one in turn nor have it take what was written meanwhile for lost binlogs."""
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY)", database=profile.stem)
    written, enough = 0, threading.Event()

    def write() -> None:
        nonlocal written
        with leader.connect(database=profile.stem) as connection, connection.cursor() as cursor:
            while not enough.is_set():
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


def test_compressed_transactions_are_as_any_other(profile: Path, leader: MySql) -> None:
    many = "INSERT INTO a VALUES " + ", ".join(f"({number}, REPEAT('x', 500))" for number in range(3000))
    with leader.root(database=profile.stem) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE a (i INT PRIMARY KEY, t TEXT)")
        cursor.execute("SET binlog_transaction_compression = ON")
        cursor.execute(many)
        connection.begin()
        cursor.execute("UPDATE a SET t = 'y' WHERE i < 5")
        cursor.execute("DELETE FROM a WHERE i > 5")
        connection.commit()
        cursor.execute("SET binlog_transaction_compression = OFF")
        cursor.execute("INSERT INTO a VALUES (-1, 'plain')")
    run_well("cdc-producer", profile, "--until-current")
    found = records(profile)
    assert [record.sequence for record in found] == list(range(len(found)))
    keys = [
        row.after[0]["SignedInteger"] for record in found for row in record.rows if row.before is None and row.after
    ]
    assert keys == [*range(3000), -1]
    (update,) = [record for record in found if record.operation == "Update"]
    assert (update.index, update.last, len(update.rows)) == (0, False, 5)
    deleted = [record for record in found if record.operation == "Delete"]
    assert {record.transaction for record in deleted} == {update.transaction}
    assert [record.last for record in deleted] == [False] * (len(deleted) - 1) + [True]
    with leader.connect() as connection, connection.cursor() as cursor:
        place = found[1].position
        cursor.execute(f"SHOW BINLOG EVENTS IN '{place.file}' FROM {place.offset} LIMIT 1")
        assert cursor.fetchone()[2] == "Transaction_payload"
    log = run_well("cdc-producer", profile, "--until-current")
    assert f"next_sequence={len(found)}" in log


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (["SET binlog_row_image = MINIMAL", "DELETE FROM a"], "without all its columns"),
        (["SET binlog_format = STATEMENT", "INSERT INTO a VALUES (9, 9)"], "logged as a statement"),
    ],
)
def test_what_it_cannot_carry_stops_it_at_the_position(
    mysql_server: MySqlFactory, kafka: Kafka, tmp_path: Path, statements: list[str], said: str
) -> None:
    server = mysql_server()
    topic = f"stops-{own_name(tmp_path)}"
    path = write_profile(tmp_path, server, kafka, name=topic)
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY, j INT)", "INSERT INTO d.a VALUES (1, 1)")
    with server.root(database="d") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
    line = refused("cdc-producer", path, "--until-current", status=3)
    assert said in line
    assert "at binlog.00000" in line
    before = 4 if "CREATE TABLE" in statements[0] else 3
    assert [record.sequence for record in records(path)] == list(range(before))
    assert refused("cdc-producer", path, "--until-current", status=3) == line


def test_gtids_that_are_switched_on_later_do_not_repeat_anything(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    server = mysql_server("--gtid-mode=OFF", "--enforce-gtid-consistency=ON")
    path = write_profile(tmp_path, server, kafka, name="switched")
    execute(server, "CREATE DATABASE d", "CREATE TABLE d.a (i INT PRIMARY KEY)", "INSERT INTO d.a VALUES (1)")
    for mode in ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"):
        run_well("cdc-producer", path, "--until-current")
        with server.root() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET GLOBAL gtid_mode = {mode}")
        execute(server, f"INSERT INTO d.a VALUES ({len(mode)})")
    for number in (100, 101):
        run_well("cdc-producer", path, "--until-current")
        execute(server, f"INSERT INTO d.a VALUES ({number})")
    run_well("cdc-producer", path, "--until-current")
    found = records(path)
    assert [record.sequence for record in found] == list(range(8))
    rows = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
    assert rows == [1, 14, 13, 2, 100, 101]


def test_a_row_that_is_larger_than_any_message(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    """50 MB are 67 MB of base64: with default settings they are several messages."""

    def allowed(queue: int = 0, message: int = 8_000_000) -> Path:
        own = {"librdkafka": {"queue.buffering.max.kbytes": queue, "message.max.bytes": 60_000_000} if queue else {}}
        producer = {"start": "now", "message_bytes": message}
        return write_profile(tmp_path, leader, kafka, name="blob", filters=filters, kafka=own, producer=producer)

    filters = {"include_dbs": ["blob"]}
    run_well("cdc-producer", allowed(), "--until-current")
    execute(leader, "CREATE DATABASE `blob`")
    execute(leader, "CREATE TABLE a (i INT PRIMARY KEY, b LONGBLOB)", database="blob")
    execute(leader, "INSERT INTO a VALUES (1, REPEAT('x', 50000000))", database="blob")
    # Again and again, as a supervisor starts it: what is refused is not counted.
    for _ in range(2):
        line = refused("cdc-producer", allowed(queue=5_000), "--until-current", status=3)
        assert "a message of flv://blob/blob/a has 8000000 bytes, more than librdkafka accepts" in line
        assert "set producer.message_bytes to less" in line
    run_well("cdc-producer", allowed(queue=5_000, message=4_000_000), "--until-current")
    execute(leader, "UPDATE a SET i = 2", database="blob")
    path = allowed()
    run_well("cdc-producer", path, "--until-current")
    assert [len(value) // 66_000_000 for value in json_lines(path)] == [0, 0, 1, 2]
