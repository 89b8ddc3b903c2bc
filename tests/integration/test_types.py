"""Every MySQL type at its limits, through Kafka: equal on the follower, cell by cell, or refused by name."""

import re
import subprocess
from pathlib import Path

import pytest

from cdc.sandbox.kafka import Kafka
from cdc.sandbox.mysql import MySql
from cdc.sandbox.mysql_programs import mysql_programs
from tests.compare import content, databases
from tests.fix_sandbox import MySqlFactory
from tests.programs import refused, run, run_well, write_profile

pytestmark = pytest.mark.integration

SQL = Path(__file__).parents[1] / "data" / "all_types.sql"
# What this version refuses, and the word by which it says why.
REFUSED = {"cdc_types.t_json": "cannot carry exactly"}
# The follower's checkpoint can't commit together with rows of an engine without transactions.
NOT_TRANSACTIONAL = ["cdc_types.t_myisam", "cdc_types.t_memory"]
LARGE = {"message.max.bytes": 90_000_000}


def load(server: MySql) -> None:
    client = [*mysql_programs().client, "--default-character-set=utf8mb4", "-uroot", f"--socket={server.socket}"]
    with SQL.open("rb") as text:
        done = subprocess.run(client, stdin=text, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compression", ["OFF", "ON"])
def test_all_types(tmp_path: Path, mysql_server: MySqlFactory, follower: MySql, kafka: Kafka, compression: str) -> None:
    if mysql_programs().version < (9,):
        pytest.skip("all_types.sql has a VECTOR column, which MySQL knows from 9.0 on")
    leader = mysql_server(f"--binlog-transaction-compression={compression}", server_id=3)
    load(leader)
    topic = f"types-{compression}"
    excluded: list[str] = list(NOT_TRANSACTIONAL)
    for attempt, (table, word) in enumerate(REFUSED.items()):
        source = profile(tmp_path, leader, kafka, topic=f"{topic}-{attempt}", resource=topic, excluded=excluded)
        line = refused("cdc-producer", source, "--until-current", status=3)
        assert word in line
        assert re.search(rf"{table}\b", line)
        excluded.append(table)
    source = profile(tmp_path, leader, kafka, topic=topic, resource=topic, excluded=excluded)
    run_well("cdc-producer", source, "--until-current")

    target = write_profile(tmp_path, follower, kafka, name="target", topic=topic, resource=topic)
    done = run("cdc-consumer", target, "--until-current")
    assert done.returncode == 0, done.stderr
    equal = 0
    for database in databases(leader):
        here, there = content(leader, database), content(follower, database)
        for name in here:
            if f"{database}.{name}" not in excluded:
                assert there.get(name) == here[name], f"{database}.{name}"
                equal += 1
    assert equal == 106


def profile(folder: Path, leader: MySql, kafka: Kafka, *, topic: str, resource: str, excluded: list[str]) -> Path:
    return write_profile(
        folder,
        leader,
        kafka,
        name=topic,
        resource=resource,
        filters={"exclude_tables": excluded},
        kafka={"librdkafka": LARGE},
    )
