"""Tables that are copied into the stream: a follower gets the leader's rows, whatever it had and whatever changes."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import own_name, run_well

pytestmark = pytest.mark.integration

_TABLES = (
    f"CREATE TABLE t (id INT PRIMARY KEY, n INT, pad VARCHAR(300) DEFAULT '{'-' * 100}')",
    (
        "CREATE TABLE named (name VARCHAR(40) COLLATE utf8mb4_0900_ai_ci, part DECIMAL(6,2), u INT, "
        "PRIMARY KEY (name, part), UNIQUE (u))"
    ),
    "CREATE TABLE shown (id INT PRIMARY KEY, g VARCHAR(9) AS (CONCAT(id, _utf8mb4'😀')))",
    "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT)",
    "CREATE TABLE child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
    "CREATE VIEW a_view AS SELECT * FROM b_view",
)


@contextmanager
def _written_to(leader: MySql, database: str) -> Iterator[None]:
    """Clients change the tables meanwhile."""
    stop = threading.Event()
    seed = random.Random(1)

    def write() -> None:
        with leader.root(database=database, autocommit=True) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                number = seed.randrange(4000)
                for statement in (
                    f"REPLACE INTO t (id, n) VALUES ({number}, {number})",
                    f"DELETE FROM t WHERE id = {seed.randrange(4000)}",
                    f"UPDATE IGNORE t SET id = id + 10000 WHERE id = {seed.randrange(2000)}",
                    f"INSERT IGNORE INTO named VALUES ('É{number}', {number / 100}, {number})",
                    f"UPDATE named SET u = {seed.randrange(4000)} WHERE u = {seed.randrange(4000)} LIMIT 0",
                    f"DELETE FROM parent WHERE id = {seed.randrange(1, 1000)}",
                    f"INSERT IGNORE INTO child SELECT {number}, MAX(id) FROM parent",
                ):
                    cursor.execute(statement)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def _fill(pair: Pair, database: str) -> None:
    rows = ", ".join(f"({number}, 0)" for number in range(4000))
    names = ", ".join(f"('{'é' if number % 2 else 'e'}{number}', {number / 10}, {number})" for number in range(1000))
    parents = ", ".join(f"({number})" for number in range(1, 1000))
    children = ", ".join(f"({number}, {number})" for number in range(1, 1000))
    pair.on_leader(
        f"CREATE DATABASE {database}",
        f"USE {database}",
        *_TABLES[:-1],
        "CREATE VIEW b_view AS SELECT 1 AS one",
        _TABLES[-1],
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC RETURN 1",
        "SET NAMES cp1251",
        "CREATE FUNCTION g() RETURNS VARCHAR(9) CHARSET utf8mb4 DETERMINISTIC RETURN 'é'",
        "SET NAMES utf8mb4",
        f"INSERT INTO t (id, n) VALUES {rows}",
        f"INSERT INTO named VALUES {names}",
        "INSERT INTO shown (id) VALUES (1)",
        f"INSERT INTO parent VALUES {parents}",
        f"INSERT INTO child VALUES {children}",
    )


@pytest.mark.parametrize("layout", [SINGLE, PER_TABLE])
def test_a_leader_without_its_first_binlogs_becomes_a_follower(
    tmp_path: Path, mysql_server: Any, follower: MySql, kafka: Kafka, layout: str
) -> None:
    leader, name = mysql_server(), own_name(tmp_path)
    keys = {"kafka": {"layout": layout, "prefix": f"{name}."}, "filters": {"include_dbs": [name]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys, target=keys)
    _fill(pair, name)
    pair.on_leader("FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    with _written_to(leader, name):
        pair.replicate()
    pair.replicate()
    assert content(follower, name) == content(leader, name)
    assert _answers(follower, name) == _answers(leader, name) == ("Г©", "utf8mb4", 1)


def _answers(server: MySql, database: str) -> tuple[object, ...]:
    with server.root(database=database, charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT g(), CHARSET(g()), (SELECT one FROM a_view)")
        return tuple(cursor.fetchone())


def test_an_invalid_view_is_left_out(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    keys = {"filters": {"include_dbs": [name]}, "producer": {"start": "copy"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys, target=keys)
    pair.on_leader(
        f"CREATE DATABASE {name}", f"USE {name}", "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE u (id INT)",
        "CREATE VIEW of_t AS SELECT * FROM t", "CREATE VIEW of_u AS SELECT * FROM u", "DROP TABLE u",
    )  # fmt: skip
    log = run_well("cdc-producer", pair.source, "--until-current")
    assert f"a view is invalid, and left out view={name}.of_u" in log
    run_well("cdc-consumer", pair.target, "--until-current")


def test_a_table_is_put_right(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    keys = {"filters": {"include_dbs": [name]}, "producer": {"start": "now"}, "consumer": {"on_conflict": "stop"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys, target=keys)
    run_well("cdc-producer", pair.source, "--until-current")
    _fill(pair, name)
    pair.replicate()
    pair.on_follower(
        f"USE {name}",
        "DELETE FROM t WHERE id % 7 = 0",
        "UPDATE t SET n = -1 WHERE id % 5 = 0",
        "INSERT INTO t (id, n) SELECT 20000 + id, 1 FROM t WHERE id % 11 = 0",
        "DELETE FROM named WHERE u % 3 = 0",
        "UPDATE named SET u = u + 100000 WHERE u % 2 = 0",
        "DELETE FROM parent WHERE id < 100",
    )
    with _written_to(leader, name):
        run_well("cdc-producer", pair.source, "--copy", f"{name}.*")
        run_well("cdc-producer", pair.source, "--until-current")
    log = pair.replicate()
    print(log)
    assert content(follower, name) == content(leader, name)
