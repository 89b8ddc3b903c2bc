"""Every MySQL type at its limits, through Kafka: equal on the follower, cell by cell, however the binlog is written."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content, databases
from tests.harness.leader_settings import LeaderSettings, across_settings, gtid_options
from tests.harness.programs import json_lines, refused, run_well, write_profile
from tests.harness.server_fixtures import MySqlFactory
from tests.harness.wait import LIMIT_SECONDS

pytestmark = pytest.mark.integration

SQL = Path(__file__).parents[2] / "data" / "all_types.sql"
# The checkpoint can't commit together with rows of an engine without transactions: the consumer wants another engine.
NOT_TRANSACTIONAL = ["cdc_types.t_myisam", "cdc_types.t_memory"]
DURABLE_ENOUGH = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=0")
SETTINGS = [(compression, checksum) for compression in ("OFF", "ON") for checksum in ("CRC32", "NONE")]


def load(server: MySql, *, compression: str = "OFF") -> None:
    client = [
        *mysql_programs().client,
        "--default-character-set=utf8mb4",
        f"--init-command=SET binlog_transaction_compression = {compression}",
        "-uroot",
        f"--socket={server.socket}",
    ]
    with SQL.open("rb") as text:
        done = subprocess.run(client, stdin=text, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode == 0, done.stderr


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(autouse=True)
def knows_vectors() -> None:
    if mysql_programs().version < (9,):
        pytest.skip("all_types.sql has a VECTOR column, which MySQL knows from 9.0 on")


def profile(folder: Path, leader: MySql, kafka: Kafka, *, name: str) -> Path:
    return write_profile(folder, leader, kafka, name=name, resource=name)


@across_settings
def test_all_types(
    tmp_path: Path, mysql_server: MySqlFactory, follower: MySql, kafka: Kafka, settings: LeaderSettings
) -> None:
    leader = mysql_server(*DURABLE_ENOUGH, *settings.options, server_id=3)
    load(leader, compression=settings.compression)
    name = f"types-{settings.name}"
    run_well("cdc-producer", profile(tmp_path, leader, kafka, name=name), "--until-current")

    target = write_profile(tmp_path, follower, kafka, name="target", topic=name, resource=name)
    for table in NOT_TRANSACTIONAL:
        line = refused("cdc-consumer", target, "--until-current", status=3)
        assert table.replace(".", "/") in line
        execute(follower, f"ALTER TABLE {table} ENGINE = InnoDB")
        execute(leader, "SET sql_log_bin = 0", f"ALTER TABLE {table} ENGINE = InnoDB")
    log = run_well("cdc-consumer", target, "--until-current")
    # Each before-image was found as it is in the record, whatever its types. An ENUM's error value is stored apart.
    noted = [line for line in log.splitlines() if "retrying row by row" in line or " conflict " in line]
    assert [line for line in noted if "Data truncated for column 'e'" not in line] == []

    assert len(databases(leader)) == 4
    for database in databases(leader):
        here, there = content(leader, database), content(follower, database)
        assert sorted(there) == sorted(here)
        for each in here:
            assert there[each] == here[each], f"{database}.{each}"
        execute(follower, f"DROP DATABASE `{database}`")


@pytest.mark.parametrize("gtids", ["ON", "OFF"])
def test_the_records_are_the_same_whatever_the_binlog_looks_like(
    tmp_path: Path, mysql_server: MySqlFactory, kafka: Kafka, gtids: str
) -> None:
    leader = mysql_server(*DURABLE_ENOUGH, *gtid_options(gtids), server_id=3)
    for compression, checksum in SETTINGS:
        # Each change of the checksum begins a new binlog.
        execute(leader, f"SET GLOBAL binlog_checksum = {checksum}", "FLUSH BINARY LOGS", "CREATE DATABASE next_round")
        execute(leader, "DROP DATABASE next_round")
        load(leader, compression=compression)
    name = f"types-gtid-{gtids}"
    path = profile(tmp_path, leader, kafka, name=name)
    run_well("cdc-producer", path, "--until-current")
    first, *others = rounds(json_lines(path))
    assert len(first) > 500
    assert len(others) == len(SETTINGS) - 1
    for settings, other in zip(SETTINGS[1:], others, strict=True):
        assert other == first, settings


def rounds(lines: list[str]) -> list[list[dict[str, Any]]]:
    """What the records say, without their places and times, for each time that the script was loaded."""
    found: list[list[dict[str, Any]]] = []
    for line in lines:
        record = json.loads(line)
        if record["uri"].endswith("/t_def") and "Query" not in record["operation"]:
            continue  # its defaults are of the moment and of chance
        if str(record["operation"].get("Query")).startswith("DROP"):
            continue  # what is there to be dropped differs from round to round
        if "CREATE DATABASE next_round" in str(record["operation"].get("Query")):
            found.append([])
        for place in ("sequence", "bn_file", "transaction"):
            del record[place]
        record.get("context", {}).pop("timestamp_us", None)
        found[-1].append(record)
    return found
