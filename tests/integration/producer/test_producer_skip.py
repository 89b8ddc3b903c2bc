"""What is refused: not where the filters leave it out, and ``cdc-producer --skip`` is the way past it, told to all."""

import signal
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import as_json, refused, run, run_well, write_profile

pytestmark = pytest.mark.integration

LONG = '{"a": 1, "b": "a long enough text to be left in its place"}'


def execute(server: MySql, *statements: str, database: str | None = None) -> None:
    with server.root(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def made(tmp_path: Path, leader: MySql, broker: Kafka, name: str, **tables: Any) -> Path:
    """A profile from now on, and a database with the table ``base``."""
    begun = {"producer": {"start": "now"}, "filters": {"include_dbs": [name]}, **tables}
    profile = write_profile(tmp_path, leader, broker, name=name, resource=name, **begun)
    run_well("cdc-producer", profile, "--until-current")
    execute(leader, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.base (i INT PRIMARY KEY, c INT, j JSON)")
    execute(leader, f"INSERT INTO {name}.base VALUES (1, 1, '{LONG}')")
    return profile


def stops(profile: Path, *options: str) -> tuple[str, str]:
    """What stops the producer, and the place that it names for ``--skip``."""
    line = refused("cdc-producer", profile, "--until-current", *options, status=3)
    _, way, place = line.rpartition("to skip this event for good: cdc-producer PROFILE --skip ")
    assert way, line
    assert f"at {place}" in line
    return line, place


def skipped(profile: Path) -> list[dict[str, Any]]:
    return [record for record in as_json(profile) if "Skipped" in record["operation"]]


def test_what_the_filters_leave_out_passes_in_any_format(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    profile = made(tmp_path, leader, kafka, "skip_inside")
    execute(leader, "CREATE DATABASE percona", "CREATE TABLE percona.checksums (k INT PRIMARY KEY, n INT, j JSON)")
    execute(leader, "CREATE TABLE percona.tr (i INT)", "CREATE TABLE percona.p (i INT PRIMARY KEY)")
    trigger = "CREATE TRIGGER percona.t AFTER INSERT ON percona.tr FOR EACH ROW UPDATE skip_inside.base SET c = 9"
    execute(leader, trigger)
    data = tmp_path / "data"
    data.write_text("5\n6\n")
    with leader.root(database="percona", local_infile=True) as connection, connection.cursor() as cursor:
        for statement in (
            "SET GLOBAL local_infile = ON",
            "SET binlog_format = STATEMENT, @u = 7",
            f"LOAD DATA LOCAL INFILE '{data}' INTO TABLE p",
            "REPLACE INTO percona.checksums (k, n) SELECT 1, COUNT(*) FROM skip_inside.base /*checksum table*/",
            "INSERT INTO checksums VALUES (2, RAND() * 9, NULL)",
            "INSERT INTO checksums VALUES (3, @u, NULL)",
            "UPDATE checksums AS c SET n = 5 WHERE k IN (SELECT i FROM skip_inside.base)",
            "DELETE a FROM checksums a JOIN checksums b USING (k) WHERE a.n = 5",
            "DELETE FROM mysql.help_topic WHERE help_topic_id = -1",
            "XA START 'skip_inside'", "INSERT INTO p VALUES (1)", "XA END 'skip_inside'", "XA PREPARE 'skip_inside'",
            "XA COMMIT 'skip_inside'",
            "SET binlog_transaction_compression = ON",
            "INSERT INTO checksums VALUES (4, RAND() * 9, NULL)",
            "SET binlog_format = ROW, binlog_row_image = MINIMAL, binlog_transaction_compression = OFF",
            f"INSERT INTO checksums VALUES (9, 9, '{LONG}')",
            "UPDATE checksums SET n = 8 WHERE k = 9",
            "SET binlog_row_value_options = PARTIAL_JSON, binlog_row_image = FULL",
            "UPDATE checksums SET j = JSON_SET(j, '$.a', 2)",
            "INSERT INTO skip_inside.base VALUES (2, 2, NULL)",
        ):  # fmt: skip
            cursor.execute(statement)
        log = run_well("cdc-producer", profile, "--until-current")
        assert log.count("change outside of the filters not replicated") == 8, log
        assert [record["operation"].keys() for record in as_json(profile)][2:] == [{"Add": 0}.keys()] * 2
        # A trigger is in no text, but its database is in the log.
        cursor.execute("SET binlog_format = STATEMENT")
        cursor.execute("INSERT INTO tr VALUES (1)")
    line, place = stops(profile)
    assert "a change was logged as a statement, not as rows: INSERT INTO tr" in line
    assert skipped(profile) == []
    run_well("cdc-producer", profile, "--until-current", "--skip", place)
    (record,) = skipped(profile)
    found = [each["uri"] for each in record["affects"]]
    assert found == ["flv://skip_inside/percona/tr", "flv://skip_inside/skip_inside"]


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_each_event_that_is_refused_can_be_skipped_and_nothing_else(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, layout: str
) -> None:
    name = f"skip_{layout}"
    profile = made(tmp_path, leader, kafka, name, kafka={"layout": layout, "prefix": name})
    execute(leader, f"CREATE TABLE {name}.p (s SET('a', 'b'), i INT PRIMARY KEY)", f"CREATE TABLE {name}.q (i INT)")
    run_well("cdc-producer", profile, "--until-current")
    with leader.root(database=name) as connection, connection.cursor() as cursor:
        for statement in (
            # Inside of a transaction, and inside of a compressed one: what is around it is applied.
            "SET binlog_format = STATEMENT", "BEGIN", "UPDATE base SET c = LENGTH('secret') WHERE i = 1", "COMMIT",
            "SET binlog_format = ROW, binlog_row_value_options = PARTIAL_JSON",
            "BEGIN", "INSERT INTO base VALUES (10, 10, NULL)", "UPDATE base SET j = JSON_SET(j, '$.a', 2)",
            "INSERT INTO base VALUES (11, 11, NULL)", "COMMIT",
            "SET binlog_transaction_compression = ON", "BEGIN", "INSERT INTO base VALUES (12, 12, NULL)",
            "UPDATE base SET j = JSON_SET(j, '$.a', 3)", "INSERT INTO base VALUES (13, 13, NULL)", "COMMIT",
            "SET binlog_transaction_compression = OFF, binlog_row_value_options = ''",
            # Alone.
            "ALTER TABLE q ADD id INT DEFAULT (CONNECTION_ID())",
            "INSERT INTO base VALUES (14, 14, NULL)",
        ):  # fmt: skip
            cursor.execute(statement)
    places: list[str] = []
    events: list[str] = []
    said = ""
    for _ in range(9):
        # The skips of before are out, each with the transactions up to what stopped the stream next.
        newest = [part for each in places[-1:] for part in ("--skip", each)]
        done = run("cdc-producer", profile, "--until-current", *newest)
        said += done.stderr
        if done.returncode == 0:
            break
        line = done.stderr.splitlines()[-1]
        assert done.returncode == 3, done.stderr
        places.append(line.rpartition(" --skip ")[2])
        events.append(line.split(": ")[1].split(";")[0])
        if len(places) == 2:
            # What is named without need costs nothing, and is told.
            first = refused("cdc-producer", profile, "--until-current", "--skip", "binlog.000001:4")
            assert "no event was refused at binlog.000001:4" in first
    assert done.returncode == 0, done.stderr
    assert len(places) == 4, events
    assert "/" in places[2]
    assert said.count(" event skipped ") == 4
    assert "secret" not in said
    found = as_json(profile)
    assert [record["sequence"] for record in found] == list(range(len(found)))
    left_out = skipped(profile)
    assert [record["operation"]["Skipped"]["place"] for record in left_out] == places
    assert [record["operation"]["Skipped"]["event"] for record in left_out] == [
        "Query", "PartialUpdateRows", "PartialUpdateRows", "Query",
    ]  # fmt: skip
    named = [[each["uri"] for each in record["affects"]] for record in left_out]
    assert named == [[f"flv://{name}/{name}/base"]] * 3 + [[f"flv://{name}/{name}/q"]]
    assert [record["transaction"]["index"] for record in left_out] == [0, 1, 1, 0]
    assert "secret" not in str(left_out)
    # Once out it can't be skipped again.
    again = refused("cdc-producer", profile, "--until-current", "--skip", places[-1])
    assert f"no event was refused at {places[-1]}, or it is written or skipped already" in again
    assert " Skipped " in run("cdc-tail", profile, "-B").stdout

    tables = {"kafka": {"layout": layout, "prefix": name}}
    target = write_profile(tmp_path, follower, kafka, name="target", topic=name, resource=name, **tables)
    log = run_well("cdc-consumer", target, "--until-current")
    assert log.count(" event skipped by the producer ") == 4
    with follower.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT i, c FROM base ORDER BY i")
        assert [tuple(row) for row in cursor.fetchall()] == [(1, 1), *((number, number) for number in range(10, 15))]
        cursor.execute(f"SELECT state, note FROM cdc.ledger WHERE resource = '{name}' AND state = 'skipped'")
        notes = cursor.fetchall()
    assert len(notes) == 4
    assert all("cdc-producer --skip" in note for _, note in notes)
    assert content(follower, name)["p"] == content(leader, name)["p"]


@pytest.mark.crash
@pytest.mark.parametrize("point", ["before a record", "after a flush", "before commit", "after commit"])
def test_a_skip_is_out_with_its_position_or_not_at_all(tmp_path: Path, leader: MySql, kafka: Kafka, point: str) -> None:
    """In a transaction that is cut: what has left stays counted, with the skip or before it."""
    name = "cut_" + point.replace(" ", "_")
    limits = {"start": "now", "commit_records": 2, "record_bytes": 1000}
    profile = made(tmp_path, leader, kafka, name, producer=limits)
    run_well("cdc-producer", profile, "--until-current")
    rows = [f"INSERT INTO base VALUES ({number}, 1, NULL)" for number in range(10, 20)]
    with leader.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("SET binlog_row_value_options = PARTIAL_JSON")
        for statement in ("BEGIN", *rows[:4], "UPDATE base SET j = JSON_SET(j, '$.a', 2)", *rows[4:], "COMMIT"):
            cursor.execute(statement)
    _, place = stops(profile)
    for count in (1, 2, 3, 4, 5, 6):
        done = run("killed_producer", profile, point, str(count), "--skip", place)
        # Where the skip is out with the end of its transaction, its place is passed.
        assert done.returncode in (-signal.SIGKILL, 0, 2), done.stderr
        assert done.returncode != 2 or "written or skipped already" in done.stderr, done.stderr
    done = run("cdc-producer", profile, "--until-current", "--skip", place)
    assert done.returncode in (0, 2), done.stderr
    run_well("cdc-producer", profile, "--until-current")
    found = as_json(profile)
    assert [record["sequence"] for record in found] == list(range(len(found)))
    assert len(skipped(profile)) == 1
    last = [record for record in found if record["transaction"]["id"] == found[-1]["transaction"]["id"]]
    assert [record["transaction"]["index"] for record in last] == list(range(11))
    assert [record["transaction"]["last"] for record in last] == [False] * 10 + [True]
    assert [number for number, record in enumerate(last) if "Skipped" in record["operation"]] == [4]
