"""Partial updates of JSON documents (binlog_row_value_options = PARTIAL_JSON): records and follower as without them."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.generators.random_documents import change, document
from tests.harness.programs import as_json, begin_now, run_well, write_profile
from tests.harness.seed import SEED

pytestmark = pytest.mark.integration

APPLY = {"start": "now", "partial_json": "apply"}
CHANGES = int(os.environ.get("CDC_JSON_CHANGES", "30"))
COLUMNS = (
    "id INT PRIMARY KEY, j JSON, n INT, k JSON NOT NULL, "
    "v JSON AS (JSON_EXTRACT(j, '$.a')) VIRTUAL, s JSON AS (JSON_EXTRACT(k, '$.bb')) STORED, "
    "f INT, KEY ((CAST(k->>'$.padding' AS CHAR(20)) COLLATE utf8mb4_bin))"
)


@pytest.mark.newer("documents with a TIME of 32 hours")
def test_differences_give_what_whole_documents_give(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    """Each statement is executed twice: on one table it logs differences, on the other whole documents."""
    name = "partial_json"
    source = write_profile(tmp_path, leader, kafka, name=name, resource=name, producer=APPLY)
    target = write_profile(tmp_path, follower, kafka, name=f"{name}-target", topic=name, resource=name)
    begin_now(source, leader)
    before = events_of(leader)
    fill(leader, name, random.Random(SEED))
    run_well("cdc-producer", source, "--until-current")
    told = rows_of(source)
    assert len(told["partial"]) > CHANGES
    for number, (partial, whole) in enumerate(zip(told["partial"], told["whole"], strict=True)):
        assert partial == whole, f"CDC_SEED={SEED}, row {number}"
    assert events_of(leader) > before

    assert "conflicts=0" in run_well("cdc-consumer", target, "--until-current")
    here, there = content(leader, name), content(follower, name)
    assert there == here, f"CDC_SEED={SEED}"
    assert here["partial"]["rows"] == here["whole"]["rows"]


def fill(leader: MySql, database: str, chance: random.Random) -> None:
    """Make the tables ``partial`` and ``whole``, and change both in the same way, in all kinds of transactions."""
    with leader.root(charset="utf8mb4") as connection, connection.cursor() as cursor:

        def both(*statements: str) -> None:
            for table, options in (("partial", "PARTIAL_JSON"), ("whole", "")):
                cursor.execute(f"SET binlog_row_value_options = '{options}'")
                for statement in statements:
                    cursor.execute(statement.replace("TABLE_NAME", f"{database}.`{table}`"))

        cursor.execute("SET sql_mode = 'NO_ENGINE_SUBSTITUTION'")
        cursor.execute(f"CREATE DATABASE {database}")
        both(f"CREATE TABLE TABLE_NAME ({COLUMNS})")
        rows = [f"({number},{document(chance)},{number % 4},{document(chance)})" for number in range(11)]
        both(f"INSERT INTO TABLE_NAME (id, j, n, k) VALUES {','.join(rows)}, (99, NULL, 0, '[1, 2]')")
        for first in range(0, CHANGES, 10):
            updates = [f"UPDATE TABLE_NAME SET j = {document(chance)}, k = {document(chance)} WHERE id = {first % 11}"]
            for number in range(first, first + 10):
                changed = [f"{column} = {change(chance, column)}" for column in chance.choice(["j", "k", "jk"])]
                where = chance.choice(["1", "n = 1", "n IN (2, 3)", "id = 5"])
                updates.append(f"UPDATE TABLE_NAME SET {', '.join(changed)}, f = {number} WHERE {where}")
            cursor.execute(f"SET binlog_transaction_compression = {chance.choice(['ON', 'OFF'])}")
            both(*(["BEGIN", *updates, "COMMIT"] if chance.random() < 0.5 else updates))
        # Where the server changes documents in other ways, too, or in ways that it does not log as differences.
        cursor.execute("SET binlog_transaction_compression = OFF")
        j, k = change(chance, "j"), change(chance, "k")
        both(
            f"UPDATE TABLE_NAME SET j = {j}, j = {change(chance, 'j')}, k = {change(chance, 'j')} WHERE id < 9",
            f"INSERT INTO TABLE_NAME (id, k) VALUES (5, '[]') ON DUPLICATE KEY UPDATE j = {j}, k = {k}",
            f"UPDATE TABLE_NAME x JOIN TABLE_NAME y ON x.id = y.id + 1 SET x.j = {change(chance, 'x.j')}, y.k = '[3]'",
            f"UPDATE TABLE_NAME SET j = JSON_SET(j, '$.wide', REPEAT('x', 20000)), k = {k} WHERE id < 3",
            f"UPDATE TABLE_NAME SET j = {change(chance, 'j')}, k = {k} WHERE id < 3",
            "UPDATE TABLE_NAME SET j = JSON_SET(j, '$.a', 1, '$.b', 1.0, '$.c', CAST(1 AS UNSIGNED)) WHERE id < 8",
            "UPDATE TABLE_NAME SET j = JSON_SET(j, '$.a', 1.0, '$.b', CAST(1 AS UNSIGNED), '$.c', 1e0) WHERE id < 8",
            "UPDATE TABLE_NAME SET id = id + 1000, j = JSON_REMOVE(j, '$.a'), k = JSON_SET(k, '$.a', id) WHERE n = 1",
        )
        # The whole document, arrays and scalars, of which paths make arrays.
        for whole in ("[1, {}, 3, [4]]", '"text"', "7", "null"):
            both(
                f"UPDATE TABLE_NAME SET j = JSON_ARRAY_APPEND('{whole}', '$', REPEAT('x', 400)) WHERE id < 2",
                f"UPDATE TABLE_NAME SET j = '{whole}' WHERE id = 0",
                "UPDATE TABLE_NAME SET j = JSON_SET(j, '$[0]', 1, '$[0][0]', 2, '$[1]', 3, '$[last]', 4) WHERE id < 2",
                "UPDATE TABLE_NAME SET j = JSON_SET(j, '$[9]', 1, '$[last-1]', JSON_ARRAY(2), '$.a', 5) WHERE id < 2",
                "UPDATE TABLE_NAME SET j = JSON_REMOVE(j, '$[last]', '$[0]') WHERE id < 2",
                "UPDATE TABLE_NAME SET j = JSON_REPLACE(j, '$', CAST('{}' AS JSON)) WHERE id < 2",
                "UPDATE TABLE_NAME SET j = JSON_SET(j, '$', CAST('[5]' AS JSON), '$[1]', 6) WHERE id < 2",
            )
        both("ALTER TABLE TABLE_NAME DROP PRIMARY KEY", f"UPDATE TABLE_NAME SET j = {j}")
        # Triggers whose work is in the log.
        both("CREATE TRIGGER TABLE_NAME BEFORE UPDATE ON TABLE_NAME FOR EACH ROW SET NEW.f = NEW.f + 1")
        both(f"UPDATE TABLE_NAME SET j = {j}, k = {k}")


def events_of(leader: MySql) -> int:
    """How many partial updates with differences the newest binlog has, in transactions that are not compressed."""
    # What other tests' sessions logged is in any character set, and the server says it is in this connection's.
    with leader.root(use_unicode=False) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        cursor.execute(f"SHOW BINLOG EVENTS IN '{cursor.fetchall()[-1][0].decode()}'")
        return sum(event[2] == b"Update_rows_partial" for event in cursor.fetchall())


def rows_of(profile: Path) -> dict[str, list[Any]]:
    """The rows of all records of the tables ``partial`` and ``whole``."""
    found: dict[str, list[Any]] = {"partial": [], "whole": []}
    for record in as_json(profile):
        ((_, operation),) = record["operation"].items()
        if isinstance(operation, dict) and "rows" in operation:
            found[record["uri"].rsplit("/", 1)[1]] += operation["rows"]
    return found
