"""Debezium's messages of a row that are merged within a window, and heartbeats."""

import json
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from cdc.kafka.partitions import backwards
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.altered.killed_producer import POINTS
from tests.checks.debezium import DebeziumTopicMessage, debezium_messages
from tests.harness.programs import own_name, records, refused, run, run_well, write_profile
from tests.harness.seed import SEED

pytestmark = pytest.mark.integration


def profile_of(path: Path, leader: MySql, kafka: Kafka, *, name: str, **debezium: Any) -> Path:
    return write_profile(
        path, leader, kafka, name=name, resource=name, filters={"include_dbs": [name]},
        producer={"start": "now", "dedupe_ms": 300, "commit_records": 40},
        kafka={"format": ["cdc", "debezium"]}, debezium={"topic_prefix": f"{name}.dbz"} | debezium,
    )  # fmt: skip


def rows_of(messages: list[DebeziumTopicMessage]) -> dict[int, Any]:
    """The rows that a reader has in the end that believes what messages say about a row before."""
    rows: dict[int, Any] = {}
    for each in messages:
        if each.value is None:
            assert each.key["id"] not in rows
            continue
        before = rows.pop(each.key["id"], None)
        assert each.value["before"] == before, each
        if each.value["after"] is not None:
            rows[each.key["id"]] = each.value["after"]
    return rows


def test_messages_of_a_window(tmp_path: Path, leader: MySql, kafka: Kafka) -> None:
    name = own_name(tmp_path)
    profile = profile_of(tmp_path, leader, kafka, name=name, heartbeat_interval_ms=50, changed_columns_only=True)
    with leader.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        run_well("cdc-producer", profile, "--until-current")
        cursor.execute(f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT, w INT)")
        cursor.execute(f"INSERT INTO {name}.t VALUES (1, 0, 7), (2, 0, 7)")
        cursor.execute(f"ALTER TABLE {name}.t COMMENT 'a statement ends the window'")
        for _ in range(5):
            cursor.execute(f"UPDATE {name}.t SET v = v + 1 WHERE id = 1")
        cursor.execute(f"DELETE FROM {name}.t WHERE id = 2")
        cursor.execute(f"INSERT INTO {name}.t VALUES (2, 9, 7), (3, 0, 0)")
        cursor.execute(f"DELETE FROM {name}.t WHERE id = 3")
    run_well("cdc-producer", profile, "--until-current")
    found = debezium_messages(kafka, prefix=f"{name}.dbz")[f"{name}.t"]
    assert [(each.value["op"], each.value["before"], each.value["after"]) for each in found] == [
        ("c", None, {"id": 1, "v": 0, "w": 7}), ("c", None, {"id": 2, "v": 0, "w": 7}),
        ("u", {"id": 1, "v": 0}, {"id": 1, "v": 5}), ("u", {"id": 2, "v": 0}, {"id": 2, "v": 9}),
    ]  # fmt: skip
    assert [record.operation for record in records(profile)].count("Update") == 5, "records are not merged"
    properties = {"bootstrap.servers": kafka.bootstrap_servers}
    beats = [
        (json.loads(each.key() or b""), json.loads(each.value() or b""))
        for each in backwards(properties, (f"__debezium-heartbeat.{name}.dbz", 0), pick=lambda message: message)
    ]
    assert beats
    assert all(key == {"serverName": f"{name}.dbz"} and value["ts_ms"] > 0 for key, value in beats)


@pytest.mark.parametrize("setting", ["provide_transaction_metadata", "schemas_enable"])
def test_settings_that_exclude_merging(tmp_path: Path, leader: MySql, kafka: Kafka, setting: str) -> None:
    profile = profile_of(tmp_path, leader, kafka, name="merged", changed_columns_only=True, **{setting: True})
    said = refused("cdc-producer", profile)
    assert "CDC-PROFILE-FORMAT" in said
    assert setting in said


@pytest.mark.long
@pytest.mark.crash
def test_kills_amid_windows(tmp_path: Path, leader: MySql, kafka: Kafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Readers that believe each ``before`` have the leader's rows in the end. `make test` has
    test_messages_of_a_window.
    """
    chance, name, kills = random.Random(SEED), own_name(tmp_path), 0
    profile = profile_of(tmp_path, leader, kafka, name=name)
    with leader.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        run_well("cdc-producer", profile, "--until-current")
        for table in "ab":
            cursor.execute(f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY, v INT)")
        for number in range(6 * len(POINTS)):
            for _ in range(chance.randint(1, 150)):
                cursor.execute(chance.choice((
                    "REPLACE INTO {} VALUES ({}, {})", "DELETE FROM {} WHERE id = {}", "UPDATE {} SET v = v + 1",
                    "UPDATE IGNORE {} SET id = {} WHERE id = {}",
                )).format(f"{name}.{chance.choice('ab')}", chance.randrange(8), chance.randrange(8)))  # fmt: skip
            point = POINTS[number % len(POINTS)]
            done = run("killed_producer", profile, point, str(chance.randint(1, 20 if "record" in point else 3)))
            assert done.returncode in (-signal.SIGKILL, 0), f"seed {SEED}, {point}: {done.stderr}"
            kills += done.returncode != 0
        run_well("cdc-producer", profile, "--until-current")
        messages = debezium_messages(kafka, prefix=f"{name}.dbz")
        for table in "ab":
            cursor.execute(f"SELECT id, v FROM {name}.{table}")
            wanted = {key: {"id": key, "v": value} for key, value in cursor.fetchall()}
            assert rows_of(messages[f"{name}.{table}"]) == wanted, f"seed {SEED}"
    changes = sum(len(record.rows) for record in records(profile))
    left = sum(len(each) for each in messages.values())
    with capsys.disabled():
        print(f"\n{kills} kills, {changes} changes of rows, {left} messages")
    assert left < changes / 2
