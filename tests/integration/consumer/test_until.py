"""cdc-consumer --until: whole leader transactions up to a place, and nothing behind it."""

from pathlib import Path

import pytest

from cdc.config.topic_names import PER_TABLE
from cdc.consumer.source.assembler import MOST_BYTES
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.pair import Pair
from tests.harness.programs import own_name, refused, run_well, running
from tests.harness.topic import Body, Stage, number, text

pytestmark = pytest.mark.integration


def row(stage: Stage, id_: int) -> Body:
    return stage.topic.add(f"{stage.name}/t", ["id"], [number(id_)], key=["id"])


def up_to(stage: Stage, place: str, *options: str) -> str:
    return run_well("cdc-consumer", stage.profile, "--until", place, *options)


def test_until_a_sequence_a_gtid_and_a_time(stage: Stage) -> None:
    stage.create_table("t", "(id INT PRIMARY KEY)")
    # Transactions 3, 4, 5 are the records 2, 3 to 5, and 6.
    stage.topic.send([row(stage, 2)], [row(stage, n) for n in (3, 4, 5)], [row(stage, 6)])
    log = up_to(stage, "4")
    assert " the place is reached until=4 sequence=2 next_sequence=3 next_transaction=3e11fa47-" in log
    assert "inside of it" in log
    assert stage.execute("SELECT * FROM t") == [(2,)]
    assert "sequence=5 next_sequence=6" in up_to(stage, "2024-11-20T18:00:00.000006Z")
    assert stage.checkpoint() == 5
    for place in ("4", "2024-11-20T19:00:00.000001+01:00"):
        line = refused("cdc-consumer", stage.profile, "--until", place)
        assert f"the follower has passed {place}: it is at sequence 5" in line
    gtid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    assert "is in no record after sequence 5" in refused("cdc-consumer", stage.profile, "--until", f"{gtid}:4")
    assert "sequence=5 next_sequence=6" in up_to(stage, f"{gtid}:5")
    assert 'next="not in the topic yet"' in up_to(stage, "6")
    assert 'next="not in the topic yet"' in up_to(stage, "6")  # it does not wait for what comes next
    assert "warning the place is not reached until=7 sequence=6" in up_to(stage, "7", "--until-current")


def test_until_a_place_inside_of_a_large_transaction(stage: Stage) -> None:
    path = stage.create_table("t", "(id INT PRIMARY KEY, t MEDIUMTEXT)")
    content = text("x" * (MOST_BYTES // 3))
    records = [stage.topic.add(path, ["id", "t"], [number(n), content], key=["id"]) for n in range(8)]
    stage.topic.send(records)
    assert "sequence=1 next_sequence=2" in up_to(stage, "8")
    assert stage.checkpoint() == 1
    assert stage.execute("SELECT id FROM t") == []
    up_to(stage, "9")
    assert len(stage.execute("SELECT id FROM t")) == 8


def test_until_a_place_inside_of_a_large_create_table_select(stage: Stage) -> None:
    path = f"{stage.name}/made"
    made = stage.topic.query(
        "CREATE TABLE made (id INT PRIMARY KEY, t MEDIUMTEXT) START TRANSACTION", ("CreateTable", path),
        database=stage.name,
    )  # fmt: skip
    content = text("x" * (MOST_BYTES // 3))
    rows = [stage.topic.add(path, ["id", "t"], [number(n), content], key=["id"]) for n in range(8)]
    stage.topic.send([made, *rows])
    assert "sequence=0 next_sequence=1" in up_to(stage, "8")
    assert stage.execute("SHOW TABLES") == []
    assert "sequence=9" in up_to(stage, "9")
    assert len(stage.execute("SELECT id FROM made")) == 8


def test_until_a_gtid_over_many_topics(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    layout = {"kafka": {"layout": PER_TABLE, "prefix": f"{name}-"}, "filters": {"include_dbs": [name]}}
    start = {"producer": {"start": "now"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=layout | start, target=layout)
    run_well("cdc-producer", pair.source, "--until-current")
    tables = [f"CREATE TABLE {table} (id INT PRIMARY KEY)" for table in "ab"]
    pair.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}", *tables, "INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)"
    )
    executed = next_gtid(leader)
    pair.on_leader("DROP TABLE b", "INSERT INTO a VALUES (2)", database=name)
    run_well("cdc-producer", pair.source, "--until-current")
    assert f"next_transaction={executed}" in run_well("cdc-consumer", pair.target, "--until", executed)
    assert count(follower, f"{name}.a") == count(follower, f"{name}.b") == 1
    pair.replicate()
    assert count(follower, f"{name}.a") == 2
    # One that is still to come is waited for.
    executed = next_gtid(leader)
    with running("cdc-consumer", pair.target, "--until", executed) as process:
        pair.on_leader("INSERT INTO a VALUES (3)", "INSERT INTO a VALUES (4)", database=name)
        run_well("cdc-producer", pair.source, "--until-current")
        assert process.wait(60) == 0
    assert count(follower, f"{name}.a") == 2


def next_gtid(server: MySql) -> str:
    """The GTID of the next transaction."""
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@server_uuid, @@gtid_executed")
        uuid, executed = cursor.fetchone()
    (own,) = [each for each in executed.replace("\n", "").split(",") if each.startswith(uuid)]
    return f"{uuid}:{int(own.replace('-', ':').rpartition(':')[2]) + 1}"


def count(server: MySql, table: str) -> int:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {table}")
        return int(cursor.fetchone()[0])
