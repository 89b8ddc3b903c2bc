"""Records that somebody else wrote, who may write to the topic and not to the follower."""

import pytest

from tests.harness.programs import refused, run_well
from tests.harness.topic import Body, Stage, number, text

pytestmark = pytest.mark.integration


def root(stage: Stage, query: str) -> list[tuple[object, ...]]:
    with stage.follower.root() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())


def test_a_statement_that_is_not_what_its_record_says(stage: Stage) -> None:
    """It is never run, whatever it is; the way out is that of any statement that the follower refuses."""
    path = stage.create_table("t", "(i INT)")
    create = ("CreateTable", f"{stage.name}/u")

    def lie(statement: str) -> Body:
        return stage.topic.query(statement, create, database=stage.name)

    for statement, reason in (
        ("CREATE USER 'intruder'@'%'", "not of a kind that is replicated (account)"),
        ("CREATE TABLE u (i INT); CREATE USER 'intruder'@'%'", "the follower refuses a statement"),
        (f"DROP TABLE {stage.name}.t, mysql.time_zone", "affects other objects than its record says"),
    ):
        sequence = stage.topic.next_sequence
        stage.topic.send([lie(statement)])
        line = refused("cdc-consumer", stage.profile, "--until-current", status=3)
        assert reason in line
        assert f"sequence {sequence}, " in line
        run_well("cdc-consumer", stage.profile, "--until-current", "--skip", str(sequence))
    stage.topic.send([stage.topic.add(path, ["i"], [number(1)])])
    stage.apply()
    assert stage.execute("SELECT i FROM t") == [(1,)]
    assert stage.execute("SHOW TABLES") == [("t",)]
    assert root(stage, "SELECT 1 FROM mysql.user WHERE user = 'intruder'") == []
    assert root(stage, "SHOW TABLES FROM mysql LIKE 'time_zone'") == [("time_zone",)]


def test_rows_of_the_server_and_of_the_bookkeeping(stage: Stage) -> None:
    """They go nowhere, not by way of a view either, nor by values that are none."""
    view = f"CREATE VIEW v AS SELECT * FROM {stage.name}.t"
    path = stage.create_table("t", "(name VARCHAR(64) PRIMARY KEY)")
    zones = [stage.topic.add("mysql/time_zone", ["Use_leap_seconds"], [text("Y")])]
    stage.topic.send(zones, [stage.topic.query(view, ("CreateView", f"{stage.name}/v"), database=stage.name)])
    before = root(stage, "SELECT COUNT(*) FROM mysql.time_zone")
    stage.apply()
    assert root(stage, "SELECT COUNT(*) FROM mysql.time_zone") == before
    assert stage.checkpoint() == stage.topic.next_sequence - 1
    value = {"SignedInteger": "1); DROP TABLE t; --"}
    stage.topic.send([stage.topic.add(path, ["name"], [value], key=["name"])])
    assert "cannot be applied" in refused("cdc-consumer", stage.profile, "--until-current", status=3)
    run_well("cdc-consumer", stage.profile, "--until-current", "--skip", str(stage.topic.next_sequence - 1))
    stage.topic.send([stage.topic.add(f"{stage.name}/v", ["name"], [text("a")], key=["name"])])
    assert "is a view on the follower" in refused("cdc-consumer", stage.profile, "--until-current", status=3)
    assert stage.execute("SELECT * FROM t") == []


def test_rows_of_the_consumers_own_tables(stage: Stage) -> None:
    stage.apply()
    own = stage.topic.delete("cdc/checkpoint", ["resource"], [text(stage.name)], key=["resource"])
    stage.topic.send([own])
    assert "the leader has a database cdc" in refused("cdc-consumer", stage.profile, "--until-current")
    assert stage.checkpoint() == stage.topic.next_sequence - 2
