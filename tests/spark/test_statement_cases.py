"""What statements do to tables: on Spark and in a lake each table is the leader's, or it is refused by name."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load as load_profile
from cdc.lake.pipeline import Refused
from cdc.spark import schema
from cdc.spark.frames.history import read_history
from cdc.spark.frames.messages import Source
from cdc.spark.frames.told import existing
from cdc.spark.input.one_part import set_tiny
from tests.checks.exact import Shown
from tests.checks.folded import Rows, shown
from tests.checks.typed import server_row, typed_row
from tests.generators.random_tables import LAX
from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.spark.test_lake import Opened
from tests.spark.test_tables import Held, told

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DATABASE = "statements_of_all_kinds"
ONE = "(id INT PRIMARY KEY, v INT)"
PARTS = f"{ONE} PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (20))"
BEFORE = (
    f"CREATE TABLE staged {PARTS}", f"CREATE TABLE stage {ONE}", "INSERT INTO stage VALUES (1, 1), (2, 2)",
    f"CREATE TABLE part {PARTS}", f"CREATE TABLE alone {ONE}", "INSERT INTO alone VALUES (1, 1), (2, 2)",
    f"CREATE TABLE emptied {PARTS}", "INSERT INTO emptied VALUES (1, 1), (11, 11)",
    f"CREATE TABLE moved {PARTS}", "INSERT INTO moved VALUES (1, 1), (11, 11)",
    "CREATE TABLE first (id INT PRIMARY KEY, a INT)", "INSERT INTO first VALUES (1, 1)",
    "CREATE TABLE second (id INT PRIMARY KEY, b TEXT)", "INSERT INTO second VALUES (2, 'x')",
    "CREATE TABLE again (id INT PRIMARY KEY, a INT NOT NULL)", "INSERT INTO again VALUES (1, 5), (2, 6)",
    "CREATE TABLE nullable (a INT UNIQUE, d DATE)",
    "INSERT INTO nullable VALUES (NULL, 0), (NULL, 0), (NULL, '2026-02-00'), (1, NULL)",
    "CREATE TABLE indexed (a INT NOT NULL, b INT)", "INSERT INTO indexed VALUES (1, 1), (2, 2)",
    "CREATE TABLE computed (a VARCHAR(9) CHARACTER SET latin1, n INT, l INT AS (LENGTH(a)))",
    "CREATE TABLE computed_too LIKE computed", "CREATE TABLE plain (a VARCHAR(9) CHARACTER SET latin1, l INT)",
    *(f"INSERT INTO {each} (a) VALUES ('é')" for each in ("computed", "computed_too", "plain")),
    "CREATE VIEW shown AS SELECT * FROM again", "RENAME TABLE shown TO seen",
)  # fmt: skip
AFTER = (
    "ALTER TABLE staged EXCHANGE PARTITION p0 WITH TABLE stage", "DROP TABLE stage",
    "ALTER TABLE part EXCHANGE PARTITION p0 WITH TABLE alone", "INSERT INTO part VALUES (15, 15)",
    "ALTER TABLE emptied TRUNCATE PARTITION p0", "INSERT INTO emptied VALUES (2, 2)",
    "ALTER TABLE moved REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (50))",
    "INSERT INTO moved VALUES (30, 3)",
    "RENAME TABLE first TO aside, second TO first, aside TO second", "INSERT INTO first VALUES (7, 'seven')",
    "DROP TABLE again", "CREATE TABLE again (id INT NOT NULL, a INT PRIMARY KEY)",
    "INSERT INTO again VALUES (1, 7), (1, 8)",
    "DELETE FROM nullable WHERE d = 0 LIMIT 1", "UPDATE nullable SET d = '0000-00-00' WHERE a = 1",
    *(f"ALTER TABLE {each} MODIFY a TEXT CHARACTER SET utf8mb4" for each in ("computed", "computed_too", "plain")),
    "CREATE UNIQUE INDEX u ON indexed (a)", "UPDATE indexed SET b = 8 WHERE a = 1",
)  # fmt: skip
EXCHANGED = {"staged", "part", "alone"}


def test_statements_of_all_kinds(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    set_tiny(spark, records=0)
    lake = Opened(spark, pair.source, tmp_path / "lake", "delta", zero_dates="string")
    lake.left_out = {(DATABASE, each) for each in ("stage", "alone", "emptied", "moved", "nullable")}
    pair.on_leader(LAX, *BEFORE, database=DATABASE)
    run_well("cdc-producer", pair.source, "--until-current")
    assert lake.advance().waiting == tuple((DATABASE, each) for each in ("part", "staged"))
    lake.left_out.clear()
    pair.on_leader(LAX, *AFTER, database=DATABASE)
    run_well("cdc-producer", pair.source, "--until-current")
    source = Source.of(spark, load_profile(pair.source))
    history = read_history(source)
    with pair.leader.root(charset="utf8mb4") as session, session.cursor() as cursor:
        cursor.execute(LAX)
        held = shown(cursor, DATABASE)
    assert {name for database, name in existing(history, source.newest) if database == DATABASE} == held.keys()
    found = {name: told(source, history, (DATABASE, name), source.newest) for name in held}
    refused = {name: each for name, each in found.items() if isinstance(each, str)}
    assert refused.keys() == EXCHANGED | {"emptied", "computed", "computed_too"}
    assert all("exchanged rows of two tables" in refused[name] for name in EXCHANGED)
    with pytest.raises(Refused) as error:
        lake.advance()
    assert {name for _, name in error.value.names} == refused.keys()
    lake.left_out |= set(error.value.names)
    assert lake.advance().waiting == ()
    for name, each in found.items():
        if isinstance(each, Held):
            assert each.rows == on_server(held[name], each.types), name
            there = lake.lines(f"{DATABASE}/{name}")
            assert Counter(typed_row(row, each.types) for row in there) == each.rows, name
    assert [row.key_position for row in schema(spark, pair.source, f"{DATABASE}.indexed").collect()] == [1, None]
    lake.folder.close()


def on_server(rows: Rows, types: list[str]) -> Counter[tuple[Shown, ...]]:
    here = Counter[tuple[Shown, ...]]()
    for row, times in rows.items():
        here[server_row(row, types)] += times
    return here
