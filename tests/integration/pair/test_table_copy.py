"""Tables that are copied into the stream: a follower gets the leader's rows, whatever it had and whatever changes."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.long_runs import in_long_runs
from tests.harness.pair import Pair
from tests.harness.programs import as_json, begin_now, end_offset, own_name, run, run_well, running
from tests.harness.wait import until

pytestmark = pytest.mark.integration

_TABLES = (
    f"CREATE TABLE t (id INT PRIMARY KEY, n INT, pad VARCHAR(300) DEFAULT '{'-' * 100}')",
    (
        "CREATE TABLE named (name VARCHAR(40) COLLATE utf8mb4_0900_ai_ci, part DECIMAL(6,2), u INT, "
        "PRIMARY KEY (name, part), UNIQUE (u))"
    ),
    "CREATE TABLE shown (id INT PRIMARY KEY, g VARCHAR(9) AS (CONCAT(id, _utf8mb4'😀')))",
    "CREATE TABLE bare (n INT, name VARCHAR(40))",
    "CREATE TABLE begun (name VARCHAR(40), n INT, t TEXT, PRIMARY KEY (name(3), n), UNIQUE (t(2), n))",
    "CREATE TABLE zero (at DATETIME PRIMARY KEY, g INT AS (YEAR(at)))",
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
            while not stop.wait(0.005):
                number = seed.randrange(4000)
                for statement in (
                    f"REPLACE INTO t (id, n) VALUES ({number}, {number})",
                    f"DELETE FROM t WHERE id = {seed.randrange(4000)}",
                    f"UPDATE IGNORE t SET id = id + 10000 WHERE id = {seed.randrange(2000)}",
                    f"INSERT IGNORE INTO named VALUES ('É{number}', {number / 100}, {number})",
                    f"UPDATE named SET u = {seed.randrange(4000)} WHERE u = {seed.randrange(4000)} LIMIT 0",
                    f"DELETE FROM parent WHERE id = {seed.randrange(1, 1000)}",
                    f"INSERT IGNORE INTO child SELECT {number}, MAX(id) FROM parent",
                    f"REPLACE INTO begun VALUES ('Abc{number}', {number % 50}, 'é{number}')",
                    f"UPDATE IGNORE begun SET name = 'ABC!' WHERE n = {seed.randrange(50)}",
                    f"DELETE FROM begun WHERE n = {seed.randrange(50)}",
                    f"INSERT INTO bare VALUES ({number % 50}, NULL)",
                    f"UPDATE bare SET name = '{number}' WHERE n = {seed.randrange(50)} LIMIT 2",
                    f"DELETE FROM bare WHERE n = {seed.randrange(50)} LIMIT 1",
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
        "INSERT INTO begun SELECT name, u, name FROM named",
        "INSERT INTO bare SELECT u DIV 20, IF(u % 3, 'a', NULL) FROM named",
        "SET sql_mode = ''",
        "INSERT INTO zero (at) VALUES ('0000-00-00'), ('2001-02-03')",
        "SET sql_mode = DEFAULT",
        f"INSERT INTO parent VALUES {parents}",
        f"INSERT INTO child VALUES {children}",
    )


@pytest.mark.newer("a leader that logs what foreign keys change")
@pytest.mark.parametrize("layout", [in_long_runs(SINGLE), PER_TABLE])
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


@pytest.mark.newer("a leader that logs what foreign keys change")
def test_what_the_filters_let_in_later_is_created_and_copied(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    name = own_name(tmp_path)

    def pair(**filters: list[str]) -> Pair:
        keys = {"filters": filters, "producer": {"start": "now"}, "consumer": {"on_conflict": "stop"}}
        return Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys)

    narrow = pair(include_tables=[f"{name}.t"])
    run_well("cdc-producer", narrow.source, "--until-current")
    _fill(narrow, name)
    narrow.replicate()
    # What the producer reads next was logged before the definitions that it finds.
    narrow.on_leader(
        f"CREATE DATABASE {name}b", f"CREATE FUNCTION {name}b.h() RETURNS INT DETERMINISTIC RETURN 1", f"USE {name}",
        "ALTER TABLE shown ADD more INT DEFAULT 7, ADD INDEX (more)", "UPDATE shown SET more = 8",
        "CREATE TABLE short (i INT)", "DROP TABLE short", "UPDATE t SET n = 9 WHERE id < 9",
        "XA START 'x'", "INSERT INTO child VALUES (99999, NULL)", "XA END 'x'", "XA PREPARE 'x'",
    )  # fmt: skip
    # Followers may have something of it, from a time when the filters let it in.
    narrow.on_follower(
        f"CREATE DATABASE {name}b", f"CREATE FUNCTION {name}b.h() RETURNS INT DETERMINISTIC RETURN 7", f"USE {name}",
        "CREATE VIEW a_view AS SELECT 7", "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT)",
        "INSERT INTO parent VALUES (7000)",
    )  # fmt: skip
    wide = pair(include_dbs=[f"{name}*"])
    printed = run("cdc-producer", wide.source, "--dry-run")
    assert printed.returncode == 0, printed.stderr
    assert "copies first what the filters let in now" in printed.stdout
    assert f"{name}.t:" not in printed.stdout
    with _written_to(leader, name):
        log = run_well("cdc-producer", wide.source, "--until-current")
        assert f"copied a table table={name}.named" in log
        assert f"copied a table table={name}.t " not in log
        wide.on_leader("XA COMMIT 'x'")
    wide.replicate()
    assert content(follower, name) == content(leader, name)
    assert _answers(follower, name) == _answers(leader, name)
    with follower.root(database=f"{name}b") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT h()")
        assert cursor.fetchone() == (1,)


@pytest.mark.newer("a leader that logs what foreign keys change")
def test_a_table_is_put_right(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    keys = {"filters": {"include_dbs": [name]}, "producer": {"start": "now"}, "consumer": {"on_conflict": "stop"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys, target=keys)
    begin_now(pair.source, leader)
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
        "UPDATE begun SET name = CONCAT(name, 'x') WHERE n % 3 = 0",
        "DELETE FROM begun WHERE n % 7 = 0",
        "DELETE FROM bare LIMIT 7",
        "SET sql_mode = ''",
        "DELETE FROM zero",
    )
    with _written_to(leader, name):
        run_well("cdc-producer", pair.source, "--copy", f"{name}.*")
        run_well("cdc-producer", pair.source, "--until-current")
    log = pair.replicate()
    print(log)
    assert content(follower, name) == content(leader, name)


_WHOLE = (
    "CREATE TABLE bare (n INT, d JSON, f FLOAT, pad VARCHAR(800))",
    "CREATE TABLE rated (f FLOAT PRIMARY KEY, u INT UNIQUE)",
    "CREATE TABLE empty_bare (n INT)",
    "CREATE TABLE other (id INT PRIMARY KEY, n INT)",
)


@contextmanager
def _changed_without_end(leader: MySql, database: str, *statements: str) -> Iterator[list[float]]:
    """A client executes these again and again; gives how long each took."""
    stop = threading.Event()
    took: list[float] = []

    def write() -> None:
        with leader.root(database=database, autocommit=True) as connection, connection.cursor() as cursor:
            number = 0
            while not stop.wait(0.002):
                number += 1
                for statement in statements:
                    began = time.monotonic()
                    cursor.execute(statement.format(number))
                    took.append(time.monotonic() - began)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield took
    finally:
        stop.set()
        writer.join()


def _make_tables_without_a_key(pair: Pair, name: str) -> None:
    document = """JSON_OBJECT('a', 1.50, 'b', CAST('2001-02-03' AS DATE), 'c', NULL)"""
    numbers = ", ".join(f"({number})" for number in range(4000))
    pair.on_leader(
        f"CREATE DATABASE {name}",
        f"USE {name}",
        *_WHOLE,
        f"INSERT INTO bare (n) VALUES {numbers}",
        f"UPDATE bare SET n = n DIV 3, d = IF(n % 7, {document}, NULL), f = n / 3, pad = REPEAT('ä', 700)",
        "UPDATE bare SET f = NULL, pad = NULL WHERE n % 5 = 0",
        f"INSERT INTO rated VALUES {', '.join(f'({number} / 7, NULL)' for number in range(500))}",
    )


def test_tables_without_a_key_are_copied_as_a_whole(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    name = own_name(tmp_path)
    keys = {"filters": {"include_dbs": [name]}, "consumer": {"on_conflict": "stop"}}
    slow = {"producer": {"start": "copy", "copy_rows_per_second": 2000}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, source=keys | slow, target=keys)
    _make_tables_without_a_key(pair, name)
    with running("cdc-producer", pair.source) as producer:
        assert producer.stderr is not None
        assert any("copying a table table=" in line for line in producer.stderr)
        written = end_offset(kafka, name)
        until(lambda: end_offset(kafka, name) > written, what="a piece")
        producer.kill()
        producer.wait()
    run_well("cdc-consumer", pair.target, "--until-current")
    with _changed_without_end(
        leader,
        name,
        "INSERT INTO bare VALUES ({0}, JSON_ARRAY({0}), 1.1, 'new')",
        "UPDATE bare SET f = {0} + 0.1 WHERE n = {0} % 1300 LIMIT 2",
        "DELETE FROM bare WHERE n = {0} * 7 % 1300 LIMIT 1",
        "UPDATE rated SET u = {0} ORDER BY u LIMIT 1",
        "REPLACE INTO other VALUES ({0} % 99, {0})",
    ) as took:
        log = run_well("cdc-producer", pair.source, "--until-current")
    print(log, f"a writer waited {1000 * max(took):.1f} ms at most")
    pair.replicate()
    assert content(follower, name) == content(leader, name)
    # The copy that was killed has no end, and no change came between the pieces of the other one.
    pieces = [_piece(record) for record in as_json(pair.source) if record["uri"].endswith("/bare")]
    begins = [at for at, piece in enumerate(pieces) if piece == 0]
    assert len(begins) == 2
    whole = pieces[begins[1] :]
    count = sum(each is not None for each in whole)
    assert whole[:count] == list(range(count))
    assert count > 3
    # Again, while the follower has other rows than the leader.
    pair.on_follower(f"USE {name}", "DELETE FROM bare LIMIT 77", "INSERT INTO bare (n) VALUES (-1)")
    run_well("cdc-producer", pair.source, "--copy", f"{name}.*bare")
    with _changed_without_end(leader, name, "UPDATE bare SET f = {0} WHERE n = {0} LIMIT 1"):
        run_well("cdc-producer", pair.source, "--until-current")
    pair.replicate()
    assert content(follower, name) == content(leader, name)


def _piece(record: dict[str, Any]) -> int | None:
    return record["operation"].get("Copy", {}).get("piece")
