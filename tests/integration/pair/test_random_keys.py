"""The planner's law on real servers: in any batches the follower's tables become the leader's, whatever their keys."""

import os
import random
from pathlib import Path

import pymysql
import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.generators.random_keys import RandomHistory, random_history
from tests.harness.programs import begin_now, run_well, write_profile
from tests.harness.seed import SEED

pytestmark = pytest.mark.integration

COUNT = int(os.environ.get("CDC_RANDOM_KEYS", "30"))
# Duplicate, foreign key on either side, no NULL, out of range, too long, no such value.
REFUSALS = {1062, 1451, 1452, 1048, 1264, 1406, 1690, 1292, 1761, 1762, 3819}
A_ROUND = 60  # histories that share a run of the programs


def test_random_keys(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    statements, by_changes = 0, 0
    for number, first in enumerate(range(0, COUNT, A_ROUND)):
        name = f"keys_{number}"
        source = write_profile(
            tmp_path, leader, kafka, name=name, resource=name, producer={"start": "now", "record_bytes": 1000}
        )
        begin_now(source, leader)
        histories = [
            random_history(chance, f"t{place}", transactions=chance.randint(1, 40))
            for place in range(min(A_ROUND, COUNT - first))
        ]
        statements += perform(leader, name, histories, chance)
        run_well("cdc-producer", source, "--until-current")
        target = write_profile(
            tmp_path, follower, kafka, name=f"{name}-target", topic=name, resource=name, log={"level": "debug"},
            consumer={"batch_rows": chance.choice([1, 2, 5, 20, 100, 1000, 5000])},
        )  # fmt: skip
        logged = run_well("cdc-consumer", target, "--until-current")
        assert "conflicts=0" in logged, f"CDC_SEED={SEED}, {name}: {logged}"
        fallbacks = [line for line in logged.splitlines() if "batch failed, retrying row by row" in line]
        by_changes += len(fallbacks)
        # What is done change by change is right whatever the plan was. The one good reason: a key that came and went is
        # equal, by its collation, to one that is there.
        assert all("where 0 were due" in line for line in fallbacks), f"CDC_SEED={SEED}, {name}: {fallbacks}"
        here, there = content(leader, name), content(follower, name)
        for table in here:
            assert there[table] == here[table], f"CDC_SEED={SEED}, {name}.{table}"
        for server in (leader, follower):
            with server.root() as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
    with capsys.disabled():
        counts = f"{COUNT} histories, {statements} statements, {by_changes} batches change by change"
        print(f"\n{counts} (CDC_SEED={SEED})")
    assert statements > COUNT


def perform(leader: MySql, database: str, histories: list[RandomHistory], chance: random.Random) -> int:
    """Runs the histories' transactions in turn; how many statements the leader took."""
    taken = 0
    with leader.root(charset="utf8mb4", autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for history in histories:
            for definition in history.definitions:
                cursor.execute(definition)
        todo = [transaction for history in histories for transaction in history.transactions]
        chance.shuffle(todo)
        for transaction in todo:
            for statement in transaction:
                try:
                    cursor.execute(statement)
                    taken += 1
                except (pymysql.IntegrityError, pymysql.OperationalError, pymysql.DataError) as error:
                    # A history is what the leader takes of it.
                    assert error.args[0] in REFUSALS, (statement, error)
            connection.rollback() if chance.random() < 0.1 else connection.commit()
        connection.rollback()
    return taken
