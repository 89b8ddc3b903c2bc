"""A leader's database that is called as the consumer's own on the follower: refused, and how to go on."""

from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import refused, run, run_well, write_profile
from tests.harness.topic import Stage, number

pytestmark = pytest.mark.integration

NAME, OWN = "own_schema", "bookkept"


def test_a_leaders_database_is_never_taken_for_the_consumers_own(tmp_path: Path, follower: MySql, kafka: Kafka) -> None:
    def profile(**tables: Any) -> Path:
        keys: dict[str, Any] = {"resource": NAME, "consumer": {"schema": OWN, "connections": 1}}
        return write_profile(tmp_path, follower, kafka, name=NAME, **keys | tables)

    stage = Stage.make(tmp_path, follower, kafka, name=NAME, consumer={"schema": OWN})
    path = stage.create_table("a", "(i INT PRIMARY KEY)")
    send = stage.topic.send
    send([stage.topic.add(path, ["i"], [number(1)], key=["i"])])
    stage.apply()
    assert stage.execute("SELECT i FROM a") == [(1,)]
    assert stage.execute(f"SELECT sequence FROM checkpoint WHERE resource = '{NAME}'", database=OWN) == [(2,)]
    assert stage.execute("SELECT state FROM ledger ORDER BY sequence", database=OWN) == [("done",), ("done",)]
    said = run("cdc-consumer", profile(), "--status").stdout
    assert "2" in said
    assert "flv" not in said or "done" in said

    # It can't be changed later: all would be applied once more.
    line = refused("cdc-consumer", profile(consumer={}), "--until-current")
    assert f"is in database {OWN}, not in cdc" in line

    # Rows of the leader's own, and then a statement.
    send([stage.topic.add(path, ["i"], [number(2)], key=["i"])])
    send([stage.topic.add(f"{OWN}/checkpoint", ["i"], [number(1)], key=["i"])])
    send([stage.topic.query(f"DROP DATABASE {OWN}", ("DropDatabase", OWN))])
    line = refused("cdc-consumer", profile(), "--until-current")
    assert f"the leader has a database {OWN}" in line
    assert "consumer.schema" in line
    # Leaving it out is the way on.
    out = {"exclude_dbs": [OWN]}
    run_well("cdc-consumer", profile(filters=out), "--until-current")
    assert stage.execute("SELECT i FROM a ORDER BY i") == [(1,), (2,)]
    assert stage.execute(f"SELECT sequence FROM checkpoint WHERE resource = '{NAME}'", database=OWN) == [(5,)]
    send([stage.topic.query(f"CREATE TABLE {OWN}.x (i INT)", ("CreateTable", f"{OWN}/x"))])
    assert f"the leader has a database {OWN}" in refused("cdc-consumer", profile(), "--until-current")
    # A conflict is noted there as well.
    send([stage.topic.delete(path, ["i"], [number(7)], key=["i"])])
    run_well("cdc-consumer", profile(filters=out), "--until-current")
    assert stage.execute("SELECT number FROM conflicts", database=OWN) == [(1,)]


@pytest.mark.parametrize("schema", ["", "mysql", "a.b", "a`b"])
def test_a_schema_that_cannot_be(tmp_path: Path, follower: MySql, kafka: Kafka, schema: str) -> None:
    path = write_profile(tmp_path, follower, kafka, name="no-schema", consumer={"schema": schema})
    assert "consumer.schema" in refused("cdc-consumer", path)
