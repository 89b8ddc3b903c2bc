"""Online schema changes replicate as what they are: a ghost table that is filled and swapped while others write."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import run_well, running, write_profile
from tests.harness.wait import until

pytestmark = pytest.mark.integration

ROWS = 300
CREATE = "CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL, name VARCHAR(20))"

# pt-online-schema-change: triggers keep the new table up while it is filled.
PT_BEGIN = """\
CREATE TABLE _t_new LIKE t;
ALTER TABLE _t_new ADD COLUMN added INT NOT NULL DEFAULT 7, MODIFY name VARCHAR(40);
CREATE TRIGGER pt_osc_del AFTER DELETE ON t FOR EACH ROW DELETE IGNORE FROM _t_new WHERE _t_new.id <=> OLD.id;
CREATE TRIGGER pt_osc_upd AFTER UPDATE ON t FOR EACH ROW
    REPLACE INTO _t_new (id, n, name) VALUES (NEW.id, NEW.n, NEW.name);
CREATE TRIGGER pt_osc_ins AFTER INSERT ON t FOR EACH ROW
    REPLACE INTO _t_new (id, n, name) VALUES (NEW.id, NEW.n, NEW.name)"""
PT_COPY = """\
INSERT LOW_PRIORITY IGNORE INTO _t_new (id, n, name)
    SELECT id, n, name FROM t WHERE id BETWEEN {} AND {} LOCK IN SHARE MODE"""
PT_END = """\
RENAME TABLE t TO _t_old, _t_new TO t;
DROP TABLE IF EXISTS _t_old;
DROP TRIGGER IF EXISTS pt_osc_del;
DROP TRIGGER IF EXISTS pt_osc_upd;
DROP TRIGGER IF EXISTS pt_osc_ins"""

# gh-ost: a changelog table, and the leader's own binlog applied to the ghost; here the copy is its only writer.
GH_BEGIN = """\
CREATE TABLE _t_ghc (id BIGINT AUTO_INCREMENT PRIMARY KEY, hint VARCHAR(64) NOT NULL UNIQUE, value VARCHAR(255));
CREATE TABLE _t_gho LIKE t;
ALTER TABLE _t_gho ADD COLUMN added INT NOT NULL DEFAULT 7, DROP COLUMN name, ADD INDEX (n);
INSERT INTO _t_ghc (id, hint, value) VALUES (2, 'state', 'GhostTableMigrated')
    ON DUPLICATE KEY UPDATE value = VALUES(value)"""
GH_COPY = """\
INSERT IGNORE INTO _t_gho (id, n)
    (SELECT id, n FROM t FORCE INDEX (PRIMARY) WHERE id BETWEEN {} AND {} LOCK IN SHARE MODE)"""
GH_END = """\
CREATE TABLE _t_del (id INT AUTO_INCREMENT PRIMARY KEY) ENGINE=InnoDB COMMENT='ghost-cut-over-sentry';
INSERT INTO _t_ghc (id, hint, value) VALUES (2, 'state', 'AllEventsUpToLockProcessed')
    ON DUPLICATE KEY UPDATE value = VALUES(value);
DROP TABLE _t_del;
RENAME TABLE t TO _t_del, _t_gho TO t;
DROP TABLE _t_ghc;
DROP TABLE _t_del"""


@contextmanager
def writing(leader: MySql, database: str) -> Iterator[None]:
    """Somebody writes to the table all the time, whatever its columns are."""
    end = threading.Event()

    def work() -> None:
        with leader.connect(database=database) as connection, connection.cursor() as cursor:
            number = 0
            while not end.is_set():
                number += 1
                cursor.execute(f"INSERT INTO t (n) VALUES ({number})")
                cursor.execute(f"UPDATE t SET n = n + 1000 WHERE id = {number % ROWS + 1}")
                cursor.execute(f"DELETE FROM t WHERE id = {(number * 7) % ROWS + 1}")

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


@pytest.mark.parametrize(
    ("name", "begin", "copy", "end", "writes"),
    [("pt_osc", PT_BEGIN, PT_COPY, PT_END, True), ("gh_ost", GH_BEGIN, GH_COPY, GH_END, False)],
)
def test_a_rename_swap(
    tmp_path: Path,
    leader: MySql,
    follower: MySql,
    kafka: Kafka,
    name: str,
    begin: str,
    copy: str,
    end: str,
    writes: bool,
) -> None:
    keys = {"resource": name, "topic": name}
    filters = {"include_dbs": [name]}
    producer = write_profile(tmp_path, leader, kafka, name=name, filters=filters, producer={"start": "now"}, **keys)
    consumer = write_profile(tmp_path, follower, kafka, name=f"{name}_consumer", **keys)
    run_well("cdc-producer", producer, "--until-current")
    with leader.connect() as connection, connection.cursor() as cursor:
        for statement in (f"CREATE DATABASE {name}", f"USE {name}", CREATE):
            cursor.execute(statement)
        cursor.execute("INSERT INTO t (n, name) VALUES " + ", ".join(f"({n}, 'row {n}')" for n in range(ROWS)))
        with running("cdc-producer", producer), running("cdc-consumer", consumer):
            until(lambda: columns(follower, name) == ["id", "n", "name"], what="the table is there")
            with writing(leader, name) if writes else nullcontext():
                change(cursor, begin, copy, end)
            until(lambda: "added" in columns(follower, name), what="the new table is in its place")
    run_well("cdc-producer", producer, "--until-current")
    log = run_well("cdc-consumer", consumer, "--until-current")
    assert " conflict " not in log
    found = content(follower, name)
    assert found == content(leader, name)
    assert set(found) == {"its own definition", "t"}
    assert "`added` int" in found["t"]["definition"]


def columns(server: MySql, database: str) -> list[str]:
    """Those of the table, as it is just now."""
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = 't' "
            "ORDER BY ordinal_position",
            (database,),
        )
        return [name for (name,) in cursor.fetchall()]


def change(cursor: object, begin: str, copy: str, end: str) -> None:
    for statement in begin.split(";\n"):
        cursor.execute(statement)  # type: ignore[attr-defined]
    for first in range(1, ROWS + 1, 50):
        cursor.execute(copy.format(first, first + 49))  # type: ignore[attr-defined]
    for statement in end.split(";\n"):
        cursor.execute(statement)  # type: ignore[attr-defined]
