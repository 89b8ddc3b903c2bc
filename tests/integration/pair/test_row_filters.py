"""Rows that a condition leaves out, while the producer is killed and the condition changes."""

import os
import random
import signal
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import toml

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.killed_producer import POINTS
from tests.harness.pair import Pair
from tests.harness.programs import records, run, run_well
from tests.harness.seed import SEED

pytestmark = [pytest.mark.integration, pytest.mark.crash]

NAME = "somerows"
ROUNDS = int(os.environ.get("CDC_ROW_FILTER_ROUNDS", 5))
# Conditions that mean the same to the server, by the collation of the column, as to the producer.
CONDITIONS = ["region = 'EU'", "region <> 'eu' AND amount >= 10", "amount < 10.5", "region IN ('us', 'EU')",
              "region IS NULL", "id > 500 AND region IS NOT NULL"]  # fmt: skip
REGION, AMOUNT = "ELT(1 + FLOOR(RAND() * 4), 'EU', 'eu', 'us', NULL)", "ROUND(RAND() * 20, 2)"


def load(pair: Pair, chance: random.Random, number: int) -> None:
    """A large transaction: rows that come, move in and out of each condition, get other keys, and go."""
    changes = []
    for table in chance.sample(["k", "n"], 2):
        rows = ", ".join(f"({number * 200 + row}, {REGION}, {AMOUNT}, REPEAT('x', 40))" for row in range(80))
        changes += [
            f"INSERT INTO {table} VALUES {rows}",
            f"UPDATE {table} SET region = {REGION} WHERE RAND() < 0.4",
            f"UPDATE {table} SET amount = {AMOUNT}, id = id + 100 WHERE id DIV 100 = {number * 2} AND id % 2 = 0",
            f"DELETE FROM {table} WHERE RAND() < 0.1",
        ]
    pair.on_leader("BEGIN", *changes, "COMMIT", database=NAME)


def conditions(profile: Path, chance: random.Random) -> dict[str, str]:
    """Sets other conditions in the profile; the last one of the table without a key stays."""
    content = toml.loads(profile.read_text())
    content["filters"]["rows"][f"{NAME}.k"] = chance.choice(CONDITIONS)
    profile.write_text(toml.dumps(content))
    return dict(content["filters"]["rows"])


def rows(server: MySql, table: str, condition: str = "TRUE") -> list[tuple[Any, ...]]:
    with server.root(database=NAME) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table} WHERE {condition}")
        return sorted(cursor.fetchall(), key=repr)


def test_kills_and_other_conditions_leave_the_rows_that_pass(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    limits = {"start": "now", "commit_records": 4, "record_bytes": 1000, "message_bytes": 1000}
    pair = Pair.make(
        tmp_path, leader, follower, kafka, name=NAME, target={},
        source={
            "producer": limits,
            "filters": {"include_dbs": [NAME], "rows": {f"{NAME}.{table}": CONDITIONS[0] for table in "kn"}},
        },
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_leader(f"CREATE DATABASE {NAME}")
    columns = "region VARCHAR(2) COLLATE utf8mb4_0900_bin, amount DECIMAL(6, 2), note VARCHAR(60)"
    pair.on_leader(
        f"CREATE TABLE k (id INT PRIMARY KEY, {columns})", f"CREATE TABLE n (id INT, {columns})", database=NAME
    )
    killed, holds = 0, conditions(pair.source, chance)
    for number in range(ROUNDS):
        load(pair, chance, number)
        if number % 2:
            holds = conditions(pair.source, chance)
        copies = ["--copy", f"{NAME}.*"] if chance.random() < 0.3 else []
        for _ in range(3):
            point = chance.choice(POINTS)
            count = chance.randint(1, 12 if "record" in point or "flush" in point else 3)
            done = run("killed_producer", pair.source, point, str(count), *copies)
            assert done.returncode in (-signal.SIGKILL, 0), f"seed {SEED}, {point}: {done.stderr}"
            killed += done.returncode != 0
        log = pair.replicate()
        assert " conflict " not in log
        for table in "kn":
            expected = rows(leader, table, holds[f"{NAME}.{table}"])
            assert rows(follower, table) == expected, f"seed {SEED}, round {number}, {table} of {holds}"
    found = records(pair.source)
    assert [record.sequence for record in found] == list(range(len(found))), f"seed {SEED}"
    for _, each in groupby(found, key=lambda record: record.transaction):
        parts = list(each)
        assert [record.index for record in parts] == list(range(len(parts))), f"seed {SEED}"
        assert [record.last for record in parts] == [False] * (len(parts) - 1) + [True], f"seed {SEED}"
    with capsys.disabled():
        print(f"\n{killed} kills in {ROUNDS} rounds, {len(found)} records")
    assert killed > ROUNDS
