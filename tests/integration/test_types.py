"""Every MySQL type at its limits, through Kafka: equal on the follower, cell by cell."""

import subprocess
from pathlib import Path

import pytest

from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import MySql
from cdc.sandbox.mysql_programs import mysql_programs
from tests.compare import content, databases
from tests.fix_sandbox import MySqlFactory
from tests.programs import run_well, write_profile

pytestmark = pytest.mark.integration

SQL = Path(__file__).parents[1] / "data" / "all_types.sql"
# The follower's checkpoint can't commit together with rows of an engine without transactions.
NOT_TRANSACTIONAL = ["cdc_types.t_myisam", "cdc_types.t_memory"]
LARGE = {"message.max.bytes": 90_000_000}
OBJECTS = 112  # the script's tables, views and databases


def load(server: MySql) -> None:
    client = [*mysql_programs().client, "--default-character-set=utf8mb4", "-uroot", f"--socket={server.socket}"]
    with SQL.open("rb") as text:
        done = subprocess.run(client, stdin=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def leader_with_all_types(mysql_server: MySqlFactory) -> MySql:
    if mysql_programs().version < (9,):
        pytest.skip("all_types.sql has a VECTOR column, which MySQL knows from 9.0 on")
    server = mysql_server(server_id=3)
    load(server)
    return server


def test_all_types(tmp_path: Path, leader_with_all_types: MySql, follower: MySql, kafka: Kafka) -> None:
    leader = leader_with_all_types
    run_well(
        "cdc-producer", profile(tmp_path, leader, kafka, name="types", excluded=NOT_TRANSACTIONAL), "--until-current"
    )
    target = write_profile(tmp_path, follower, kafka, name="target", topic="types", resource="types")
    run_well("cdc-consumer", target, "--until-current")
    equal = 0
    for database in databases(leader):
        here, there = content(leader, database), content(follower, database)
        for name in here:
            if f"{database}.{name}" not in NOT_TRANSACTIONAL:
                assert there.get(name) == here[name], f"{database}.{name}"
                equal += 1
    assert equal == OBJECTS - len(NOT_TRANSACTIONAL)


def profile(folder: Path, leader: MySql, kafka: Kafka, *, name: str, excluded: list[str]) -> Path:
    filters = {"filters": {"exclude_tables": excluded}} if excluded else {}
    return write_profile(folder, leader, kafka, name=name, resource="types", kafka={"librdkafka": LARGE}, **filters)
