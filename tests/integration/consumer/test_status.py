"""cdc-consumer --status: what an operator needs to know of a follower, whatever state it and the consumer are in."""

from pathlib import Path

import pytest

from tests.harness.programs import run, running
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
