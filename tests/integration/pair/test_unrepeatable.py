"""Statements that a follower can't repeat, and rows that can't be read, whose tables are copied again: a tablespace
that is imported, and kills."""

import shutil
import signal
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.killed_producer import POINTS
from tests.checks.compare import content
from tests.harness.long_runs import in_long_runs
from tests.harness.pair import Pair
from tests.harness.programs import as_json, run, run_well

pytestmark = pytest.mark.integration

_COPY = {"source": {"producer": {"start": "now", "on_unrepeatable": "copy"}}}


def _file(server: MySql, database: str, table: str) -> Path:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@datadir")
        ((folder,),) = cursor.fetchall()
    return Path(str(folder), database, f"{table}.ibd")


def test_an_imported_tablespace_is_copied(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """Its rows are in no binlog; the follower, which has no file to import, gets them as a copy."""
    name = "imported_space"
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, filters={"include_dbs": [name]}, **_COPY)
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_leader(f"CREATE DATABASE {name}")
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))", "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        "CREATE TABLE u LIKE t", "INSERT INTO u VALUES (3, 'c'), (4, 'd')", database=name,
    )  # fmt: skip
    kept = tmp_path / "u.ibd"
    with leader.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("FLUSH TABLES u FOR EXPORT")
        shutil.copy(_file(leader, name, "u"), kept)
        cursor.execute("UNLOCK TABLES")
    pair.on_leader("ALTER TABLE t DISCARD TABLESPACE", database=name)
    pair.replicate()
    shutil.copy(kept, _file(leader, name, "t"))
    pair.on_leader(
        "ALTER TABLE t IMPORT TABLESPACE", "UPDATE t SET v = 'x' WHERE id = 3", "INSERT INTO t VALUES (9, 'new')",
        database=name,
    )  # fmt: skip
    log = pair.replicate()
    assert " conflict " not in log
    assert content(leader, name)["t"] == content(follower, name)["t"]
    assert len(content(follower, name)["t"]["rows"]) == 3


@pytest.mark.crash
@pytest.mark.parametrize("written", ["transactions", in_long_runs("plain")])
@pytest.mark.parametrize("first", [0, in_long_runs(1)])
def test_no_kill_loses_the_copy(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, written: str, first: int
) -> None:
    """The producer dies at records and commits around each statement, or around rows that can't be read; the table is
    copied after them all the same.

    In `make test` test_kill_points.test_kills_at_named_points has the plain way of writing, and every other point has
    rows.
    """
    name = f"unrepeated_{written}_{first}"
    topics = {"kafka": {"transactions": written == "transactions"}}
    options = {
        "source": {"producer": {"start": "now", "on_unrepeatable": "copy", "commit_records": 1}, **topics},
        "target": topics,
    }
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, filters={"include_dbs": [name]}, **options)
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_leader(f"CREATE DATABASE {name}")
    points = [(point, count) for count in (1, 2, 3) for point in POINTS if point != "before begin"]
    tables = [f"t{number}" for number in range(len(points))]
    for table in tables:
        pair.on_leader(f"CREATE TABLE {table} (v INT)", f"INSERT INTO {table} VALUES (1), (2), (3)", database=name)
    pair.replicate()
    killed = 0
    with_rows = tables[first::2]
    for table, (point, count) in zip(tables, points, strict=True):
        if table in with_rows:
            _change_unreadably(pair, name, table)
        else:
            _number(pair, name, table)
        done = run("killed_producer", pair.source, point, str(count))
        assert done.returncode in (-signal.SIGKILL, 0), f"{point} {count}: {done.stderr}"
        killed += done.returncode != 0
    assert " conflict " not in pair.replicate()
    theirs, ours = content(leader, name), content(follower, name)
    assert [table for table in tables if theirs[table] != ours[table]] == []
    records = as_json(pair.source)
    found = [each for each in records if each.get("copying") and "Query" in each["operation"]]
    assert len(found) == len(tables) - len(with_rows)
    # Each event of the first transaction is stated, and no later one until the copy begins.
    stated = [each["affects"][0]["uri"].rpartition("/")[2] for each in records if "Skipped" in each["operation"]]
    assert stated == [table for table in with_rows for _ in range(2)]
    assert killed > len(points) / 3, f"the points were hardly met: {killed} of {len(points)}"


def _number(pair: Pair, database: str, table: str) -> None:
    # The follower numbers its rows otherwise than the leader.
    pair.on_follower(f"DELETE FROM {table} WHERE v < 3", f"INSERT INTO {table} VALUES (2), (1)", database=database)
    pair.on_leader(
        f"ALTER TABLE {table} ADD n INT AUTO_INCREMENT PRIMARY KEY",
        f"UPDATE {table} SET v = 7 WHERE n = 2",
        database=database,
    )


def _change_unreadably(pair: Pair, database: str, table: str) -> None:
    pair.on_leader(
        f"ALTER TABLE {table} ADD n INT PRIMARY KEY DEFAULT (v)", "SET binlog_row_image = MINIMAL", "BEGIN",
        f"UPDATE {table} SET v = 7 WHERE n = 2", f"DELETE FROM {table} WHERE n = 1", "COMMIT",
        f"INSERT INTO {table} (v, n) VALUES (8, 8)", f"UPDATE {table} SET v = 9 WHERE n = 8",
        "SET binlog_row_image = FULL", f"INSERT INTO {table} VALUES (4, 4)", database=database,
    )  # fmt: skip
