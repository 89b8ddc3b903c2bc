"""Columns that are left out of a copied leader: neither their names nor their values reach Kafka."""

from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.pair import Pair
from tests.harness.programs import run, run_well
from tests.harness.topic_search import forms, messages, topics_of

pytestmark = pytest.mark.integration

_SECRET = "s3cretValue"
_SCHEMA = [
    "CREATE TABLE people (id INT PRIMARY KEY, hiddenMail VARCHAR(40) DEFAULT 'hidden', name VARCHAR(9))",
    "ALTER TABLE people ADD KEY (hiddenMail), ADD KEY by_name (name, hiddenMail)",
    f"INSERT INTO people VALUES (1, '{_SECRET}', 'ann'), (2, NULL, 'bob')",
    "CREATE TABLE keyless (hiddenMail TEXT, name VARCHAR(9))",
    f"INSERT INTO keyless VALUES ('{_SECRET}', 'ann'), ('x{_SECRET}', 'ann')",
    "CREATE VIEW mails AS SELECT id, hiddenMail FROM people",
    "CREATE VIEW of_mails AS SELECT id FROM mails",
    "CREATE VIEW names AS SELECT id, name FROM people",
    "CREATE PROCEDURE clear_mails() UPDATE people SET hiddenMail = NULL",
    "CREATE PROCEDURE clear_names() UPDATE people SET name = NULL",
    "CREATE TRIGGER lower_mail BEFORE INSERT ON people FOR EACH ROW SET NEW.hiddenMail = LOWER(NEW.hiddenMail)",
]


def test_a_copied_leader_is_copied_without_them(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    name = "gonecopy"
    pair = Pair.make(
        tmp_path, leader, follower, kafka, name=name,
        source={
            "producer": {"start": "copy"}, "kafka": {"format": ["cdc", "debezium"]},
            "debezium": {"topic_prefix": f"{name}.dbz", "schemas_enable": True},
            "filters": {"include_dbs": [name], "mask_columns": {f"{name}.*.hidden*": "gone"}},
        },
    )  # fmt: skip
    pair.on_leader(f"CREATE DATABASE {name}")
    pair.on_leader(*_SCHEMA, database=name)
    shown = run("cdc-producer", pair.source, "--dry-run").stdout
    assert f"left out, since it names a column that is left out: {name}.mails" in shown
    log = run_well("cdc-producer", pair.source, "--until-current")
    left_out = {line.split("name=")[1].split()[0] for line in log.splitlines() if "names a column that is left" in line}
    assert left_out == {f"{name}.{each}" for each in ("mails", "clear_mails", "lower_mail")}
    assert f"view={name}.of_mails" in log
    pair.on_leader(
        f"INSERT INTO people VALUES (3, '{_SECRET}', 'cy')",
        f"UPDATE people SET hiddenMail = '{_SECRET}2', name = 'al'",
        f"DELETE FROM keyless WHERE hiddenMail = '{_SECRET}'",
        "ALTER TABLE people MODIFY hiddenMail VARCHAR(50) NOT NULL",
        database=name,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    pair.on_leader(f"CREATE VIEW late AS SELECT hiddenMail AS m, '{_SECRET}' AS s FROM people", database=name)
    stopped = run("cdc-producer", pair.source, "--until-current")
    assert (stopped.returncode, "CDC-MASK-STATEMENT" in stopped.stderr) == (3, True), stopped.stderr
    run_well("cdc-producer", pair.source, "--until-current", "--skip", stopped.stderr.split()[-1])
    run_well("cdc-consumer", pair.target, "--until-current")
    with follower.root(database=name) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT *, (SELECT COUNT(*) FROM keyless) FROM people ORDER BY id")
        assert cursor.fetchall() == ((1, "al", 1), (2, "al", 1), (3, "al", 1))
        cursor.execute("SHOW TABLES")
        assert [row[0] for row in cursor.fetchall()] == ["keyless", "names", "people"]
    written = messages(kafka, *topics_of(kafka, name))
    assert any(b"people" in each for each in written)
    for secret in (*forms(_SECRET), b"hiddenMail", b"hiddenmail"):
        assert [each[:300] for each in written if secret in each] == []
