"""cdc-consumer on real servers: rows and checkpoint in one commit, in the leader's order, from wherever it stopped."""

import os
import signal
from pathlib import Path

import pytest

from cdc.consumer.source.assembler import MOST_BYTES
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.impatient_consumer import impatient
from tests.checks.binlog import position
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import running, write_profile
from tests.harness.remote_kafka import RemoteKafka
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.harness.topic import LeaderTopic, Stage, number, text
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def test_every_follower_commit_carries_the_checkpoint(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")  # what other tests wrote need not be text
    file, _ = position(stage.follower)
    before = len(stage.execute(f"SHOW BINLOG EVENTS IN '{file}'"))
    stage.topic.send(*[[stage.topic.add(path, ["id"], [number(n)], key=["id"])] for n in range(50)])
    stage.apply()
    events = [event[2] for event in stage.execute(f"SHOW BINLOG EVENTS IN '{file}'")[before:]]
    commits = events.count("Xid")
    assert 1 <= commits < 50
    # The checkpoint is the only row that is updated here, so each commit has one.
    assert events.count("Update_rows") == commits


def test_a_connection_lost_in_the_first_part_of_a_large_transaction(stage: Stage) -> None:
    path = stage.create_table("large", "(id INT PRIMARY KEY, t MEDIUMTEXT)")
    stage.apply()
    content = text("x" * (MOST_BYTES // 8))
    records = [stage.topic.add(path, ["id", "t"], [number(n), content], key=["id"]) for n in range(20)]
    stage.topic.send([stage.topic.add(path, ["id", "t"], [number(-1), text("")], key=["id"])], records)
    # Somebody's lock holds the first part's last row up until the connection that waits for it is cut.
    with stage.follower.root(database=stage.name, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO large VALUES (7, 'of somebody else')")
        with running("cdc-consumer", stage.profile, "--until-current") as process:
            waiting = "SELECT id FROM information_schema.processlist WHERE info LIKE 'INSERT INTO `%' AND time > 0"
            until(lambda: cursor.execute(waiting), what="the consumer to wait")
            cursor.execute(f"KILL {cursor.fetchall()[0][0]}")
            connection.rollback()
            assert process.wait(LIMIT_SECONDS) == 0
    assert stage.execute("SELECT id FROM large ORDER BY id") == [(n,) for n in range(-1, 20)]


def test_a_transaction_is_applied_whole_when_its_end_arrives(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    bodies = [stage.topic.add(path, ["id"], [number(n)], key=["id"]) for n in range(4)]
    records = stage.topic.transaction(bodies)
    stage.topic.send_raw(*records[:3])
    stage.apply()
    assert stage.execute("SELECT * FROM t") == []
    assert stage.checkpoint() == 1
    stage.topic.send_raw(records[3])
    stage.apply()
    assert len(stage.execute("SELECT * FROM t")) == 4


def test_it_runs_until_it_is_told_to_stop_and_survives_sigkill(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    sent = 0
    for _ in range(4):
        with running("cdc-consumer", stage.profile) as process:
            for _ in range(20):
                stage.topic.send([stage.topic.add(path, ["id"], [number(sent)], key=["id"])])
                sent += 1
            until(lambda: stage.execute("SELECT COUNT(*) > 0 FROM t") == [(1,)], what="the first row")
            process.send_signal(signal.SIGKILL)
            process.wait()
    with running("cdc-consumer", stage.profile):
        stage.topic.send([stage.topic.add(path, ["id"], [number(sent)], key=["id"])])
        until(lambda: stage.checkpoint() == sent + 2, what="the last record")
    assert stage.execute("SELECT COUNT(*), MAX(id) FROM t") == [(sent + 1, sent)]


def test_it_goes_on_when_the_follower_was_killed(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    stage = Stage.make(tmp_path, mysql_server(server_id=9), kafka, name="follower_killed")
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    topic = stage.topic
    stage.apply()
    with running("cdc-consumer", stage.profile) as process:
        for n in range(2):
            topic.send([topic.add(path, ["id"], [number(n)], key=["id"])])
            until(lambda: stage.checkpoint() == topic.next_sequence - 1, what="the row before the kill")
            stage.follower.kill()
            topic.send([topic.add(path, ["id"], [number(10 + n)], key=["id"])])
            statement = topic.query(f"CREATE TABLE t{n} (i INT)", ("CreateTable", f"{path}{n}"), database=stage.name)
            topic.send([statement])
            stage.follower.start()
            until(lambda: stage.checkpoint() == topic.next_sequence - 1, what="the statement after the kill")
        assert process.poll() is None
    assert len(stage.execute("SELECT * FROM t")) == 4
    assert len(stage.execute("SHOW TABLES")) == 3


def test_it_waits_for_its_topic(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    name = "late_topic"
    profile = write_profile(tmp_path, follower, kafka, name=name, resource=name)
    with running("cdc-consumer", profile):
        topic = LeaderTopic.create(kafka, name, resource=name)
        topic.send([topic.query(f"CREATE DATABASE {name}", ("CreateDatabase", name))])
        stage = Stage(name, topic, follower, profile)
        until(lambda: stage.execute(f"SHOW DATABASES LIKE '{name}'", database="mysql") != [], what="the database")


def test_it_goes_on_when_the_broker_was_killed(tmp_path: Path, follower: MySql, kafka_broker: KafkaFactory) -> None:
    """The broker has its topics again, since its data is in its folder, which stays."""
    broker = kafka_broker()
    stage = Stage.make(tmp_path, follower, broker, name="broker_killed")
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    with running("cdc-consumer", stage.profile) as process:
        for n in range(2):
            stage.topic.send([stage.topic.add(path, ["id"], [number(n)], key=["id"])])
            until(lambda: stage.checkpoint() == stage.topic.next_sequence - 1, what="the row")
            if n == 0:
                broker.kill()
                broker.start()
        assert process.poll() is None
    assert stage.execute("SELECT * FROM t") == [(0,), (1,)]


@pytest.mark.parametrize("gone", [in_long_runs("follower"), "broker"])
def test_it_gives_up_when_a_server_stays_away(
    tmp_path: Path, mysql_server: MySqlFactory, kafka_at_a_distance: RemoteKafka, gone: str
) -> None:
    broker, server = kafka_at_a_distance, mysql_server(server_id=9)
    stage = Stage.make(tmp_path, server, broker, name=f"gone_{gone}", consumer={"retry_seconds": 1})
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    with running("cdc-consumer", stage.profile) as process:
        stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
        until(lambda: stage.checkpoint() == 2, what="the start")
        (server if gone == "follower" else broker).kill()
        if gone == "follower":
            stage.topic.send([stage.topic.add(path, ["id"], [number(2)], key=["id"])])
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 4, errors
    assert "Traceback" not in errors
    assert errors.splitlines()[-1].startswith("cdc-consumer: ")


def test_a_follower_that_hangs_is_noticed_and_the_stop_heard(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    server = mysql_server(server_id=9)
    stage = Stage.make(tmp_path, server, kafka, name="hangs")
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    with running("cdc-consumer", stage.profile) as process:
        assert process.stderr is not None
        stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
        until(lambda: stage.checkpoint() == 2, what="the start")
        os.kill(server.process.pid, signal.SIGSTOP)
        try:
            stage.topic.send([stage.topic.add(path, ["id"], [number(2)], key=["id"])])
            for line in process.stderr:
                if "waiting for a server" in line:
                    break
            assert "no answer for" in line
            process.terminate()
            _, errors = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            os.kill(server.process.pid, signal.SIGCONT)
    assert process.returncode == 0, errors
    stage.apply()
    assert stage.execute("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_long_statement_is_given_up_for_the_stop(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    with stage.follower.connect(database=stage.name) as connection, connection.cursor() as cursor:
        connection.begin()
        cursor.execute("INSERT INTO t VALUES (1)")  # not committed: whoever inserts it too has to wait
        # It would wait for the row longer than this test waits for its end.
        with impatient(stage.profile):
            stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
            waits = "SELECT 1 FROM information_schema.PROCESSLIST WHERE INFO LIKE 'INSERT INTO %' AND TIME > 0"
            until(lambda: stage.execute(waits), what="the wait for the row")
        connection.rollback()
    stage.apply()
    assert stage.execute("SELECT id FROM t") == [(1,)]
