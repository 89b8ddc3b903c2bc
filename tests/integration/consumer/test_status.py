"""cdc-consumer --status: what an operator needs to know of a follower, whatever state it and the consumer are in."""

import json
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import run, run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.topic import Stage, number
from tests.harness.wait import until

pytestmark = pytest.mark.integration


def status(profile: Path) -> list[str]:
    done = run("cdc-consumer", profile, "--status")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def line(lines: list[str], name: str) -> str:
    (found,) = [each for each in lines if each.startswith(f"{name} ")]
    return found[len(name) :].strip()


def test_a_fresh_follower(tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka) -> None:
    profile = write_profile(tmp_path, mysql_server(server_id=7), kafka, name="fresh_follower")
    lines = status(profile)
    assert line(lines, "checkpoint") == "none: nothing of this leader has been applied here"
    assert line(lines, "consumer") == "not running"


def test_what_is_applied_beside_a_consumer_and_after_it(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY)")
    stage.topic.send([stage.topic.add(path, ["id"], [number(1)], key=["id"])])
    with running("cdc-consumer", stage.profile):
        until(lambda: any("sequence 2," in each for each in status(stage.profile)), what="all is applied")
        assert line(status(stage.profile), "consumer").startswith("running, connection ")
    lines = status(stage.profile)
    assert line(lines, "consumer") == "not running"
    assert line(lines, "leader").startswith("binlog.000003:1002, transaction 3e11fa47-71ca-11e1-9e33-c80aa9429562:3")
    assert line(lines, "leader").endswith("committed 2024-11-20 18:00:00.000002 UTC")
    assert line(lines, "offset").startswith(f"{stage.name}/0: ")
    assert line(lines, "lag").startswith("not known")  # this topic has no producer
    assert line(lines, "ledger") == "2 done"
    assert line(lines, "conflicts") == "0"
    assert any("  done: CREATE TABLE t (id INT PRIMARY KEY)" in each for each in lines)


def test_the_lag_is_that_of_the_producers_commit_log(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    name = "status_lag"
    keys = {"name": name, "resource": name, "filters": {"include_dbs": [name]}}
    producer = write_profile(tmp_path, leader, kafka, **keys, producer={"start": "now"})
    consumer = write_profile(tmp_path, follower, kafka, **keys | {"name": f"{name}_consumer"}, topic=name)
    run_well("cdc-producer", producer, "--until-current")
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        run_well("cdc-producer", producer, "--until-current")
        run_well("cdc-consumer", consumer, "--until-current")
        assert line(status(consumer), "lag") == "0 records"
        for table in "ab":
            cursor.execute(f"CREATE TABLE {name}.{table} (i INT)")
    run_well("cdc-producer", producer, "--until-current")
    assert line(status(consumer), "lag").startswith("2 records, at most ")
    done = run("cdc-consumer", consumer, "--status", "--json")
    body = json.loads(done.stdout)
    assert (body["resource"], body["consumer"], body["applied"]["sequence"]) == (name, None, 0)
    assert body["applied"]["offsets"][0] | {"next": 0} == {"topic": name, "partition": 0, "next": 0}
    assert body["applied"]["at"].endswith("+00:00")
    assert body["lag"]["records"] == 2
    assert body["lag"]["seconds"] > 0
    assert [entry["statement"] for entry in body["newest"]] == [f"CREATE DATABASE {name}"]
    assert "--json goes with --status" in run("cdc-consumer", consumer, "--json").stderr


def test_a_promotion_can_create_what_the_follower_has_not(stage: Stage) -> None:
    stage.create_table("t", "(i INT)")
    context = {
        "time_zone": "+05:00", "charset": "latin1", "collation": "latin1_german1_ci", "timestamp_us": 10**15,
    }  # fmt: skip
    body = "FOR EACH ROW BEGIN SET NEW.i = 5; SET @a = 'x'; END"
    for statement, action, name in (
        (f"CREATE TRIGGER gone BEFORE INSERT ON t {body}", "CreateTrigger", "gone"),
        (f"CREATE TRIGGER stays BEFORE INSERT ON t {body}", "CreateTrigger", "stays"),
        ("DROP TRIGGER gone", "DropTrigger", "gone"),
        ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 'ä'", "CreateEvent", "e"),
        ("ALTER EVENT e DISABLE", "AlterEvent", "e"),
    ):
        path = f"{stage.name}/{name}"
        stage.topic.send([stage.topic.query(statement, (action, path), database=stage.name, **context)])
    stage.apply()
    lines = status(stage.profile)
    script = lines[lines.index("DELIMITER ;;") + 1 : lines.index("DELIMITER ;")]
    # The event is due at once, and a scheduler that executes it meanwhile writes back that it is enabled.
    scheduler = "SET GLOBAL event_scheduler = "
    stage.execute(f"{scheduler}OFF", *[each.removesuffix(";;") for each in script])
    assert [row[0] for row in stage.execute("SHOW TRIGGERS")] == ["stays"]
    columns = "EVENT_NAME, STATUS, EVENT_DEFINITION, TIME_ZONE, CAST(STARTS AS CHAR), COLLATION_CONNECTION"
    events = f"SELECT {columns} FROM information_schema.EVENTS WHERE EVENT_SCHEMA = DATABASE()"
    # At the hour at which it runs on the leader.
    at = "2001-09-09 06:46:40"
    assert stage.execute(events) == [("e", "DISABLED", "SELECT 'ä'", "+05:00", at, "latin1_german1_ci")]
    stage.execute("DROP EVENT e", f"{scheduler}ON")


def test_a_ledger_of_the_first_kind_is_read_and_brought_up_to_date(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    stage = Stage.make(tmp_path, mysql_server(server_id=9), kafka, name="old_ledger")
    stage.create_table("t", "(i INT)")
    create = "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.i = 5"
    stage.topic.send([stage.topic.query(create, ("CreateTrigger", f"{stage.name}/r"), database=stage.name)])
    stage.apply()
    stage.execute(
        "ALTER TABLE cdc.ledger DROP COLUMN context, DROP COLUMN affects, "
        "MODIFY state ENUM('intent', 'done', 'not applied') NOT NULL",
        "DROP TABLE cdc.conflicts",
    )
    before = status(stage.profile)
    assert f"{create};;" in before
    stage.topic.send([stage.topic.query("DROP TABLE t", ("DropTable", f"{stage.name}/t"), database=stage.name)])
    stage.apply()
    assert stage.execute("SELECT sequence, state FROM cdc.ledger") == [
        (0, "done"), (1, "done"), (2, "not applied"), (3, "done"),
    ]  # fmt: skip
    assert line(status(stage.profile), "ledger") == "3 done, 1 not applied"
