"""cdc-producer killed at each named point of its Kafka transactions, in small and in large leader transactions."""

import os
import random
import signal
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.killed_producer import POINTS
from tests.checks.debezium import debezium_messages, schema_changes, transaction_messages, uncounted
from tests.harness.programs import end_offset, records, run, run_well, write_profile
from tests.harness.seed import SEED

pytestmark = [pytest.mark.integration, pytest.mark.crash]

KILLS = int(os.environ.get("CDC_POINT_KILLS", len(POINTS)))
ROWS = 300  # of 4 kB: no transaction of so many bytes is taken as a whole
# Rows of 4 kB in each of two tables: two of them are an event and a record, and so many bytes are not taken as a whole,
# so a Kafka transaction of 4 records ends amid them.
LARGE = 150


@pytest.mark.parametrize("written", ["single", "per_table", "plain"])
def test_kills_at_named_points(
    tmp_path: Path, leader: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str], written: str
) -> None:
    chance = random.Random(SEED)
    name = f"points_{written}"
    layout = "per_table" if written == "per_table" else "single"
    # Most records are more than one message.
    limits = {"start": "now", "commit_records": 4, "record_bytes": 40_000, "message_bytes": 4000}
    topics: dict[str, Any] = {"layout": layout, "prefix": name, "transactions": written != "plain"}
    if written == "per_table":
        topics["format"] = ["cdc", "debezium"]
    profile = write_profile(
        tmp_path,
        leader,
        kafka,
        name=name,
        resource=name,
        filters={"include_dbs": [name]},
        producer=limits,
        kafka=topics,
        debezium={
            "topic_prefix": f"{name}.dbz",
            "provide_transaction_metadata": True,
            "schemas_enable": True,
            "include_schema_changes": True,
        },
    )
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        for point, first in product(["after a flush", "before commit"], range(1, 4)) if written == "plain" else ():
            run("killed_producer", profile, point, str(first))  # the first start, of which nothing is there yet
        run_well("cdc-producer", profile, "--until-current")
        for table in "ab":
            cursor.execute(f"CREATE TABLE {name}.{table} (i INT PRIMARY KEY, t VARCHAR(4000))")
        wanted, killed = 0, Counter(dict.fromkeys(POINTS, 0))
        for number in range(KILLS):
            wanted = load(cursor, name, first=wanted)
            cursor.execute(f"ALTER TABLE {name}.a COMMENT '{number}'")
            point = POINTS[number % len(POINTS)]
            count = chance.randint(1, 20 if "record" in point or "flush" in point else 3)
            done = run("killed_producer", profile, point, str(count))
            assert done.returncode in (-signal.SIGKILL, 0), f"seed {SEED}, {point}: {done.stderr}"
            killed[point] += done.returncode != 0
    run_well("cdc-producer", profile, "--until-current")
    found = records(profile)
    assert [record.sequence for record in found] == list(range(len(found))), f"seed {SEED}"
    assert layout != "single" or end_offset(kafka, name) > 1.7 * len(found), "few records were several messages"
    values = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
    assert values == list(range(wanted)), f"seed {SEED}"
    if written == "per_table":
        beside = debezium_messages(kafka, prefix=f"{name}.dbz")
        seen = {table: [each.value["after"]["i"] for each in beside[f"{name}.{table}"]] for table in "ab"}
        assert seen["a"] == sorted(seen["a"]), f"seed {SEED}"
        assert seen["b"] == sorted(seen["b"]), f"seed {SEED}"
        assert sorted(seen["a"] + seen["b"]) == values, f"seed {SEED}"
        statements = [each.value["ddl"].rpartition(" ")[2] for each in schema_changes(kafka, prefix=f"{name}.dbz")]
        assert statements[-KILLS:] == [f"'{number}'" for number in range(KILLS)], f"seed {SEED}"
        assert len(statements) == KILLS + 2, f"seed {SEED}, {statements}"
        about = transaction_messages(kafka, prefix=f"{name}.dbz")
        assert uncounted(beside, about) == [], f"seed {SEED}"
    with capsys.disabled():
        print(f"\n{written}: {killed.total()} kills in {KILLS} runs, {dict(killed)}; {len(found)} records")
    assert killed.total() > 0.9 * KILLS, "the points were hardly met"


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_killed_while_it_passes_over_what_is_out(tmp_path: Path, leader: MySql, kafka: Kafka, layout: str) -> None:
    """The binlog's other events commit in that phase, too: no such commit may count fewer records than are out."""
    name = f"passing_{layout}"
    path = write_profile(
        tmp_path,
        leader,
        kafka,
        name=name,
        resource=name,
        filters={"include_dbs": [name]},
        producer={"start": "now", "record_bytes": 5000},
        kafka={"layout": layout, "prefix": name, "events": True},
    )
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        run_well("cdc-producer", path, "--until-current")
        cursor.execute(f"CREATE TABLE {name}.a (i INT PRIMARY KEY, t VARCHAR(4000))")
        cursor.execute("BEGIN")
        for first in range(0, ROWS, 50):
            rows = ",".join(f"({number}, REPEAT('x', 4000))" for number in range(first, first + 50))
            cursor.execute(f"INSERT INTO {name}.a VALUES {rows}")
        cursor.execute("COMMIT")
    for point, count in (("before commit", 40), ("after commit", 10), ("after commit", 15)):
        done = run("killed_producer", path, point, str(count), "eager")
        assert done.returncode == -signal.SIGKILL, done.stderr
    run_well("cdc-producer", path, "--until-current")
    found = records(path)
    assert [record.sequence for record in found] == list(range(len(found)))
    values = [row.after[0]["SignedInteger"] for record in found for row in record.rows if row.after]
    assert values == list(range(ROWS))


def load(cursor: object, database: str, *, first: int) -> int:
    """Two small leader transactions in two tables, and between them one that is larger than a Kafka transaction."""
    for size in (1, LARGE, 1):
        for table, start in (("a", first), ("b", first + size)):
            rows = ",".join(f"({number}, REPEAT('x', 4000))" for number in range(start, start + size))
            cursor.execute("BEGIN") if table == "a" else None  # type: ignore[attr-defined]
            cursor.execute(f"INSERT INTO {database}.{table} VALUES {rows}")  # type: ignore[attr-defined]
        cursor.execute("COMMIT")  # type: ignore[attr-defined]
        first += 2 * size
    return first
