"""Parked tables through kills: the set is that of the checkpoint, however often the consumer dies meanwhile, and what
was left out is applied once.
"""

import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pymysql.err import IntegrityError

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.long_runs import LONG
from tests.harness.programs import begin_now, records, run, run_well, stopped, write_profile
from tests.harness.seed import SEED

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


LEFT_OUT = """\
INSERT INTO {0}.wide VALUES (1, 'long')
INSERT INTO {0}.other VALUES (1)
BEGIN
INSERT INTO {0}.narrow VALUES (1)
UPDATE {0}.wide SET name = 'longer' WHERE id = 1
COMMIT
UPDATE {0}.narrow SET id = 2
INSERT INTO {0}.parent VALUES (3, 'three')
INSERT INTO {0}.child VALUES (30, 3), (31, 3), (11, 1)
DELETE FROM {0}.parent WHERE id = 1
BEGIN
INSERT INTO {0}.other VALUES (2)
INSERT INTO {0}.huge SELECT id * 10000 + n, REPEAT('x', 4500) FROM {0}.numbers, (SELECT 1 AS id) AS one
INSERT INTO {0}.wide VALUES (2, 'x')
COMMIT
OPTIMIZE TABLE {0}.wide
CREATE TABLE {0}.late (id INT PRIMARY KEY) SELECT 1 AS id
DELETE FROM {0}.huge WHERE id > 10800
INSERT INTO {0}.other VALUES (3)"""
TABLES = ("wide", "narrow", "other", "parent", "child", "huge", "late")


def test_kills_while_what_was_left_out_is_applied(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """A kill at each packet of the replay, in `make test` at each fifth, with a topic a table; before it the follower
    refuses the record again, and nothing is lost.
    """
    name = "parked_retried"
    topics = {"kafka": {"layout": "per_table", "prefix": f"{name}."}}
    producer = write_profile(tmp_path, leader, kafka, name=name, resource=name, filters={"include_dbs": [name]},
                             producer={"start": "now"}, **topics)  # fmt: skip
    consumer = write_profile(tmp_path, follower, kafka, name=f"{name}_c", resource=name, topic=name,
                             consumer={"on_refused": "park", "batch_rows": 2, "on_conflict": "stop"},
                             filters={"exclude_tables": [f"{name}.numbers"]}, **topics)  # fmt: skip
    begin_now(producer, leader)
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        for table in ("wide", "parent"):
            cursor.execute(f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, name CHAR(9))")
        for table in ("narrow", "other"):
            cursor.execute(f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY)")
        cursor.execute(f"CREATE TABLE {name}.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES "
                       f"{name}.parent (id) ON DELETE CASCADE)")  # fmt: skip
        cursor.execute(f"CREATE TABLE {name}.huge (id INT PRIMARY KEY, text VARCHAR(4500))")
        cursor.execute(f"CREATE TABLE {name}.numbers (n INT PRIMARY KEY)")
        cursor.execute(f"INSERT INTO {name}.numbers WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up "
                       f"WHERE n < 900) SELECT n FROM up")  # fmt: skip
        cursor.execute(f"INSERT INTO {name}.parent VALUES (1, 'one')")
        cursor.execute(f"INSERT INTO {name}.child VALUES (10, 1)")
    run_well("cdc-producer", producer, "--until-current")
    run_well("cdc-consumer", consumer, "--until-current")
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name}.wide MODIFY name CHAR(3)")
        cursor.execute(f"ALTER TABLE {name}.parent MODIFY name CHAR(3)")
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in LEFT_OUT.format(name).splitlines():
            cursor.execute(statement)
    run_well("cdc-producer", producer, "--until-current")
    run_well("cdc-consumer", consumer, "--until-current")
    where = f"FROM cdc.parked WHERE resource = '{name}' ORDER BY 1"
    before = asked(follower, f"SELECT table_name, sequence {where}")
    assert [table for table, _ in before] == ["child", "huge", "narrow", "other", "parent", "wide"]
    _, told = stopped("cdc-consumer", consumer, "--until-current", "--retry-parked", status=3)
    assert "Data too long" in told
    assert f"cdc-producer PROFILE --copy {name}.wide" in told
    assert "--skip" not in told
    assert asked(follower, f"SELECT table_name, sequence {where}") == before
    with follower.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE {name}.wide MODIFY name CHAR(9)")
        cursor.execute(f"ALTER TABLE {name}.parent MODIFY name CHAR(9)")
    reached = f"SELECT sequence FROM cdc.checkpoint WHERE resource = '{name}'"
    there = asked(follower, reached)
    for number in range(1, 200, 1 if LONG else 5):
        point = f"{('before', 'after')[number % 2]} packet"
        done = run("killed_consumer", consumer, point, str(number), "--retry-parked")
        assert asked(follower, reached) == there
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert number > 5
    assert asked(follower, f"SELECT table_name, sequence {where}") == []
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE {name}.wide SET name = 'y'")
    run_well("cdc-producer", producer, "--until-current")
    told = run_well("cdc-consumer", consumer, "--until-current", "--retry-parked")
    assert "no table is parked" in told
    for table in TABLES:
        query = f"SELECT * FROM {name}.{table} ORDER BY 1"
        assert asked(follower, query) == asked(leader, query), table


# Tables of random histories, and what changes them: {0} and {1} are keys, {2} a value that no earlier round had.
RANDOM = {
    "p": ("id INT PRIMARY KEY, n INT", "INSERT IGNORE INTO p VALUES ({0}, {2})",
          "UPDATE IGNORE p SET id = {1}, n = {2} WHERE id = {0}", "DELETE IGNORE FROM p WHERE id = {0}"),
    "c": ("id INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE",
          "INSERT IGNORE INTO c VALUES ({0}, {1}, {2})", "UPDATE IGNORE c SET n = {2}, p = {1} WHERE id = {0}",
          "DELETE FROM c WHERE id = {0}"),
    "u": ("id INT PRIMARY KEY, n INT UNIQUE", "INSERT IGNORE INTO u VALUES ({0}, {2})",
          "UPDATE IGNORE u SET n = {2} WHERE id = {0}", "DELETE FROM u WHERE id = {0}"),
    "k": ("n INT, t CHAR(1)", "INSERT INTO k VALUES ({0}, 'a'), ({1}, 'b'), ({0}, 'a')",
          "UPDATE k SET n = {2} WHERE n = {0}", "DELETE FROM k WHERE n = {0} LIMIT 1"),
    "z": ("id INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES p (id)",
          "INSERT IGNORE INTO z VALUES ({0}, {1}, {2})", "UPDATE IGNORE z SET n = {2} WHERE id = {0}",
          "DELETE FROM z WHERE id = {0}"),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.newer("8.0 does not log what foreign keys change")
def test_what_was_left_out_of_random_histories(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """In each round the follower refuses some values of a table; now and then one of the tables is copied again.

    `make test` has test_kills_while_what_was_left_out_is_applied.
    """
    random, name = Random(f"{SEED} parked"), "parked_random"
    producer = write_profile(tmp_path, leader, kafka, name=name, resource=name, filters={"include_dbs": [name]},
                             producer={"start": "now"})  # fmt: skip
    consumer = write_profile(tmp_path, follower, kafka, name=f"{name}_c", resource=name, topic=name,
                             consumer={"on_refused": "park", "batch_rows": 4, "on_conflict": "stop"})  # fmt: skip
    begin_now(producer, leader)
    tables = [f"CREATE TABLE {table} ({columns})" for table, (columns, *_) in RANDOM.items()]
    executed(leader, f"CREATE DATABASE {name}", f"USE {name}", *tables)
    parked, rounds = f"SELECT table_name FROM cdc.parked WHERE resource = '{name}'", 0
    for base in range(1000, 25_000, 1000):
        run_well("cdc-producer", producer, "--until-current")
        run_well("cdc-consumer", consumer, "--until-current")
        table, most = random.choice([*RANDOM]), base + random.choice([60, 150, 400])
        executed(follower, f"ALTER TABLE {name}.{table} ADD CONSTRAINT narrow CHECK (n NOT BETWEEN {base} AND {most})")
        executed(leader, f"USE {name}", *random_changes(random, base))
        run_well("cdc-producer", producer, "--until-current")
        run_well("cdc-consumer", consumer, "--until-current")
        waiting = [each for (each,) in asked(follower, parked)]
        rounds += bool(waiting)
        executed(follower, f"ALTER TABLE {name}.{table} DROP CHECK narrow")
        if waiting and random.random() < 0.3:
            run_well("cdc-producer", producer, "--until-current", "--copy", f"{name}.{random.choice(waiting)}")
            run_well("cdc-consumer", consumer, "--until-current")
        for _ in range(random.randrange(4)):
            point = random.choice(["before packet", "after packet"]), str(random.randrange(4, 14))
            assert run("killed_consumer", consumer, *point, "--retry-parked").returncode in (0, -signal.SIGKILL)
        told = run_well("cdc-consumer", consumer, "--until-current", "--retry-parked")
        assert asked(follower, parked) == [], told
        for each in RANDOM:
            query = f"SELECT * FROM {name}.{each} ORDER BY 1, 2"
            assert asked(follower, query) == asked(leader, query), f"CDC_SEED={SEED}, {each} after {base}: {told}"
    assert rounds > 3


def random_changes(random: Random, base: int) -> Iterator[str]:
    """Transactions of one change to three."""
    for _ in range(40):
        yield "BEGIN"
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            _, *changes = RANDOM[random.choice([*RANDOM])]
            yield random.choice(changes).format(
                random.randrange(12), random.randrange(12), base + random.randrange(900)
            )
        yield "COMMIT"


def executed(server: MySql, *statements: str) -> None:
    """Executes statements; a row that its server refuses is left out."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            with suppress(IntegrityError):
                cursor.execute(statement)


def asked(server: MySql, query: str) -> list[Any]:
    """The rows of a query."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return list(cursor.fetchall())
