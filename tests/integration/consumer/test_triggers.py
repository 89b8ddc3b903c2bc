"""The follower's own triggers and events, such as a copy brings: refused or dropped, never run beside the leader's."""

import re
from pathlib import Path

import pytest

from cdc.consumer.follower.locks import lock_name
from cdc.sandbox.server.kafka import Kafka
from tests.harness.programs import refused, run_well, running, write_profile
from tests.harness.topic import Stage, number
from tests.harness.wait import until

pytestmark = pytest.mark.integration
HISTORY = "CREATE TRIGGER `tr``1` AFTER INSERT ON t FOR EACH ROW INSERT INTO history VALUES (NEW.i)"


@pytest.fixture
def stage(stage: Stage) -> Stage:
    """A table and its history, which a trigger of the leader's writes."""
    for table in ("t", "history", "other"):
        stage.create_table(table, "(i INT PRIMARY KEY)" if table == "t" else "(i INT)")
    stage.apply()
    return stage


def add(stage: Stage, *numbers: int) -> None:
    """What the leader logs: the row, and the one of its trigger."""
    for value in numbers:
        stage.topic.send([
            stage.topic.add(f"{stage.name}/t", ["i"], [number(value)], key=["i"]),
            stage.topic.add(f"{stage.name}/history", ["i"], [number(value)]),
        ])  # fmt: skip


def test_triggers_of_the_follower_are_refused(stage: Stage, tmp_path: Path, kafka: Kafka) -> None:
    on_other = "CREATE TRIGGER on_other AFTER INSERT ON other FOR EACH ROW SET @a = 1"
    stage.execute(HISTORY, on_other)
    add(stage, 1, 2)
    line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert f"at flv://{stage.name}/{stage.name}/t" in line
    assert stage.execute("SELECT * FROM t") == []
    # Those of tables that are not replicated are nobody's business.
    part = write_profile(
        tmp_path, stage.follower, kafka, name="part", resource=stage.name, topic=stage.name,
        filters={"exclude_tables": ["*.other"]},
    )  # fmt: skip
    assert "on_other" in line
    assert "on_other" not in refused("cdc-consumer", part, "--until-current", status=3)
    stage.execute(*re.findall(r"DROP TRIGGER IF EXISTS [^;]+", line))
    stage.apply()
    assert stage.execute("SELECT * FROM history") == [(1,), (2,)]


def test_triggers_of_the_follower_are_dropped(stage: Stage, tmp_path: Path, kafka: Kafka) -> None:
    """Also one that comes while the consumer runs, once it connects anew; also amid a large transaction."""
    profile = write_profile(
        tmp_path, stage.follower, kafka, name="drops", resource=stage.name, topic=stage.name,
        consumer={"triggers": "drop"},
    )  # fmt: skip
    stage.execute(HISTORY)
    wide = "x" * 900_000
    other = [stage.topic.add(f"{stage.name}/t2", ["v"], [{"String": wide}]) for _ in range(6)]
    stage.create_table("t2", "(v LONGTEXT)")
    stage.topic.send([
        *other,
        stage.topic.add(f"{stage.name}/t", ["i"], [number(1)], key=["i"]),
        stage.topic.add(f"{stage.name}/history", ["i"], [number(1)]),
    ])  # fmt: skip
    said = run_well("cdc-consumer", profile, "--until-current")
    assert "trigger dropped" in said
    assert stage.execute("SHOW TRIGGERS") == []
    with running("cdc-consumer", profile):
        add(stage, 2)
        until(lambda: stage.execute("SELECT * FROM history") == [(1,), (2,)], what="the second row")
        stage.execute(HISTORY)
        ((consumer,),) = stage.execute(f"SELECT IS_USED_LOCK('{lock_name(stage.name)}')")
        stage.execute(f"KILL {consumer}")
        add(stage, 3)
        until(lambda: stage.execute("SELECT 1 FROM t WHERE i = 3"), what="the third row")
    assert stage.execute("SELECT * FROM history") == [(1,), (2,), (3,)]


def test_events_that_the_follower_runs_are_refused(stage: Stage) -> None:
    """While its scheduler is off, as here, nothing runs them: that is said, and no more."""
    on = stage.execute("SELECT @@GLOBAL.event_scheduler")
    stage.execute("CREATE EVENT `e 1` ON SCHEDULE EVERY 1 YEAR DO SET @a = 1")
    add(stage, 1)
    try:
        set_scheduler(stage, "ON")
        line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
        assert f"at flv://{stage.name}/{stage.name}" in line
        set_scheduler(stage, "OFF")
        assert "events would run once event_scheduler is ON" in stage.apply()
        set_scheduler(stage, "ON")
        add(stage, 2)
        refused("cdc-consumer", stage.profile, "--until-current", status=3)
        with stage.follower.root() as connection, connection.cursor() as cursor:
            for statement in re.findall(r"SET sql_log_bin = 0|ALTER EVENT .* DISABLE", line):
                cursor.execute(statement)
        assert "events would run" not in stage.apply()
    finally:
        set_scheduler(stage, on[0][0])
    assert stage.execute("SELECT i FROM t") == [(1,), (2,)]


def set_scheduler(stage: Stage, value: str) -> None:
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"SET GLOBAL event_scheduler = '{value}'")
