"""Parked tables through kills: the set is that of the checkpoint, however often the consumer dies meanwhile."""

import signal
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.programs import begin_now, records, run, run_well, write_profile

pytestmark = [pytest.mark.integration, pytest.mark.crash]

STATEMENTS = """\
INSERT INTO {0}.wide VALUES (1, 'long')
INSERT INTO {0}.narrow VALUES (1)
ALTER TABLE {0}.wide ADD more INT
UPDATE {0}.wide SET name = 'longer'
INSERT INTO {0}.narrow VALUES (2)
CREATE TABLE {0}.there (id INT)
INSERT INTO {0}.there VALUES (1)
CREATE TABLE {0}.other (id INT PRIMARY KEY) SELECT 1 AS id
BEGIN
INSERT INTO {0}.narrow VALUES (3)
INSERT INTO {0}.huge SELECT id * 10000 + n, REPEAT('x', 4500) FROM {0}.numbers, (SELECT 1 AS id) AS one
INSERT INTO {0}.wide VALUES (2, 'x', 1)
COMMIT
INSERT INTO {0}.other VALUES (2)"""


def test_kills_while_tables_are_parked(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """A kill at each packet that the consumer sends, if one is that far; a large transaction of which only
    the last part touches a parked table is left out whole, after parts of it were executed.
    """
    name = "parked_kills"
    producer = write_profile(tmp_path, leader, kafka, name=name, resource=name, filters={"include_dbs": [name]},
                             producer={"start": "now"})  # fmt: skip
    consumer = write_profile(tmp_path, follower, kafka, name=f"{name}_c", resource=name, topic=name,
                             consumer={"on_refused": "park"})  # fmt: skip
    begin_now(producer, leader)
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        cursor.execute(f"CREATE TABLE {name}.wide (id INT PRIMARY KEY, name CHAR(9))")
        cursor.execute(f"CREATE TABLE {name}.narrow (id INT PRIMARY KEY)")
        cursor.execute(f"CREATE TABLE {name}.huge (id INT PRIMARY KEY, text VARCHAR(4500))")
        cursor.execute(f"CREATE TABLE {name}.numbers (n INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {name}.numbers WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up "
                       f"WHERE n < 900) SELECT n FROM up")  # fmt: skip
    run_well("cdc-producer", producer, "--until-current")
    run_well("cdc-consumer", consumer, "--until-current")
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name}.wide MODIFY name CHAR(3)")
        cursor.execute(f"CREATE TABLE {name}.there (other INT PRIMARY KEY)")
        key = f"id INT PRIMARY KEY, other INT, FOREIGN KEY (other) REFERENCES {name}.there (other)"
        cursor.execute(f"CREATE TABLE {name}.follows ({key} ON DELETE CASCADE)")
        cursor.execute(f"CREATE TABLE {name}.stays ({key})")
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in STATEMENTS.format(name).splitlines():
            cursor.execute(statement)
    run_well("cdc-producer", producer, "--until-current")
    made = records(producer)
    for number in range(1, 200):
        done = run("killed_consumer", consumer, f"{('before', 'after')[number % 2]} packet", str(number))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert number > 5
    last = run_well("cdc-consumer", consumer, "--until-current")
    assert asked(follower, f"SELECT id FROM {name}.narrow ORDER BY id") == [(1,), (2,)], last
    assert asked(follower, f"SELECT id FROM {name}.other ORDER BY id") == [(1,), (2,)]
    assert asked(follower, f"SELECT COUNT(*) FROM {name}.huge") == asked(follower, f"SELECT COUNT(*) FROM {name}.wide")
    parked = asked(follower, f"SELECT table_name, state FROM cdc.parked WHERE resource = '{name}' ORDER BY 1")
    assert parked == [(table, "parked") for table in ("follows", "huge", "narrow", "there", "wide")]
    ((sequence,),) = asked(follower, f"SELECT sequence FROM cdc.checkpoint WHERE resource = '{name}'")
    assert sequence == made[-1].sequence
    noted = asked(follower, f"SELECT COUNT(*) FROM cdc.ledger WHERE resource = '{name}' AND state = 'intent'")
    assert noted == [(0,)]


def asked(server: MySql, query: str) -> list[Any]:
    """The rows of a query."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
