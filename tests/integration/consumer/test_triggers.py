"""The follower's own triggers and events, such as a copy brings: refused or dropped, never run beside the leader's."""

from pathlib import Path

import pytest

from cdc.consumer.follower.locks import lock_name
from cdc.sandbox.server.kafka import Kafka
from tests.harness.programs import run_well, running, write_profile
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
