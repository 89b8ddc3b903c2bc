"""Bad input ends in one line with the place and the way out, and nothing is applied."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from cdc.sandbox.server import mysql
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.ports import free_port
from tests.harness.leader_settings import gtid_options
from tests.harness.programs import BIN, refused, run, run_well, running, write_profile
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.harness.topic import LeaderTopic, Stage, number, text
from tests.harness.wait import LIMIT_SECONDS, until

pytestmark = pytest.mark.integration


def refusal(profile: Path, *, status: int = 2) -> str:
    return refused("cdc-consumer", profile, "--until-current", status=status)


@pytest.mark.parametrize(
    ("keys", "message", "status"),
    [
        ({"password": "wrong"}, "Access denied for user 'fluvio'", 2),
        ({"user": "stranger"}, "Access denied for user 'stranger'", 2),
        ({"port": 1}, "the follower cannot be used: Can't connect", 4),
        ({"ip_or_host": "no.such.host.invalid"}, "the follower cannot be used: Can't connect", 4),
    ],
)
def test_a_follower_that_lets_nobody_in(
    tmp_path: Path, follower: MySql, kafka: Kafka, keys: dict[str, Any], message: str, status: int
) -> None:
    patience = {"retry_seconds": 0}
    path = write_profile(tmp_path, follower, kafka, name="nobody_in", database=keys, consumer=patience)
    line = refusal(path, status=status)
    assert ("the address in the profile may be wrong" in line) == (status == 4)
    assert message in line
    assert "(profile table database)" in line


def test_brokers_that_cannot_be_reached(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    keys = {"bootstrap_servers": f"127.0.0.1:{free_port()}"}
    path = write_profile(tmp_path, follower, kafka, name="no_broker", kafka=keys, consumer={"retry_seconds": 0})
    line = refusal(path, status=4)
    assert "Kafka cannot be reached" in line
    assert "Connection refused" in line
    assert keys["bootstrap_servers"] in line


def test_a_setting_that_librdkafka_does_not_know(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    profile = write_profile(tmp_path, follower, kafka, name="setting", kafka={"librdkafka": {"no.such.thing": "1"}})
    assert 'No such configuration property: "no.such.thing"' in refusal(profile)


def test_a_topic_that_is_not_there(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    line = refusal(write_profile(tmp_path, follower, kafka, name="no_such_topic"))
    assert line == (
        "cdc-consumer: there is no such topic; at topic no_such_topic; hint: start cdc-producer, which creates it, or "
        "fix kafka.topic in the profile"
    )


def test_a_follower_to_which_names_that_differ_in_case_are_one(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a server that is initialised so can be one."""
    started = mysql._server

    def made(name: str, fill: Callable[[Path], None]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        fill(folder)
        return folder

    monkeypatch.setattr(mysql, "_server", lambda *given: [*started(*given), "--lower-case-table-names=1"])
    monkeypatch.setattr(mysql, "cached", made)
    line = refusal(write_profile(tmp_path, mysql_server(), kafka, name="lower_case"))
    assert "lower_case_table_names is 1" in line
    assert "whose names differ only in case would be one" in line


def test_a_topic_that_the_brokers_do_not_let_us_read(
    tmp_path: Path, follower: MySql, kafka_broker: KafkaFactory
) -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    kafka = kafka_broker(settings=settings)
    stage = Stage.make(tmp_path, follower, kafka, name="not_for_us")
    admin = kafka.admin()
    denied = AclBinding(
        ResourceType.TOPIC, stage.name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", AclOperation.DESCRIBE,
        AclPermissionType.DENY,
    )  # fmt: skip
    admin.create_acls([denied])[denied].result(30)
    line = refusal(stage.profile)
    assert "Kafka refuses: Broker: Topic authorization failed" in line
    assert "the ACLs" in line


def test_a_topic_of_several_partitions(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    admin = kafka.admin()
    admin.create_topics([NewTopic("partitions", 2, 1)])["partitions"].result(30)
    assert "the topic has 2 partitions" in refusal(write_profile(tmp_path, follower, kafka, name="partitions"))


def test_the_topic_of_another_leader(stage: Stage) -> None:
    body = stage.topic.query("CREATE DATABASE never", ("CreateDatabase", "never"))
    stage.topic.send([body | {"uri": "flv://other/never"}])
    line = refusal(stage.profile)
    assert f"the topic holds records of leader 'other', not of '{stage.name}'; at {stage.name}/0/" in line
    assert stage.execute("SHOW DATABASES LIKE 'never'", database="mysql") == []


def test_a_message_that_is_no_record(stage: Stage) -> None:
    stage.topic.send_raw({"uri": "hello"})
    assert "not a record" in refusal(stage.profile, status=3)


def test_what_came_before_a_message_that_is_no_record_is_applied(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
    stage.topic.send_raw({"uri": "hello"})
    assert "not a record" in refusal(stage.profile, status=3)
    assert stage.execute("SELECT * FROM t") == [(1,)]


def test_a_gap(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
    stage.topic.next_sequence += 1
    stage.topic.send([stage.topic.add(path, ["id"], [number(2)], key=["id"])])
    line = refusal(stage.profile, status=3)
    assert "a gap: sequence 3 is missing, 4 follows" in line
    assert f"{stage.name}/0/" in line
    assert "leader position binlog.000003:1004" in line
    # What came before the gap is applied.
    assert stage.execute("SELECT * FROM t") == [(1,)]


def test_a_checkpoint_ahead_of_the_topic(stage: Stage) -> None:
    stage.apply()
    stage.execute(
        f"UPDATE checkpoint SET offsets = '{json.dumps({0: 500})}' WHERE resource = '{stage.name}'", database="cdc"
    )
    line = refusal(stage.profile)
    assert "the checkpoint is ahead of the topic: it is at offset 500, the topic ends at " in line
    assert "after sequence 0" in line


def test_a_topic_made_anew(stage: Stage, kafka: Kafka) -> None:
    stage.apply()
    admin = kafka.admin()
    admin.delete_topics([stage.name])[stage.name].result(30)
    until(lambda: stage.name not in admin.list_topics(timeout=10).topics, what="the topic is gone")
    LeaderTopic.create(kafka, stage.name, resource=stage.name)
    line = refusal(stage.profile)
    assert f"the follower's checkpoint is of topic {stage.name} (id " in line
    assert "RESET BINARY LOGS AND GTIDS" in line


def test_the_way_out_of_a_topic_made_anew(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    server = mysql_server(server_id=11)
    stage = Stage.make(tmp_path, server, kafka, name="made_anew")
    stage.create_table("t", "(i INT)")
    stage.apply()
    admin = kafka.admin()
    admin.delete_topics([stage.name])[stage.name].result(30)
    until(lambda: stage.name not in admin.list_topics(timeout=10).topics, what="the topic is gone")
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
    admin.delete_records([cut])[cut].result(30)
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
        admin.delete_records([all_of_it])[all_of_it].result(30)
        stage.apply()
    assert stage.execute("SELECT id FROM t ORDER BY id") == [(0,), (1,)]


def test_a_second_consumer(stage: Stage) -> None:
    with running("cdc-consumer", stage.profile):
        until(lambda: stage.execute("SHOW DATABASES LIKE 'cdc'", database="mysql") and applied(stage), what="the first")
        assert "another consumer is running on this follower" in refusal(stage.profile)


def applied(stage: Stage) -> bool:
    query = f"SELECT 1 FROM checkpoint WHERE resource = '{stage.name}' AND sequence = {stage.topic.next_sequence - 1}"
    return stage.execute(query, database="cdc") == [(1,)]


def test_a_checkpoint_that_something_else_moves(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    process = subprocess.Popen([BIN / "cdc-consumer", stage.profile], stderr=subprocess.PIPE, text=True)
    until(lambda: stage.execute("SHOW DATABASES LIKE 'cdc'", database="mysql") and applied(stage), what="the start")
    stage.execute(f"UPDATE checkpoint SET sequence = 7 WHERE resource = '{stage.name}'", database="cdc")
    stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
    _, errors = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 3
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
        process = subprocess.Popen([BIN / "cdc-consumer", profile], stderr=stderr)
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


def test_limits_for_everybody_do_not_bind_the_consumer(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    stage = Stage.make(tmp_path, mysql_server(), kafka, name="limits")
    path = stage.create_table("t", "(id INT PRIMARY KEY, n INT UNIQUE)")
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SET GLOBAL transaction_read_only = ON, GLOBAL max_join_size = 1, GLOBAL sql_select_limit = 0")
    old, new = [number(1), number(1)], [number(1), number(2)]
    stage.topic.send([stage.topic.add(path, ["id", "n"], old, key=["id"])])
    stage.topic.send([stage.topic.update(path, ["id", "n"], (old, new), key=["id"])])
    stage.apply()
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_select_limit = DEFAULT, SESSION sql_select_limit = 10")
        cursor.execute("SELECT * FROM limits.t")
        assert cursor.fetchall() == ((1, 2),)


def test_settings_and_grants_are_all_named_at_once(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    options = (*gtid_options("OFF"), "--log-bin-trust-function-creators=OFF")
    server = mysql_server(*options, "--skip-log-bin", server_id=8)
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("REVOKE REPLICATION_APPLIER, SET_ANY_DEFINER, ALTER ON *.* FROM fluvio@'%'")
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
    assert found[3].startswith("the user lacks ALTER, REPLICATION_APPLIER, SET_ANY_DEFINER")
    assert "GRANT ALTER, REPLICATION_APPLIER, SET_ANY_DEFINER ON *.* TO 'fluvio'@'%'" in found[3]


def test_a_column_that_is_too_narrow_where_the_follower_computes(stage: Stage) -> None:
    """The leader took the row without strict mode. Here it is tried without, too, and must not come out cut off."""
    path = stage.create_table("t", "(id INT PRIMARY KEY, a VARCHAR(3), g TINYINT AS (id * 100) STORED)")
    columns = ["id", "a", "g"]
    fits = stage.topic.add(path, columns, [number(2), text("abc"), number(127)], key=["id"], sql_mode="")
    stage.topic.send([fits])
    stage.topic.send([stage.topic.add(path, columns, [number(3), text("abcd"), number(127)], key=["id"], sql_mode="")])
    line = refusal(stage.profile, status=3)
    assert "Data too long for column 'a'" in line
    assert "at sequence 3" in line
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", "3")
    assert stage.execute("SELECT * FROM t") == [(2, "abc", 127)]


def test_a_division_that_has_more_digits_on_the_leader(stage: Stage) -> None:
    """What the leader's div_precision_increment makes of a generated column is in the rows, and in nothing else."""
    path = stage.create_table("t", "(id INT PRIMARY KEY, g DOUBLE AS (id / 3) STORED)")
    rows = [[number(1), {"Double": 0.3333333333}], [number(2), {"Double": 0.6666666667}]]
    stage.topic.send([stage.topic.add(path, ["id", "g"], *rows, key=["id"])])
    line = refusal(stage.profile, status=3)
    assert "a generated column becomes another one here than on the leader" in line
    assert stage.execute("SELECT * FROM t") == []
    with stage.follower.root() as connection, connection.cursor() as cursor:
        # The way out that the line names.
        try:
            cursor.execute("SET GLOBAL div_precision_increment = 10")
            cursor.execute("FLUSH TABLES")
            stage.apply()
        finally:
            cursor.execute("SET GLOBAL div_precision_increment = DEFAULT")
    assert stage.execute("SELECT * FROM t") == [(1, 0.3333333333), (2, 0.6666666667)]
    # Under NO_BACKSLASH_ESCAPES the leader reads the literal of a stored expression anew, as another one.
    other = stage.create_table("u", r"(id INT PRIMARY KEY, s VARCHAR(9) AS (CONCAT(id, '\\')) STORED)")
    stage.topic.send([stage.topic.add(other, ["id", "s"], [number(1), text(r"1\\")], key=["id"])])
    assert "a generated column becomes another one here" in refusal(stage.profile, status=3)


def test_a_session_that_changed_its_sql_mode_since_begin(stage: Stage) -> None:
    """The records name the mode of its BEGIN. What it then computed is stored, or stops."""
    day = {"year": 2024, "month": 2, "day": 1, "hour": 0, "minute": 0, "second": 0}
    half, whole = ({"DateTime": day | {"subsecond": subsecond}} for subsecond in (600_000, 0))
    keyed = {"key": ["id"]}
    cut = stage.create_table(
        "cut", "(id INT PRIMARY KEY, d DATETIME(3), v DATETIME AS (d), g DATETIME AS (v + INTERVAL 0 DAY) STORED)"
    )
    padded = stage.create_table("padded", "(id INT PRIMARY KEY, t CHAR(3), g VARCHAR(9) AS (CONCAT(t, 'x')) STORED)")
    # A virtual column from a padded text has another value when it is read than when it was written.
    read = stage.create_table("wide", "(id INT PRIMARY KEY, t CHAR(3), g VARCHAR(9) CHARACTER SET cp1251 AS (t))")
    computed = {"Text": {"charset": "cp1251", "base64": "PyAg"}}
    columns, mode = ["id", "t", "g"], {"sql_mode": "PAD_CHAR_TO_FULL_LENGTH"}
    stage.topic.send(
        [stage.topic.add(cut, ["id", "d", "g"], [number(1), half, whole], **keyed)],
        [stage.topic.add(padded, columns, [number(1), text("a"), text("a  x")], **keyed)],
        [stage.topic.add(read, columns, [number(1), text("ß"), computed], **keyed, **mode)],
    )
    stage.apply()
    assert stage.execute("SELECT CAST(g AS CHAR) FROM cut") == [("2024-02-01 00:00:00",)]
    assert stage.execute("SELECT g FROM padded") == [("a  x",)]
    assert stage.execute("SELECT t FROM wide") == [("ß",)]
    images = [[number(1), text(t), text(g)] for t, g in (("a", "a  x"), ("b", "b  x"), ("b", "c"))]
    stage.topic.send([stage.topic.update(padded, columns, (images[0], images[1]), **keyed, **mode)])
    assert "conflicts=0" in stage.apply()
    assert stage.execute("SELECT t, g FROM padded") == [("b", "b  x")]
    stage.topic.send([stage.topic.update(padded, columns, (images[1], images[2]), **keyed)])
    assert "a generated column becomes another one here than on the leader" in refusal(stage.profile, status=3)


def test_modes_that_no_producer_writes(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY, g INT AS (id) STORED)")
    row = [number(1), number(1)]
    stage.topic.send([stage.topic.add(path, ["id", "g"], row, key=["id"], sql_mode="'; DROP TABLE t; '")])
    assert "not the sql_mode of a rows record" in refusal(stage.profile, status=3)
    assert stage.execute("SELECT * FROM t") == []
