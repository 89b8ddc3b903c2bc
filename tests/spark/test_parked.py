"""A follower with parked tables: the audit gives no verdict while they wait, and takes none of the consumer's notes
for a foreign write.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.long_runs import LONG
from tests.harness.pair import Pair
from tests.harness.programs import begin_now, refused, run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


def test_parked_tables_are_not_compared_until_they_are_right_again(
    tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka, spark: SparkSession
) -> None:
    """After --retry-parked there is no drift. Long runs park both tables again, with a statement, and audit once more
    while the first of them is copied, and when both are.
    """
    name = "audited_parked"
    only = {"producer": {"start": "now"}, "filters": {"include_dbs": [name, "cdc"]}}
    parks = {"consumer": {"on_refused": "park", "on_conflict": "stop"}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name=name, target=parks, **only)
    begin_now(pair.source, leader)
    begin_now(pair.capture, follower)
    columns = "(id INT PRIMARY KEY, n INT UNIQUE)"
    pair.on_leader(f"CREATE DATABASE {name}", *(f"CREATE TABLE {name}.{table} {columns}" for table in "abc"))
    pair.replicate()
    pair.on_follower(f"INSERT INTO {name}.a VALUES (9, 1)")
    both = "BEGIN", "INSERT INTO b VALUES (1, 1)", "INSERT INTO a VALUES (2, 2)", "COMMIT"
    pair.on_leader("INSERT INTO c VALUES (1, 1)", "INSERT INTO a VALUES (1, 1)", *both, database=name)
    pair.replicate()
    by_hand = [f"{name}.a"]
    assert audited(pair, spark, tmp_path / "parked") == ("could not judge", 2, {"a": 5, "b": 6}, by_hand)
    pair.on_follower(f"DELETE FROM {name}.a WHERE id = 9")
    pair.replicate("--retry-parked")
    by_hand += [f"{name}.a"]
    assert audited(pair, spark, tmp_path / "applied") == ("no drift", 0, {}, by_hand)
    if not LONG:
        return
    pair.on_follower(f"INSERT INTO {name}.a VALUES (9, 4)")
    pair.on_leader(
        "INSERT INTO a VALUES (4, 4)", "ALTER TABLE a ADD more INT", "BEGIN", "INSERT INTO b VALUES (4, 4)",
        "INSERT INTO a VALUES (5, 5, 5)", "COMMIT", "INSERT INTO c VALUES (2, 2)", database=name,
    )  # fmt: skip
    pair.replicate()
    assert "a statement on it was left out" in refused("cdc-consumer", pair.target, "--retry-parked")
    pair.on_follower("ALTER TABLE a ADD more INT", database=name)  # the words of the statement that was left out
    run_well("cdc-producer", pair.source, "--until-current", "--copy", f"{name}.a")
    pair.on_leader(f"INSERT INTO {name}.a VALUES (3, 3, 3)")
    pair.replicate()
    by_hand += [f"{name}.a", name]  # a statement is listed with its database
    assert audited(pair, spark, tmp_path / "half")[::3] == ("could not judge", by_hand)
    run_well("cdc-producer", pair.source, "--until-current", "--copy", f"{name}.b")
    pair.replicate()
    assert audited(pair, spark, tmp_path / "copied") == ("no drift", 0, {}, by_hand)


def audited(pair: Pair, spark: SparkSession, folder: Path) -> tuple[str, int, dict[str, int | None], list[str]]:
    """The verdict, the exit status, the tables that are not compared, and the tables of each foreign write."""
    audit = pair.audit(spark, folder, consumer=True)
    written = [table for write in audit.foreign for table in write.tables]
    return audit.verdict, audit.exit_status, {each.table: each.parked for each in audit.under_copy}, written
