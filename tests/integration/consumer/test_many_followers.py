"""Several followers of one topic, each with a checkpoint of its own."""

import signal
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import until

pytestmark = pytest.mark.integration

NAME = "many"


def work(leader: MySql, number: int) -> None:
    """A few leader transactions, statements among them; each number makes others."""
    with leader.connect(database=NAME) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, n INT)")
        for row in range(50):
            cursor.execute(f"INSERT INTO t{number} VALUES ({row}, {row * number})")
        cursor.execute(f"ALTER TABLE t{number} ADD COLUMN a INT DEFAULT {number}")
        cursor.execute(f"UPDATE t{number} SET n = n + 1 WHERE id % 3 = 0")
        cursor.execute(f"DELETE FROM t{number} WHERE id % 7 = 0")


def test_three_that_start_at_different_times(
    tmp_path: Path, leader: MySql, follower: MySql, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    followers = [follower, mysql_server(server_id=21), mysql_server(server_id=22)]
    keys = {"resource": NAME, "topic": NAME}
    filters = {"include_dbs": [NAME]}
    producer = write_profile(tmp_path, leader, kafka, name=NAME, filters=filters, producer={"start": "now"}, **keys)
    first, second, third = [
        write_profile(tmp_path, server, kafka, name=f"{NAME}_{number}", **keys)
        for number, server in enumerate(followers)
    ]
    run_well("cdc-producer", producer, "--until-current")
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {NAME}")
    with running("cdc-producer", producer), running("cdc-consumer", first):
        work(leader, 1)
        until(lambda: "t1" in tables(followers[0]), what="the first is at work")
        with running("cdc-consumer", second) as killed:
            until(lambda: "t1" in tables(followers[1]), what="the second is at work")
            work(leader, 2)
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        followers[1].kill()
        work(leader, 3)
        with running("cdc-consumer", third):
            work(leader, 4)
            until(lambda: "t4" in tables(followers[2]), what="the third is at work")
            followers[1].start()
            with running("cdc-consumer", second):
                work(leader, 5)
                until(lambda: "t3" in tables(followers[1]), what="the second is back")
    run_well("cdc-producer", producer, "--until-current")
    for profile, server in zip((first, second, third), followers, strict=True):
        run_well("cdc-consumer", profile, "--until-current")
        assert content(server, NAME) == content(leader, NAME)


def tables(server: MySql) -> set[str]:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{NAME}'")
        return {name for (name,) in cursor.fetchall()}
