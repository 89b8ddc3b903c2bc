"""Random tables with random rows: their records are what the leader shows of them, and the follower is equal to it."""

import os
import random
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.checks.folded import Fold, Rows, shown
from tests.generators.random_tables import LAX, random_table
from tests.harness.programs import begin_now, records, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_pool import know_vectors

pytestmark = pytest.mark.integration

TABLES = int(os.environ.get("CDC_RANDOM_TABLES", "25"))
A_ROUND = 50  # tables that share a run of the programs


def test_random_tables(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(SEED)
    rows = 0
    for number, first in enumerate(range(0, TABLES, A_ROUND)):
        name = f"random_{number}"
        source = write_profile(tmp_path, leader, kafka, name=name, resource=name, producer={"start": "now"})
        target = write_profile(tmp_path, follower, kafka, name=f"{name}-target", topic=name, resource=name)
        begin_now(source, leader)
        wanted = fill(leader, name, chance, tables=min(A_ROUND, TABLES - first))
        run_well("cdc-producer", source, "--until-current")
        found = records(source)
        fold = Fold()
        for record in found:
            fold.take(record)
        assert fold.tables.keys() == wanted.keys()
        for table, images in wanted.items():
            only_told, only_shown = fold.tables[table] - images, images - fold.tables[table]
            assert not only_told | only_shown, f"CDC_SEED={SEED}, {name}.{table}: {only_told} is not {only_shown}"
        logged = run_well("cdc-consumer", target, "--until-current")
        assert "conflicts=0" in logged, f"CDC_SEED={SEED}, {name}: {logged}"
        here, there = content(leader, name), content(follower, name)
        for table in here:
            differing = "" if table not in wanted else set(here[table]["rows"]) ^ set(there[table]["rows"])
            assert there[table] == here[table], f"CDC_SEED={SEED}, {name}.{table}: {differing}"
        rows += sum(len(record.rows) for record in found)
        for server in (leader, follower):
            execute(server, f"DROP DATABASE {name}")
    assert rows > TABLES
    with capsys.disabled():
        print(f"\n{TABLES} random tables, {rows} rows changed, all equal (CDC_SEED={SEED})")


def fill(leader: MySql, database: str, chance: random.Random, *, tables: int) -> dict[str, Rows]:
    """Make tables with rows; what the leader shows of them in the end."""
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(LAX)
        cursor.execute(f"CREATE DATABASE {database}")
        cursor.execute(f"USE {database}")
        for number in range(tables):
            table = random_table(chance, f"t{number}", vectors=know_vectors())
            statements = [table.definition, *table.inserts(chance, rows=chance.randint(1, 30))]
            for statement in [*statements, *table.changes(chance, statements=10)]:
                cursor.execute(statement)
        return shown(cursor, database)


def execute(server: MySql, *statements: str) -> None:
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
