"""Servers that have the names of databases and tables in lower case: their topics are compared by such names."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka as Broker
from cdc.sandbox.server.mysql import MySql
from cdc.spark import table
from tests.checks.compare import content, in_lower_case
from tests.harness.long_runs import in_long_runs
from tests.harness.pair import Pair
from tests.harness.programs import run, run_well
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.spark

LOWER_CASE = "--lower-case-table-names=1"
DATABASE = "Names_Audited"
WORK = (
    "CREATE TABLE Owner (Id INT PRIMARY KEY, Name VARCHAR(20))",
    "CREATE TABLE Pet (Id INT PRIMARY KEY, Owner INT, FOREIGN KEY (Owner) REFERENCES Owner (Id) ON DELETE CASCADE)",
    "CREATE TABLE Left_Out (i INT)",
    "INSERT INTO Owner VALUES (1, 'Diane'), (2, 'Harold'), (3, 'Gwen')",
    "INSERT INTO Pet VALUES (1, 1), (2, 2), (3, 2)",
    "DELETE FROM Owner WHERE Id = 1",
    "CREATE TABLE `Ä*B +` LIKE Owner",
    "INSERT INTO `Ä*B +` SELECT * FROM Owner",
    "CREATE VIEW Pets AS SELECT Id FROM Pet",
    "CREATE PROCEDURE Take(n INT) DELETE FROM Pet WHERE Id = n",
    "RENAME TABLE Owner TO Keeper, `Ä*B +` TO `É*C ~`",
    "CREATE TABLE Again (Id INT)",
    "INSERT INTO Again VALUES (8)",
    "DROP TABLE Again",
    "CREATE TABLE again (Id INT PRIMARY KEY)",
    "INSERT INTO again VALUES (7)",
)


@pytest.mark.parametrize("leader_folds", [False, in_long_runs(True)], ids=["the_follower", "both_servers"])
def test_names_in_lower_case(
    tmp_path: Path,
    spark: SparkSession,
    servers: tuple[MySql, MySql],
    mysql_server: MySqlFactory,
    kafka: Broker,
    leader_folds: bool,
) -> None:
    """What differs but in the case of names is drift, is asked for by the leader's names, and is repaired."""
    leader = mysql_server(LOWER_CASE, server_id=31) if leader_folds else servers[0]
    pair = Pair.make(
        tmp_path, leader, mysql_server(LOWER_CASE, server_id=32), kafka, name=f"names_{leader_folds}".lower(),
        source={"filters": {"include_dbs": [DATABASE]}},
        target={"filters": {"exclude_tables": [f"{DATABASE}.Left_*"]}},
        capture={"filters": {"include_dbs": [DATABASE, "cdc"]}},
    )  # fmt: skip
    pair.on_leader(f"CREATE DATABASE {DATABASE}")
    pair.on_leader(*WORK, database=DATABASE)
    pair.replicate()
    checked = run("cdc-consumer", pair.target, "--check", "--leader", pair.source)
    assert (checked.returncode, "definitions of 4 tables" in checked.stdout) == (0, True), checked.stdout
    pair.on_follower("DELETE FROM KEEPER WHERE Id = 3", "DELETE FROM `É*C ~` WHERE Id = 2", database=DATABASE)
    audit = pair.audit(spark, tmp_path / "drifted", consumer=True)
    assert (audit.reasons, audit.schema, audit.foreign_writes) == ([], [], 2)
    assert [(each.name[1], each.leader_rows, each.missing, each.extra + each.different) for each in audit.tables] == [
        ("again", 1, 0, 0), ("keeper", 2, 1, 0), ("pet", 2, 0, 0), ("é*c ~", 2, 1, 0),
    ]  # fmt: skip
    asked = run("cdc-repair", pair.source, "--report", tmp_path / "drifted")
    assert (asked.returncode, asked.stdout.count("by their keys")) == (0, 2), asked
    pair.replicate()
    audit = pair.audit(spark, tmp_path / "repaired", consumer=True)
    assert (audit.verdict, audit.reasons, audit.drifted_rows) == ("no drift", [], 0)
    run_well("cdc-producer", pair.source, "--copy", "names_AUDITED.Pet")
    pair.replicate()
    ours, theirs = (in_lower_case(content(server, DATABASE)) for server in (leader, pair.follower))
    assert ours.pop("left_out") is not None
    assert ours == theirs
    if not leader_folds:
        return
    assert [tuple(row) for row in table(spark, pair.source, f"{DATABASE}.Pet").orderBy("Id").collect()] == [
        (2, 2), (3, 2)
    ]  # fmt: skip
