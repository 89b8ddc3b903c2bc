"""ALTER TABLE that numbers the rows: which servers give them the same numbers, and what is refused."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, refused, run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]

ROWS = 8_000  # more than a hundred pages: enough for a server to read them with several threads
FORMS = {
    "a": "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY FIRST",
    "b": "ADD COLUMN n BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, DROP PRIMARY KEY, ALGORITHM=COPY",
    "c": "MODIFY u VARCHAR(50) CHARACTER SET latin1, DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT, ADD PRIMARY KEY (n)",
}


def pair_of(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, name: str) -> Pair:
    only = {"producer": {"start": "now"}, "filters": {"include_dbs": [name, "cdc"]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, **only)
    begin_now(pair.source, leader)
    begin_now(pair.capture, follower)
    pair.on_leader(f"CREATE DATABASE {name}")
    return pair


def test_rows_are_numbered_in_the_order_of_the_key_that_is_replaced(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    name = "numbered"
    pair = pair_of(tmp_path, leader, follower, kafka, name)
    pair.on_leader(
        "CREATE TABLE a (u CHAR(40) PRIMARY KEY, i INT, pad CHAR(200) DEFAULT 'x')",
        f"SET cte_max_recursion_depth = {ROWS}",
        "INSERT INTO a (u, i) WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < "
        f"{ROWS}) SELECT LEFT(SHA2(i, 256), 40), i FROM r",
        *(
            statement
            for table in "bc"
            for statement in (f"CREATE TABLE {table} LIKE a", f"INSERT INTO {table} SELECT * FROM a")
        ),
        *(f"ALTER TABLE {table} {form}" for table, form in FORMS.items()),
        *(f"UPDATE {table} SET i = -1 WHERE n BETWEEN 50 AND 90" for table in FORMS),
        *(f"DELETE FROM {table} WHERE n < 20" for table in FORMS),
        *(f"INSERT INTO {table} (u) VALUES ('new')" for table in FORMS),
        database=name,
    )
    log = pair.replicate()
    assert " conflict " not in log
    assert log.count("rows are numbered in the order of the primary key sequence") == log.count("key=u\n") == len(FORMS)
    theirs, ours = content(leader, name), content(follower, name)
    for table in FORMS:
        assert theirs[table] == ours[table], table
        with leader.root(database=name) as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT n FROM {table} WHERE u <> 'new' ORDER BY u")
            numbers = [number for (number,) in cursor.fetchall()]
        assert numbers == list(range(20, ROWS + 1)), table
    assert pair.audit(spark, tmp_path / "report").exit_status == 0


def test_tables_that_are_copied_after_a_statement_are_compared(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    """The follower's capture meets the statements, too; what it copies of its own tables is not compared."""
    name = "unlike"
    only = {"producer": {"start": "now", "on_unrepeatable": "copy"}, "filters": {"include_dbs": [name, "cdc"]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, **only)
    begin_now(pair.source, leader)
    begin_now(pair.capture, follower)
    pair.on_leader(f"CREATE DATABASE {name}")
    tables = "CREATE TABLE asked (i INT PRIMARY KEY)", "CREATE TABLE numbered (v INT)"
    pair.on_leader(
        *tables, *(f"INSERT INTO {table} VALUES (1), (2), (3)" for table in ("asked", "numbered")), database=name
    )
    pair.replicate()
    pair.on_leader(
        "ALTER TABLE asked ADD c BIGINT DEFAULT (CONNECTION_ID())",
        "ALTER TABLE numbered ADD n INT AUTO_INCREMENT PRIMARY KEY",
        "UPDATE asked SET i = 9 WHERE i = 1",
        database=name,
    )
    pair.replicate()
    theirs, ours = content(leader, name), content(follower, name)
    assert theirs == ours
    # Of all rows it is the one that differs.
    pair.on_follower(f"UPDATE {name}.asked SET c = 0 WHERE i = 2")
    audit = pair.audit(spark, tmp_path / "report")
    assert (audit.exit_status, audit.reasons, audit.schema) == (1, [], [])
    assert [(row.table, row.identity, row.columns) for row in audit.drifted] == [
        ("asked", {"i": '{"SignedInteger":2}'}, ["c"])
    ]


def test_other_tables_than_those_of_innodb_are_refused(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka
) -> None:
    """The leader's by the producer, since its log shows the engine; the follower's by the consumer."""
    name = "other_order"
    pair = pair_of(tmp_path, leader, follower, kafka, name)
    pair.on_leader(
        "CREATE TABLE m (u INT PRIMARY KEY) ENGINE=MyISAM",
        f"ALTER TABLE m {FORMS['a']}",
        "CREATE TABLE t (u INT PRIMARY KEY)",
        database=name,
    )
    line = refused("cdc-producer", pair.source, "--until-current", status=3)
    assert "an order of its own" in line
    run_well("cdc-producer", pair.source, "--until-current", "--skip", line.rpartition(" ")[2])
    pair.replicate()
    pair.on_follower(f"ALTER TABLE {name}.t ENGINE=MyISAM")
    pair.on_leader(
        f"ALTER TABLE t {FORMS['a']}",
        "CREATE TABLE p (u INT PRIMARY KEY) PARTITION BY KEY () PARTITIONS 2",  # of the primary key, whichever that is
        f"ALTER TABLE p {FORMS['a']}",
        database=name,
    )
    run_well("cdc-producer", pair.source, "--until-current")
    line = refused("cdc-consumer", pair.target, "--until-current", status=3)
    assert "may number the rows differently from the leader, the table may be of another engine" in line
    assert "ALTER TABLE t" in line
    pair.on_follower(f"ALTER TABLE {name}.t ENGINE=InnoDB")
    line = refused("cdc-consumer", pair.target, "--until-current", status=3)
    assert "may number the rows differently from the leader, the table has partitions" in line
    assert "ALTER TABLE p" in line
    assert content(leader, name)["t"] == content(follower, name)["t"]
