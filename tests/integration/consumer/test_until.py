"""cdc-consumer --until: whole leader transactions up to a place, and nothing behind it."""

from pathlib import Path

import pytest

from cdc.config.topic_names import PER_TABLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, own_name, run_well, running

pytestmark = pytest.mark.integration


def test_until_a_gtid_over_many_topics(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    layout = {"kafka": {"layout": PER_TABLE, "prefix": f"{name}-"}, "filters": {"include_dbs": [name]}}
    start = {"producer": {"start": "now"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=layout | start, target=layout)
    begin_now(pair.source, leader)
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
