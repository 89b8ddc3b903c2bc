"""Chunks of tables in the stream: what they say is what the leader had at their place, whatever changes meanwhile."""

import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import as_json, end_offset, own_name, refused, run, run_well, running, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS, until
from tests.harness.warm_start import WarmProcess

pytestmark = pytest.mark.integration

Body = dict[str, Any]


def _run(server: MySql, database: str, *statements: str) -> None:
    with server.root(database=database, autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _rows(server: MySql, database: str, table: str) -> dict[Any, Any]:
    with server.root(database=database) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, n FROM {table}")
        return dict(cursor.fetchall())


def _folded(records: list[Body], uri: str) -> dict[Any, Any]:
    """The table with the columns id and n that the records give, from the newest beginning of its copy on."""
    table: dict[Any, Any] = {}

    def values(cols: list[Body]) -> list[Any]:
        return [None if each == "Null" else next(iter(each.values())) for each in cols]

    for record in records:
        if record["uri"] != uri:
            continue
        (operation, content), *_ = record["operation"].items()
        if operation == "Copy":
            after, upto = (content[bound] and values(content[bound]["cols"])[0] for bound in ("after", "upto"))
            for key in [key for key in table if (after is None or key > after) and (upto is None or key <= upto)]:
                del table[key]
        for row in content["rows"] if operation != "Query" else ():
            if operation in ("Update", "Delete"):
                table.pop(values(row["before_cols" if operation == "Update" else "cols"])[0], None)
            if operation != "Delete":
                key, value, *_ = values(row["after_cols" if operation == "Update" else "cols"])
                table[key] = value
    return table


@pytest.mark.parametrize("layout", [in_long_runs(SINGLE), PER_TABLE])
def test_a_purged_leader_is_copied_while_it_is_written_to(
    tmp_path: Path, mysql_server: Any, kafka: Kafka, layout: str
) -> None:
    leader, name = mysql_server(), own_name(tmp_path)
    _run(leader, "mysql", "CREATE DATABASE d")
    _run(
        leader,
        "d",
        f"CREATE TABLE t (id INT PRIMARY KEY, n INT, pad VARCHAR(300) DEFAULT '{'-' * 300}')",
        "CREATE TABLE bare (id INT PRIMARY KEY, n INT)",
    )
    numbers = ", ".join(f"({number}, 0)" for number in range(5000))
    _run(
        leader,
        "d",
        f"INSERT INTO t (id, n) VALUES {numbers}",
        "FLUSH BINARY LOGS",
        "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY",
    )
    stop = threading.Event()

    def write() -> None:
        with leader.root(database="d", autocommit=True) as connection, connection.cursor() as cursor:
            number = 0
            while not stop.is_set():
                number += 1
                cursor.execute(f"UPDATE t SET n = {number} WHERE id = {number * 7919 % 5000}")
                cursor.execute(f"DELETE FROM t WHERE id = {number * 7907 % 5000}")
                cursor.execute(f"INSERT INTO t (id, n) VALUES ({5000 + number}, {number})")

    writer = threading.Thread(target=write)
    writer.start()
    kafka_keys = {"layout": layout, "prefix": f"{name}."}
    profile = write_profile(tmp_path, leader, kafka, name=name, kafka=kafka_keys, filters={"include_dbs": ["d"]})
    try:
        log = run_well("cdc-producer", profile, "--until-current")
    finally:
        stop.set()
        writer.join()
    run_well("cdc-producer", profile, "--until-current")
    records = as_json(profile)
    assert _folded(records, f"flv://{name}/d/t") == _rows(leader, "d", "t")
    assert "all tables are copied" in log
    assert re.search(r"copying a table .*rows_estimated=\d+", log)
    chunks = [record for record in records if "Copy" in record["operation"]]
    assert len(chunks) > 3
    assert [record["sequence"] for record in records] == list(range(len(records)))
    print(log, len(records), len(chunks), json.dumps(records[0])[:300])


def test_a_table_that_is_locked_holds_neither_the_stream_nor_the_end(
    tmp_path: Path, leader: MySql, kafka: Kafka
) -> None:
    name = own_name(tmp_path)
    start, filters = {"start": "now"}, {"include_dbs": [name]}
    profile = write_profile(tmp_path, leader, kafka, name=name, filters=filters, producer=start)
    _run(leader, "mysql", f"CREATE DATABASE {name}")
    _run(leader, name, "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE other (id INT PRIMARY KEY)")
    run_well("cdc-producer", profile, "--until-current")
    run_well("cdc-producer", profile, "--copy", f"{name}.t")
    with leader.root(database=name, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
        producer = WarmProcess("cdc-producer", str(profile))
        try:
            until(lambda: _waits_for_lock(leader), what="a chunk is asked for")
            _run(leader, name, "INSERT INTO other VALUES (1)")
            until(lambda: len(as_json(profile)) == 1, what="a record of another table")
            producer.terminate()
            assert producer.wait(timeout=LIMIT_SECONDS) == 0
        finally:
            producer.kill()
            producer.wait()


def _waits_for_lock(server: MySql) -> bool:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW FULL PROCESSLIST")
        return any("metadata lock" in str(row) for row in cursor.fetchall())


def test_a_dry_run_names_all_that_would_be_done_and_writes_nothing(
    tmp_path: Path, mysql_server: Any, kafka: Kafka
) -> None:
    leader, name = mysql_server(), own_name(tmp_path)
    _run(leader, "mysql", "CREATE DATABASE d")
    _run(
        leader,
        "d",
        "CREATE TABLE good (id INT PRIMARY KEY, n INT)",
        "INSERT INTO good VALUES (1, 1), (2, 2)",
        "CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE older (id INT PRIMARY KEY) ENGINE = MyISAM",
    )
    profile = write_profile(
        tmp_path, leader, kafka, name=name, filters={"include_dbs": ["d"]}, producer={"start": "copy"}
    )
    before = _state(leader, kafka, name)
    done = run("cdc-producer", profile, "--dry-run")
    assert done.returncode == 0
    assert 'it has no record yet, producer.start = "copy"' in done.stdout
    assert "d.good: about 2 rows, 0.0 MB, read by PRIMARY (id)" in done.stdout
    assert "d.old: can't be copied and is left out, its engine is MyISAM" in done.stdout
    assert "d.older: can't be copied and is left out, its engine is MyISAM" in done.stdout
    # What must be changed first keeps it from nothing else.
    few, full = (f"SET GLOBAL binlog_row_metadata = {each}, binlog_row_image = {each}" for each in ("MINIMAL", "FULL"))
    _run(leader, "d", few)
    done = run("cdc-producer", profile, "--dry-run", "--copy", "d.old*")
    _run(leader, "d", full)
    said = ["SET PERSIST binlog_row_metadata", "SET PERSIST binlog_row_image", "d.old: its", "d.older: its"]
    assert [text in line for text, line in zip(said, done.stderr.splitlines(), strict=True)] == [True] * 4
    done = run("cdc-producer", profile, "--dry-run", "--copy", "d.old*")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 2)
    done = run("cdc-producer", profile, "--dry-run", "--copy", "d.good")
    assert (done.returncode, "d.old" in done.stdout, "1 tables, about 2 rows" in done.stdout) == (0, False, True)
    assert _state(leader, kafka, name) == before
    _run(leader, "d", "DROP TABLE old, older")
    assert "copies the leader" in run("cdc-producer", profile, "--dry-run").stdout
    run_well("cdc-producer", profile, "--until-current")
    there = end_offset(kafka, name), end_offset(kafka, f"{name}.commits")
    done = run("cdc-producer", profile, "--dry-run")
    assert (done.returncode, "the stream continues at" in done.stdout, "copies nothing" in done.stdout) == (
        0,
        True,
        True,
    )
    assert (end_offset(kafka, name), end_offset(kafka, f"{name}.commits")) == there


def test_a_copy_is_shown_and_stopped_and_asked_for_again_in_a_new_topic(
    tmp_path: Path, leader: MySql, kafka: Kafka
) -> None:
    name = own_name(tmp_path)
    slow = {"start": "now", "copy_rows_per_second": 300}
    filters = {"include_dbs": [name]}
    profile = write_profile(tmp_path, leader, kafka, name=name, filters=filters, producer=slow)
    _run(leader, "mysql", f"CREATE DATABASE {name}")
    numbers = ", ".join(f"({number}, 0)" for number in range(3000))
    _run(
        leader,
        name,
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "CREATE TABLE u (id INT PRIMARY KEY, n INT)",
        f"INSERT INTO t VALUES {numbers}",
    )
    run_well("cdc-producer", profile, "--until-current")
    assert "nothing is to be copied" in _status(profile)
    run_well("cdc-producer", profile, "--copy", f"{name}.t")
    assert f"{name}.t: asked, no producer has taken it up yet" in _status(profile)
    with running("cdc-producer", profile):
        until(lambda: any(f"{name}.t: under way, " in line for line in _status(profile)), what="the copy is under way")
        until(lambda: len(_chunks(profile)) > 0, what="a chunk")
        assert "no table that is to be copied matches" in refused("cdc-producer", profile, "--copy-stop", f"{name}.u")
        run_well("cdc-producer", profile, "--copy-stop", f"{name}.*")
        until(lambda: "nothing is to be copied" in _status(profile), what="the copy is stopped")
        _run(leader, name, "INSERT INTO t VALUES (9999, 1)")
        until(lambda: "Add" in as_json(profile)[-1]["operation"], what="the row")
    assert "copying" not in as_json(profile)[-1]
    stopped = _chunks(profile)
    assert [chunk["upto"] for chunk in stopped if chunk["upto"] is None] == []
    # As many requests as there were before in a new topic of that name.
    admin = kafka.admin()
    admin.delete_topics([f"{name}.copies"])[f"{name}.copies"].result()
    until(lambda: f"{name}.copies" not in admin.list_topics(timeout=LIMIT_SECONDS).topics, what="the topic is gone")
    fast = write_profile(tmp_path, leader, kafka, name=name, filters=filters)
    run_well("cdc-producer", fast, "--copy", f"{name}.t")
    run_well("cdc-producer", fast, "--copy", f"{name}.u")
    run_well("cdc-producer", fast, "--until-current")
    again = _chunks(profile)[len(stopped) :]
    assert (again[0]["after"], again[-2]["upto"], again[-1]["upto"]) == (None, None, None)
    assert _folded(as_json(profile), f"flv://{name}/{name}/t") == _rows(leader, name, "t")


def _status(profile: Path) -> list[str]:
    done = run("cdc-producer", profile, "--copy-status")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def _chunks(profile: Path) -> list[Body]:
    return [record["operation"]["Copy"] for record in as_json(profile) if "Copy" in record["operation"]]


def _state(leader: MySql, kafka: Kafka, name: str) -> tuple[Any, ...]:
    topics = kafka.admin().list_topics(timeout=LIMIT_SECONDS).topics
    return position(leader), sorted(topic for topic in topics if topic.startswith(name))


def test_a_topic_without_records_begins_again_with_a_copy_if_it_can_not_go_on(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka
) -> None:
    """The topic begins again if the next rows have no column names, and if the next binlog is purged."""
    leader, name = mysql_server(server_id=1), own_name(tmp_path)
    _run(leader, "mysql", "CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, n INT)")

    def profile(topic: str, start: str) -> Path:
        shared = {"resource": topic, "topic": topic, "filters": {"include_dbs": ["d"]}}
        return write_profile(tmp_path, leader, kafka, name=f"{topic}-{start}", producer={"start": start}, **shared)

    for topic in (f"{name}_old", f"{name}_purged"):
        run_well("cdc-producer", profile(topic, "now"), "--until-current")
    for value, number in (("MINIMAL", 1), ("FULL", 2)):
        _run(leader, "d", f"SET GLOBAL binlog_row_metadata = {value}")
        _run(leader, "d", f"INSERT INTO t VALUES ({number}, {number})")
    line = refused("cdc-producer", profile(f"{name}_old", "now"), "--until-current", status=3)
    assert 'start again with producer.start = "auto", which copies the leader' in line
    assert "copies the leader" in run("cdc-producer", profile(f"{name}_old", "auto"), "--dry-run").stdout
    _run(leader, "d", "FLUSH BINARY LOGS", "PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
    assert "CDC-LEADER-PURGED" in refused("cdc-producer", profile(f"{name}_purged", "now"), "--until-current")
    for number, topic in enumerate((f"{name}_old", f"{name}_purged"), 3):
        again = profile(topic, "auto")
        run_well("cdc-producer", again, "--until-current")
        _run(leader, "d", f"INSERT INTO t VALUES ({number}, 0)")
        run_well("cdc-producer", again, "--until-current")
        assert _folded(as_json(again), f"flv://{topic}/d/t") == _rows(leader, "d", "t"), topic
