"""A session with binlog_format STATEMENT or MIXED: what it logs is never given to a follower that it would harm."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.binlog import position
from tests.checks.compare import content
from tests.harness.programs import refused, run_well, write_profile

pytestmark = pytest.mark.integration

# What a session did before the producer's start, what it did then, and what is said of that.
HARMFUL = [
    ([], "CREATE TABLE new SELECT UUID() AS u", "logged as a query"),
    ([], "CREATE TABLE new (i INT) ENGINE = InnoDB IGNORE AS ((TABLE base))", "logged as a query"),
    ([], "CREATE TABLE new (VALUES ROW(1, CONNECTION_ID()))", "logged as a query"),
    ([], "CREATE TEMPORARY TABLE base (i INT)", "made a temporary table"),
    (["CREATE TEMPORARY TABLE base (i INT, c INT)"], "TRUNCATE base", "on a temporary table"),
    (["CREATE TEMPORARY TABLE base (i INT, c INT)"], "ALTER TABLE base DROP COLUMN c", "on a temporary table"),
    (["CREATE TEMPORARY TABLE base (i INT, c INT)"], "ALTER TABLE base RENAME new", "on a temporary table"),
    (["CREATE TEMPORARY TABLE base (i INT, c INT)"], "CREATE INDEX k ON base (i)", "on a temporary table"),
    (["CREATE TEMPORARY TABLE base (i INT, c INT)"], "CREATE TABLE new LIKE base", "on a temporary table"),
    ([], "ALTER TABLE base ADD u VARCHAR(36) DEFAULT (UUID())", "another answer to a function"),
]


def execute(server: MySql, *statements: str, database: str | None = None) -> None:
    with server.root(database=database) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.parametrize("log_format", ["STATEMENT", "MIXED"])
def test_what_would_harm_a_follower_stops_the_stream(
    tmp_path: Path, leader: MySql, kafka: Kafka, log_format: str
) -> None:
    cases = HARMFUL if log_format == "STATEMENT" else [([], "CREATE TABLE new SELECT 1 AS one", "logged as a query")]
    for number, (before, statement, said) in enumerate(cases):
        name = f"harm_{log_format}_{number}".lower()
        execute(leader, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.base (i INT PRIMARY KEY, c INT)")
        with leader.root(database=name) as connection, connection.cursor() as cursor:
            cursor.execute(f"SET binlog_format = {log_format}")
            for each in before:
                cursor.execute(each)
            cursor.execute("SELECT @@gtid_executed")
            (start,) = cursor.fetchone()
            cursor.execute(statement)
            profile = write_profile(
                tmp_path, leader, kafka, name=name, producer={"start": start}, filters={"include_dbs": [name]}
            )
            line = refused("cdc-producer", profile, "--until-current", status=3)
        assert said in line, statement
        assert f"at {position(leader)[0]}:" in line
        assert "SET PERSIST binlog_format = ROW" in line or "copy it" in line
        # The way out that the line tells.
        profile = write_profile(
            tmp_path, leader, kafka, name=name, producer={"start": start}, filters={"include_dbs": ["none_of_all"]}
        )
        run_well("cdc-producer", profile, "--until-current")


def test_what_does_no_harm_passes(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    """Temporary tables under ROW, their end, and those of a database that is left out."""
    name = "harmless"
    begun = {"producer": {"start": "now"}, "filters": {"include_dbs": [name]}}
    profile = write_profile(tmp_path, leader, kafka, name=name, resource=name, **begun)
    run_well("cdc-producer", profile, "--until-current")
    execute(leader, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.base (i INT PRIMARY KEY, c INT)")
    execute(
        leader,
        "INSERT INTO base VALUES (1, 1)",
        "CREATE TEMPORARY TABLE base (i INT, x INT)",
        "INSERT INTO base VALUES (7, 7)",
        "ALTER TABLE base ADD y INT",
        "CREATE TABLE alike LIKE base",
        "CREATE TABLE filled SELECT * FROM base",
        "CREATE TABLE gone (i INT)",
        "TRUNCATE base",
        "DROP TABLE base, gone",
        "DROP TEMPORARY TABLE IF EXISTS base",
        "INSERT INTO base VALUES (2, 2)",
        database=name,
    )
    execute(
        leader, "CREATE DATABASE elsewhere", "USE elsewhere", "SET binlog_format = STATEMENT",
        "CREATE TEMPORARY TABLE base (i INT)", "TRUNCATE base", "CREATE TABLE filled SELECT UUID() AS u",
        "DROP TABLE base", f"ALTER TABLE {name}.base ADD d INT",
    )  # fmt: skip
    run_well("cdc-producer", profile, "--until-current")
    target = write_profile(tmp_path, follower, kafka, name="target", topic=name, resource=name)
    run_well("cdc-consumer", target, "--until-current")
    there = content(leader, name)
    assert sorted(there) == ["alike", "base", "filled", "its own definition"]
    assert content(follower, name) == there
