"""``cdc-producer --skip``, the way past what is refused, where the producer is killed amid it."""

import signal
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.long_runs import in_long_runs
from tests.harness.programs import as_json, begin_now, refused, run, run_well, write_profile

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
    begin_now(profile, leader)
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


@pytest.mark.crash
@pytest.mark.parametrize(
    "point", [in_long_runs("before a record"), in_long_runs("after a flush"), "before commit", "after commit"]
)
def test_a_skip_is_out_with_its_position_or_not_at_all(tmp_path: Path, leader: MySql, kafka: Kafka, point: str) -> None:
    """In a transaction that is cut: what has left stays counted, with the skip or before it."""
    name = "cut_" + point.replace(" ", "_")
    limits = {"start": "now", "commit_records": 2, "record_bytes": 1000}
    profile = made(tmp_path, leader, kafka, name, producer=limits)
    begin_now(profile, leader)
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
