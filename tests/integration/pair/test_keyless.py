"""Tables without a key of which many rows change at once, with duplicates, NULLs and all types, on both servers."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import begin_now, own_name, run_well, write_profile
from tests.harness.seed import SEED
from tests.harness.server_pool import know_vectors

pytestmark = pytest.mark.integration

ROWS = int(os.environ.get("CDC_KEYLESS_ROWS", "400"))
# A column's definition, and values that equal one another by its collation, in other digits, or as numbers.
COLUMNS = {
    "i": ("INT", ["NULL", "0", "-7", "2147483647"]),
    "u": ("BIGINT UNSIGNED", ["NULL", "18446744073709551615", "1"]),
    "m": ("DECIMAL(10,3)", ["NULL", "0.000", "-1.500", "1.5"]),
    "f": ("FLOAT", ["NULL", "0.1", "1e-30", "-0e0", "0e0", "16777217"]),
    "g": ("DOUBLE", ["NULL", "0.1e0", "1e300", "1e15", "-0e0", "0e0", "1234567890.0625e0"]),
    "s": ("VARCHAR(20)", ["NULL", "''", "'a'", "'A'", "'á'", "'a '", "'Null'", "'NULL'", "'it''s \\\\'"]),
    "l": ("CHAR(9) CHARACTER SET latin1", ["NULL", "'é'", "'e'", "'E'"]),
    "w": ("VARCHAR(9) CHARACTER SET sjis", ["NULL", "_sjis x'835c'", "'x'"]),
    "b": ("BLOB", ["NULL", "''", "x'00ff'", "x'0100'"]),
    "e": ("ENUM('a', '', 'b')", ["NULL", "'a'", "''", "'b'"]),
    "o": ("SET('x', 'y')", ["NULL", "''", "'x,y'"]),
    "d": ("DATE", ["NULL", "'0000-00-00'", "'2024-02-29'"]),
    "t": ("DATETIME(3)", ["NULL", "'2024-02-29 01:02:03.004'", "'0000-00-00'"]),
    "z": ("TIMESTAMP(6) NULL", ["NULL", "'2024-02-29 01:02:03.000004'"]),
    "c": ("TIME(2)", ["NULL", "'-00:00:00.50'", "'00:00:00.50'"]),
    "y": ("YEAR", ["NULL", "0", "2024"]),
    "x": ("BIT(5)", ["NULL", "0", "31"]),
    "j": ("JSON", ["NULL", "'null'", "'[1]'", "'[1.0]'", "JSON_ARRAY(CAST(1 AS DECIMAL(3,0)))", "'{\"k\": [true]}'",
                   "JSON_ARRAY(DATE'2001-02-03')", "'[\"2001-02-03\"]'"]),
    "p": ("POINT", ["NULL", "POINT(1, 2)"]),
    "v": ("VECTOR(2)", ["NULL", "STRING_TO_VECTOR('[1,-0]')", "STRING_TO_VECTOR('[1,0]')"]),
}  # fmt: skip
# Few columns with few values make many equal rows.
TABLES = {
    "few": "is", "numbers": "umfgxy", "texts": "slwbeo", "times": "dtzci", "one": "iu",
    "others": "ijpv" if know_vectors() else "ijp",
}  # fmt: skip


def test_many_rows_without_a_key_change_as_on_the_leader(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    chance, name = random.Random(SEED), own_name(tmp_path)
    source = write_profile(tmp_path, leader, kafka, name=name, resource=name, producer={"start": "now"})
    target = write_profile(tmp_path, follower, kafka, name=f"{name}-target", topic=name, resource=name)
    begin_now(source, leader)
    with leader.root(charset="utf8mb4", autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"CREATE DATABASE `{name}`")
        cursor.execute(f"USE `{name}`")
        for table, columns in TABLES.items():
            keys = {"texts": ", KEY (s)", "one": ", UNIQUE KEY (i, u)"}.get(table, "")
            cursor.execute(f"CREATE TABLE {table} ({', '.join(f'{c} {COLUMNS[c][0]}' for c in columns)}{keys})")
            rows = [f"({','.join(chance.choice(COLUMNS[c][1]) for c in columns)})" for _ in range(ROWS)]
            cursor.execute(f"INSERT IGNORE INTO {table} VALUES {','.join(rows)}")
        connection.commit()
        for _ in range(3):
            run_well("cdc-producer", source, "--until-current")
            logged = run_well("cdc-consumer", target, "--until-current")
            assert "conflicts=0" in logged, f"CDC_SEED={SEED}: {logged}"
            assert "one by one" not in logged, f"CDC_SEED={SEED}: {logged}"
            assert "row by row" not in logged, f"CDC_SEED={SEED}: {logged}"
            here, there = content(leader, name), content(follower, name)
            for table in here:
                assert there[table] == here[table], f"CDC_SEED={SEED}, {table}"
            for table, columns in chance.sample(sorted(TABLES.items()), len(TABLES)):
                change(cursor, table, columns, chance)
                connection.commit()


def change(cursor: Any, table: str, columns: str, chance: random.Random) -> None:
    """Some rows come, go and get other values; some come and go, or become what others were."""
    some = f"ORDER BY RAND({chance.randrange(1000)}) LIMIT {ROWS // 4}"
    statements = [f"INSERT IGNORE INTO {table} SELECT * FROM {table} {some}", f"DELETE FROM {table} {some}"]
    for column in columns:
        statements.append(f"UPDATE IGNORE {table} SET {column} = {chance.choice(COLUMNS[column][1])} {some}")
        value = chance.choice(COLUMNS[column][1])
        if column not in "vp":  # which cannot be compared
            statements.append(f"DELETE FROM {table} WHERE {column} <=> {value} LIMIT {ROWS // 10}")
    if "i" in columns:
        statements.append(f"UPDATE IGNORE {table} SET i = i + 7 WHERE i < 100 {some}")
    chance.shuffle(statements)
    for statement in statements:
        cursor.execute(statement)
