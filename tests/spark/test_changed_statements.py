"""Statements that the follower executes in another form: the servers agree, and the audit calls that no drift."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, refused, run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_tables_of_tablespaces_that_the_follower_has_not(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    name = "own_files"
    only = {"producer": {"start": "now"}, "filters": {"include_dbs": [name, "cdc"]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, **only)
    begin_now(pair.source, leader)
    begin_now(pair.capture, follower)
    pair.on_leader(f"CREATE TABLESPACE `{name} 1` ADD DATAFILE '{name}.ibd'", f"CREATE DATABASE {name}")
    pair.on_leader(
        f"CREATE TABLE a (tablespace INT PRIMARY KEY) COMMENT 'TABLESPACE x', TABLESPACE = `{name} 1`",
        "CREATE TABLE b (i INT PRIMARY KEY)",
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (2)",
        f"ALTER TABLE b TABLESPACE `{name} 1`, ADD COLUMN j INT DEFAULT 3",
        "CREATE TABLE c LIKE a",
        "INSERT INTO b VALUES (4, 4)",
        f"CREATE TABLE d (i INT PRIMARY KEY) TABLESPACE `{name} 1` SELECT i, j FROM b",
        "ALTER TABLE a TABLESPACE innodb_file_per_table",
        database=name,
    )
    log = pair.replicate()
    assert log.count(f'changes="TABLESPACE {name} 1 to innodb_file_per_table"') == 3
    theirs, ours = content(leader, name), content(follower, name)
    for table in "abcd":
        assert theirs[table]["rows"] == ours[table]["rows"], table
    assert "TABLESPACE `innodb_file_per_table`" in ours["b"]["definition"]
    assert pair.audit(spark, tmp_path / "report").exit_status == 0
    pair.on_leader(f"DROP DATABASE {name}", f"DROP TABLESPACE `{name} 1`")


def test_tables_of_engines_without_transactions(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    name = "as_innodb"
    only = {"producer": {"start": "now"}, "filters": {"include_dbs": [name, "cdc"]}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, **only, target={"consumer": {"engine": "InnoDB"}})
    begin_now(pair.source, leader)
    begin_now(pair.capture, follower)
    pair.on_leader(f"CREATE DATABASE {name}")
    pair.on_leader(
        "CREATE TABLE a (i INT PRIMARY KEY, t TEXT, g GEOMETRY NOT NULL, FULLTEXT KEY (t), SPATIAL KEY (g)) "
        "ENGINE=MyISAM ROW_FORMAT=FIXED PACK_KEYS=1 DELAY_KEY_WRITE=1 CHECKSUM=1 KEY_BLOCK_SIZE=1024",
        "INSERT INTO a VALUES (1, 'x', POINT(1, 2)), (2, 'y', POINT(3, 4))",
        "UPDATE a SET t = 'z' WHERE i = 2",
        "CREATE TABLE b LIKE a",
        "INSERT INTO b SELECT * FROM a",
        "DELETE FROM a WHERE i = 1",
        "CREATE TABLE c (i INT, KEY (i) USING HASH) ENGINE=MEMORY",
        "INSERT INTO c VALUES (1), (1), (NULL)",
        "DELETE FROM c WHERE i = 1 LIMIT 1",
        "CREATE TABLE d (i INT PRIMARY KEY AUTO_INCREMENT, t TEXT) ENGINE=ARCHIVE",
        "INSERT INTO d (t) VALUES ('x'), ('y')",
        "CREATE TABLE e (i INT PRIMARY KEY)",
        "INSERT INTO e VALUES (1)",
        "ALTER TABLE e ENGINE=MyISAM, ADD j INT DEFAULT 5",
        "BEGIN",
        "INSERT INTO e VALUES (2, 6)",
        "ROLLBACK",
        "ALTER TABLE a ROW_FORMAT=DYNAMIC, DISABLE KEYS",
        database=name,
    )
    assert pair.replicate().count('changes="ENGINE ') == 4
    theirs, ours = content(leader, name), content(follower, name)
    for table in "abcde":
        assert theirs[table]["rows"] == ours[table]["rows"], table
        assert "ENGINE=InnoDB" in ours[table]["definition"], table
    assert len(ours["e"]["rows"]) == 2  # what MyISAM keeps of a transaction that was rolled back
    assert pair.audit(spark, tmp_path / "report").exit_status == 0
    pair.on_leader("CREATE TABLE f (i INT, n INT AUTO_INCREMENT, KEY (i, n)) ENGINE=MyISAM", database=name)
    run_well("cdc-producer", pair.source, "--until-current")
    line = refused("cdc-consumer", pair.target, "--until-current", status=3)
    assert "(MySQL error 1075)" in line
    assert "one more KEY that begins with the AUTO_INCREMENT column" in line
    assert " --skip " in line
