"""What statements do to tables: on Spark and in a lake each table is the leader's, or it is refused by name."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.profile import load as load_profile
from cdc.lake.pipeline import Refused
from cdc.spark import schema
from cdc.spark.frames.history import read_history
from cdc.spark.frames.messages import Source
from cdc.spark.frames.schema_history import existing
from cdc.spark.input.small_data import set_tiny
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
ALTERED = {
    "ADD g INT AS (n + 1) STORED": "refused", "ADD s VARCHAR(9) DEFAULT 'd', ADD KEY (s)": "right",
    "ADD u DATETIME(3) DEFAULT CURRENT_TIMESTAMP(3)": "refused", "MODIFY n SMALLINT": "refused",
    "MODIFY n INT NOT NULL": "refused", "CHANGE n b BIGINT FIRST, RENAME INDEX k TO l, DROP a": "right",
    "CONVERT TO CHARACTER SET utf8mb4": "refused", "RENAME COLUMN n TO a, RENAME COLUMN a TO n": "refused",
}  # fmt: skip
"""ALTERs of a table with rows, and whether it is right then, or refused since nothing logs the values that it has."""


def test_statements_of_all_kinds(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    set_tiny(spark, records=0)
    lake = Opened(spark, pair.source, tmp_path / "lake", "parquet", zero_dates="string")
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


def test_kinds_of_alter(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    """Each table is right in the lake, or refused before anything is written, and then the others are right; one that
    is copied again is right, too, and what is not certain of rows that are gone is no reason."""
    database = "kinds_of_alter"
    names = {f"t{at}": sql for at, sql in enumerate(ALTERED)}
    refused = {(database, name) for name, sql in names.items() if ALTERED[sql] == "refused"}
    create = "(id INT PRIMARY KEY, a VARCHAR(20) CHARACTER SET utf8mb3, n INT, KEY k (n))"
    pair.on_leader(
        "SET SESSION sql_mode = ''", *(f"CREATE TABLE {name} {create}" for name in (*names, "gone")),
        *(f"INSERT INTO {name} VALUES (1, 'é', 1), (2, NULL, NULL)" for name in (*names, "gone")),
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    lake = Opened(spark, pair.source, tmp_path / "lake", "parquet")
    lake.lake.changes = None
    before = lake.advance().sequence
    pair.on_leader(
        "SET SESSION sql_mode = ''", *(f"ALTER TABLE {name} {sql}" for name, sql in names.items()),
        "ALTER TABLE gone ADD g INT AS (n + 1) STORED", "DELETE FROM gone", "INSERT INTO gone (id) VALUES (3)",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    points = list[tuple[str, str]]()
    lake.lake.passed = lambda point, table: points.append((point, table.partition(" ")[0].removeprefix(f"{database}.")))
    with pytest.raises(Refused) as error:
        lake.advance()
    assert set(error.value.names) == refused
    written = {table for point, table in points if point == "before" and not table.startswith("changes")}
    assert written == {"gone", *names} - {name for _, name in refused}
    listed = {held.name for held in lake.folder.load().tables}
    assert listed == {(database, "gone"), *((database, name) for name in names)} - refused
    for name in (name for _, name in listed):
        assert_equal(lake, pair, database, name)
    # Nothing came, so nothing is read again; and what was refused is as it was.
    with pytest.raises(Refused) as again:
        lake.advance()
    assert again.value.run.counts["kept"] == len(listed) and again.value.names == error.value.names
    (behind,) = {json.loads(lake.elsewhere(f"{database}/{name}")[1])["cdc_lake"]["sequence"] for _, name in refused}
    assert behind == before
    copied, dropped = sorted(name for _, name in refused)[:2]
    pair.on_leader(f"DROP TABLE {dropped}", database=database)
    run_well("cdc-producer", pair.source, "--copy", f"{database}.{copied}")
    run_well("cdc-producer", pair.source, "--until-current")
    with pytest.raises(Refused) as less:
        lake.advance()
    assert set(less.value.names) == refused - {(database, copied), (database, dropped)}
    assert_equal(lake, pair, database, copied)
    assert not (tmp_path / "lake" / database / dropped).exists()
    lake.folder.close()


def assert_equal(lake: Opened, pair: Pair, database: str, name: str) -> None:
    with pair.leader.root(charset="utf8mb4") as session, session.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {database}.{name}")
        assert lake.rows(f"{database}/{name}") == Counter(cursor.fetchall()), name
