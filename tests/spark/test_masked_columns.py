"""Masked columns and rows that are left out: no byte of what they hold is in a topic, a log, a state or a report."""

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.pair import Pair
from tests.harness.programs import run, run_well
from tests.harness.topic_search import forms, messages

pytestmark = [pytest.mark.spark, pytest.mark.integration]

_SECRET = "s3cretValue"
_HASHED = {f"masked.*.{column}": "hash" for column in ("email", "bytes", "sjis", "words")}
_MASKS = _HASHED | {"masked.*.phone": "null", "masked.*.document": "null", "masked.*.large": "null"}
_GONE = {f"masked.people.{column}": "gone" for column in ("hiddenMail", "hiddenDocument", "hiddenLarge")}
_ROW_FILTERS = {"rows": {"masked.orders": "region = 'EU' AND amount > 1", "masked.logs": "region = 'EU'"}}
_KEY = "k3yOfAllTheHashes"
_ROWS = 450  # more than are read before a decoder is compiled


def test_the_secret_is_nowhere(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    name = "masked"
    only = {"include_dbs": [name, "cdc"]}
    pair = Pair.make(
        tmp_path, leader, follower, kafka, name=name,
        source={
            "producer": {"start": "now", "partial_json": "apply"},
            "filters": {**only, "mask_key": _KEY, "mask_columns": _MASKS | _GONE, **_ROW_FILTERS},
        },
        target={"filters": only},
        capture={"producer": {"start": "now"}, "filters": only},
    )  # fmt: skip
    logs = [run_well("cdc-producer", profile, "--until-current") for profile in (pair.source, pair.capture)]
    pair.on_leader(f"CREATE DATABASE {name}")
    pair.on_leader(
        "CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(30), bytes VARBINARY(64), "
        "sjis VARCHAR(20) CHARACTER SET sjis, words LONGTEXT, phone BIGINT, document JSON, large LONGBLOB, "
        "name VARCHAR(30))",
        "CREATE TABLE keyless LIKE t", "ALTER TABLE keyless DROP PRIMARY KEY",
        # A copy reads a key that is left out as the last one, and as all of a chunk.
        "CREATE TABLE orders (id VARCHAR(30) PRIMARY KEY, region CHAR(2), amount DECIMAL(9,2), note LONGTEXT)",
        "CREATE TABLE logs (region CHAR(2), note VARCHAR(30))",
        f"INSERT INTO orders VALUES ('a', 'EU', 2, 'kept'), ('b', 'EU', 2, 'kept'), "
        f"('{_SECRET}', 'US', 2, '{_SECRET}'), ('c', 'EU', 1, '{_SECRET}'), "
        f"('z{_SECRET}', NULL, NULL, REPEAT('{_SECRET}', 200000))",
        f"INSERT INTO logs VALUES ('EU', 'kept'), ('US', '{_SECRET}')",
        f"UPDATE orders SET region = 'US', note = '{_SECRET}' WHERE id = 'a'",
        "UPDATE orders SET amount = 3, note = 'kept' WHERE id = 'c'",
        f"UPDATE orders SET id = CONCAT('y{_SECRET}', 1) WHERE id = 'z{_SECRET}'",
        f"DELETE FROM orders WHERE id = '{_SECRET}'",
        f"INSERT INTO orders WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < {_ROWS}) "
        f"SELECT CONCAT('d{_SECRET}', i), IF(i = 9, 'US', 'EU'), 1, NULL FROM r",
        f"SET @s = '{_SECRET}', cte_max_recursion_depth = 10000, binlog_rows_query_log_events = ON",
        "INSERT INTO t WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < "
        f"{_ROWS}) SELECT i, CONCAT(@s, i), @s, @s, CONCAT(@s, 'é', i), 4242424242, JSON_OBJECT('a', @s), @s, i FROM r",
        "INSERT INTO keyless SELECT * FROM t WHERE id < 5",
        "CREATE TABLE people (hiddenMail VARCHAR(40) NOT NULL, id INT PRIMARY KEY, hiddenDocument JSON, "
        "name VARCHAR(30), hiddenLarge LONGBLOB, KEY by_mail (hiddenMail, name), KEY (hiddenMail))",
        "INSERT INTO people SELECT CONCAT(@s, id), id, JSON_OBJECT('a', @s), IF(id % 3, id, NULL), "
        "IF(id = 3, REPEAT(@s, 200000), NULL) FROM t",
        "UPDATE people SET hiddenMail = 'x', name = 'shown' WHERE id % 3 = 0",
        f"UPDATE t SET email = CONCAT('{_SECRET}', 'x', id), large = REPEAT('{_SECRET}', 200000) WHERE id < 3",
        "SET binlog_row_value_options = PARTIAL_JSON",
        f"UPDATE t SET document = JSON_SET(document, '$.b', '{_SECRET}') WHERE id < 9",
        f"UPDATE people SET hiddenDocument = JSON_SET(hiddenDocument, '$.b', '{_SECRET}') WHERE id < 9",
        "ALTER TABLE people MODIFY hiddenMail VARCHAR(50), ADD age INT AFTER hiddenMail",
        f"DELETE FROM keyless WHERE email = '{_SECRET}2'",
        "DELETE FROM t WHERE id > 400",
        # What a session logs as a statement, which is refused.
        "SET binlog_format = STATEMENT",
        f"UPDATE t SET email = '{_SECRET}', phone = 4242424242 WHERE id = 5",
        database=name,
    )  # fmt: skip
    stopped = run("cdc-producer", pair.source, "--until-current")
    assert stopped.returncode == 3, stopped.stderr
    logs += [
        stopped.stderr,
        run_well("cdc-producer", pair.source, "--until-current", "--skip", stopped.stderr.split()[-1]),
    ]
    logs += [run_well("cdc-consumer", pair.target, "--until-current")]
    pair.on_leader("UPDATE t SET name = 'renamed' WHERE id < 20", database=name)
    logs += [run_well("cdc-producer", pair.source, "--until-current", "--copy", f"{name}.*")]
    # Another condition: followers remove the rows that pass no more, and the audit finds no drift there.
    pair.source.write_text(pair.source.read_text().replace("amount > 1", "amount > 2.5"))
    logs += [pair.replicate()]
    assert " conflict " not in "".join(logs)
    copied = [line for line in logs[-1].splitlines() + logs[-2].splitlines() if f"table={name}.t " in line]
    assert copied
    with follower.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), COUNT(DISTINCT email), COUNT(phone), COUNT(document), COUNT(large) FROM t")
        assert cursor.fetchall() == ((400, 400, 0, 0, 0),)
        cursor.execute("SELECT COUNT(*) FROM t WHERE bytes IS NULL OR LENGTH(sjis) <> 20 OR LENGTH(words) <> 63")
        assert cursor.fetchall() == ((0,),)
        cursor.execute("SELECT COUNT(*) FROM keyless")
        assert cursor.fetchall() == ((3,),)
        cursor.execute("SELECT *, COUNT(*) OVER () FROM people ORDER BY id LIMIT 2")
        assert cursor.fetchall() == ((1, "1", None, 450), (2, "2", None, 450))
        cursor.execute("SELECT id, CONCAT(amount), note FROM orders UNION SELECT *, '' FROM logs")
        assert sorted(cursor.fetchall()) == [("EU", "kept", ""), ("c", "3.00", "kept")]
    report = tmp_path / "report"
    audit = pair.audit(spark, report)
    written = messages(kafka, name, f"{name}.commits", f"{name}.copies", f"{name}-follower", f"{name}-follower.commits")
    named = [each for each in written if b"hidden" in each.lower()]
    assert named == []
    files = [Path(folder, file) for folder, _, names in os.walk(report) for file in names]
    assert files
    written += [file.read_bytes() for file in files] + [log.encode() for log in logs] + [repr(audit).encode()]
    for secret in (*forms(_SECRET), b"4242424242", *forms(_KEY)):
        assert [each[:300] for each in written if secret in each] == []
    for shown in forms("renamed")[:1]:
        assert any(shown in each for each in written), "the topics were not read"
    # The row that was changed by a skipped statement is the only one that the audit does not call equal.
    assert audit.exit_status in (0, 1), audit
    assert not any("orders" in each or "logs" in each or "people" in each for each in map(repr, audit.drifted)), audit
