"""Bad input ends in one line with the place and the way out, and nothing is applied."""

import json
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_END, TopicPartition

from cdc.sandbox.server.kafka import Kafka
from tests.harness.keeper import SharedKafka, login
from tests.harness.leader_settings import gtid_options
from tests.harness.programs import refused, run, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.topic import LeaderTopic, Stage, number
from tests.harness.wait import LIMIT_SECONDS, until
from tests.harness.warm_start import WarmProcess

pytestmark = pytest.mark.integration


def refusal(profile: Path, *, status: int = 2) -> str:
    return refused("cdc-consumer", profile, "--until-current", status=status)


def test_a_topic_that_the_brokers_do_not_let_us_read(stage: Stage, kafka: SharedKafka, tmp_path: Path) -> None:
    as_bob = {"bootstrap_servers": kafka.guarded, "librdkafka": login("bob")}
    profile = write_profile(tmp_path, stage.follower, kafka, name=stage.name, resource=stage.name, kafka=as_bob)
    line = refusal(profile)
    assert "Kafka refuses: Broker: Topic authorization failed" in line
    assert "the ACLs" in line


def test_a_topic_made_anew(stage: Stage, kafka: Kafka) -> None:
    stage.apply()
    admin = kafka.admin()
    admin.delete_topics([stage.name])[stage.name].result(LIMIT_SECONDS)
    until(lambda: stage.name not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the topic is gone")
    LeaderTopic.create(kafka, stage.name, resource=stage.name)
    line = refusal(stage.profile)
    assert f"the follower's checkpoint is of topic {stage.name} (id " in line
    assert "RESET BINARY LOGS AND GTIDS" in line


@pytest.mark.newer("RESET BINARY LOGS AND GTIDS")
def test_the_way_out_of_a_topic_made_anew(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    server = mysql_server(server_id=11)
    stage = Stage.make(tmp_path, server, kafka, name="made_anew")
    stage.create_table("t", "(i INT)")
    stage.apply()
    admin = kafka.admin()
    admin.delete_topics([stage.name])[stage.name].result(LIMIT_SECONDS)
    until(lambda: stage.name not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the topic is gone")
    again = Stage.make(tmp_path, server, kafka, name=stage.name)
    again.create_table("other", "(i INT)")
    with server.root() as connection, connection.cursor() as cursor:
        for statement in (f"DROP DATABASE {stage.name}", "DROP DATABASE cdc"):
            cursor.execute(statement)
        assert "has executed" in refusal(stage.profile)
        assert "RESET BINARY LOGS AND GTIDS" in refusal(stage.profile)
        for statement in ("DROP DATABASE cdc", "RESET BINARY LOGS AND GTIDS"):
            cursor.execute(statement)
    again.apply()
    assert again.execute("SHOW TABLES") == [("other",)]


def test_retention_has_cut_what_is_needed(stage: Stage, kafka: Kafka) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    for n in range(2):
        stage.topic.send([stage.topic.add(path, ["id"], [number(n)], key=["id"])])
    admin = kafka.admin()
    cut = TopicPartition(stage.name, 0, 6)
    admin.delete_records([cut])[cut].result(LIMIT_SECONDS)
    line = refusal(stage.profile)
    assert "retention has deleted records: the checkpoint is at offset 3, the topic begins at 6" in line
    assert "sequence 2 is needed" in line


def test_retention_has_cut_what_was_applied(stage: Stage, kafka: Kafka) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.apply()
    admin = kafka.admin()
    for n in range(2):
        stage.topic.send([stage.topic.add(path, ["id"], [number(n)], key=["id"])])
        stage.apply()
        # The end of the last Kafka transaction goes too, which takes an offset after the last record's.
        all_of_it = TopicPartition(stage.name, 0, OFFSET_END)
        admin.delete_records([all_of_it])[all_of_it].result(LIMIT_SECONDS)
        stage.apply()
    assert stage.execute("SELECT id FROM t ORDER BY id") == [(0,), (1,)]


def test_a_second_consumer(stage: Stage) -> None:
    with running("cdc-consumer", stage.profile):
        until(lambda: applied(stage), what="the first")
        assert "another consumer is running on this follower" in refusal(stage.profile)


def applied(stage: Stage) -> bool:
    there = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'cdc' AND TABLE_NAME = 'checkpoint'"
    query = f"SELECT 1 FROM checkpoint WHERE resource = '{stage.name}' AND sequence = {stage.topic.next_sequence - 1}"
    return bool(stage.execute(there, database="mysql")) and stage.execute(query, database="cdc") == [(1,)]


def test_a_checkpoint_that_something_else_moves(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    with running("cdc-consumer", stage.profile) as process:
        until(lambda: applied(stage), what="the start")
        stage.execute(f"UPDATE checkpoint SET sequence = 7 WHERE resource = '{stage.name}'", database="cdc")
        stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
        _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 3 and errors is not None
    assert "the checkpoint in the follower has been moved by something else" in errors
    assert stage.execute("SELECT * FROM t") == []


def test_a_follower_that_is_read_only(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    """Refused at the start without the privilege to write nevertheless; later it is waited for, with the way out."""
    stage = Stage.make(tmp_path, mysql_server(), kafka, name="read_only")
    stage.apply()
    profile = write_profile(
        tmp_path, stage.follower, kafka, name=stage.name, resource=stage.name, consumer={"retry_seconds": 0}
    )
    log = tmp_path / "log"
    with stage.follower.root() as connection, connection.cursor() as cursor, log.open("w") as stderr:
        process = WarmProcess("cdc-consumer", str(profile), stderr=stderr.fileno())
        until(lambda: " start " in log.read_text(), what="the start")
        cursor.execute("SET GLOBAL read_only = ON")
        stage.create_table("t", "(i INT)")
        assert process.wait(LIMIT_SECONDS) == 4
        assert "hint: on the follower: SET PERSIST read_only = OFF, or GRANT CONNECTION_ADMIN" in log.read_text()
        line = refusal(profile)
        assert "read_only is 1, and the user lacks CONNECTION_ADMIN" in line
        assert "GRANT CONNECTION_ADMIN ON *.* TO 'fluvio'@'%'" in line
        cursor.execute("GRANT CONNECTION_ADMIN ON *.* TO fluvio@'%'")
    stage.apply()
    assert stage.execute("SELECT * FROM t") == []


def test_settings_and_grants_are_all_named_at_once(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    options = (*gtid_options("OFF"), "--log-bin-trust-function-creators=OFF")
    server = mysql_server(*options, "--skip-log-bin", server_id=8)
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(
            "REVOKE SESSION_VARIABLES_ADMIN, SYSTEM_VARIABLES_ADMIN, SET_ANY_DEFINER, ALTER ON *.* FROM fluvio@'%'"
        )
    profile = write_profile(tmp_path, server, kafka, name="settings_and_grants", log={"format": "json"})
    done = run("cdc-consumer", profile, "--until-current")
    assert done.returncode == 2
    *problems, last = done.stderr.splitlines()
    assert json.loads(last)["error"].startswith("4 problems with the follower")
    found = [json.loads(line)["what"] for line in problems]
    assert found[0].startswith("gtid_mode is OFF")
    assert found[1].startswith("log_bin is 0")
    assert found[2].startswith("log_bin_trust_function_creators is 0")
    assert "SET PERSIST log_bin_trust_function_creators = ON" in found[2]
    assert found[3].startswith("the user lacks ALTER, SESSION_VARIABLES_ADMIN")
    assert "GRANT ALTER, SESSION_VARIABLES_ADMIN ON *.* TO 'fluvio'@'%'" in found[3]
