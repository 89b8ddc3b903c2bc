"""cdc-lake: its tables are the leader's at one sequence, through any statements and kills, for any reader."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.config.profile import load as load_profile
from cdc.lake.__main__ import identity
from cdc.lake.delta import DeltaTables
from cdc.lake.folder import LakeFolder
from cdc.lake.pipeline import Lake, Run
from cdc.spark.frames.messages import Source
from cdc.spark.frames.typed import Options
from tests.harness.pair import Pair
from tests.harness.programs import run_well

pytestmark = [pytest.mark.spark, pytest.mark.integration]


class Opened:
    """A lake in a folder, as a run of cdc-lake has it."""

    def __init__(self, spark: SparkSession, profile: Path, folder: Path, **options: str) -> None:
        self.spark, self.profile, self.path = spark, load_profile(profile), folder
        self.folder = LakeFolder(folder, identity(self.profile, "delta"))
        tables = DeltaTables(spark, folder)
        state = self.folder.load()
        self.lake = Lake(self.folder, tables, self.profile, Options(**options), lambda name: True, state)

    def advance(self, at: int | None = None) -> Run:
        return self.lake.advance(Source.of(self.spark, self.profile), at)

    def rows(self, folder: str) -> Counter[tuple[Any, ...]]:
        return Counter(map(tuple, self.spark.read.format("delta").load(str(self.path / folder)).collect()))


def test_a_lake_follows_its_leader(pair: Pair, spark: SparkSession, tmp_path: Path) -> None:
    database = "a_lake_follows_its_leader"
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20), took TIME(3))",
        "INSERT INTO orders VALUES (1, 'a', '-01:02:03.5'), (2, 'é', NULL), (3, 'c', '00:00:01')",
        "CREATE TABLE bare (n INT, t TEXT)", "INSERT INTO bare VALUES (1, 'x'), (1, 'x'), (2, NULL)",
        "CREATE TABLE untouched (`a b` INT PRIMARY KEY, `c.``d` INT)", "INSERT INTO untouched VALUES (1, 2)",
        "CREATE TABLE later (id INT PRIMARY KEY)",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    lake = Opened(spark, pair.source, tmp_path / "lake")
    run = lake.advance()
    assert (run.counts["written"], run.waiting) == (3, ((database, "later"),))
    assert lake.rows(f"{database}/orders") == Counter({(1, "a", -3723500000): 1, (2, "é", None): 1, (3, "c", 10**6): 1})
    pair.on_leader(
        "UPDATE orders SET id = 4, name = 'd' WHERE id = 3", "DELETE FROM orders WHERE id = 1",
        "INSERT INTO orders VALUES (1, 'again', NULL)", "DELETE FROM orders WHERE id = 2",
        "DELETE FROM bare WHERE n = 1 LIMIT 1", "INSERT INTO later VALUES (7)", "UPDATE untouched SET `c.``d` = 3",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    run = lake.advance()
    assert run.counts == {"kept": 0, "merged": 2, "written": 2, "emptied": 0, "without columns yet": 0, "removed": 0}
    assert lake.rows(f"{database}/orders") == Counter({(1, "again", None): 1, (4, "d", 10**6): 1})
    assert lake.rows(f"{database}/bare") == Counter({(1, "x"): 1, (2, None): 1})
    assert lake.rows(f"{database}/untouched") == Counter({(1, 3): 1})
    pair.on_leader(
        "ALTER TABLE orders DROP COLUMN took, ADD more INT DEFAULT 5, RENAME COLUMN name TO title",
        "TRUNCATE later", "DROP TABLE bare", "RENAME TABLE untouched TO renamed",
        database=database,
    )  # fmt: skip
    run_well("cdc-producer", pair.source, "--until-current")
    run = lake.advance()
    assert run.counts == {"kept": 0, "merged": 0, "written": 2, "emptied": 1, "without columns yet": 0, "removed": 2}
    assert lake.rows(f"{database}/orders") == Counter({(1, "again", 5): 1, (4, "d", 5): 1})
    listed = json.loads((tmp_path / "lake/lake.json").read_text())
    assert listed["sequence"] == run.sequence
    assert [each["table"] for each in listed["tables"]] == ["later", "orders", "renamed"]
    for each in listed["tables"]:
        read = DeltaTable(tmp_path / "lake" / each["folder"])
        note = json.loads(read.history(1)[0]["userMetadata"])["cdc_lake"]
        assert (read.version(), note["sequence"]) == (each["version"], run.sequence)
    orders = DeltaTable(tmp_path / "lake" / database / "orders").to_pyarrow_table()
    assert sorted(orders.to_pylist(), key=lambda row: row["id"]) == [
        {"id": 1, "title": "again", "more": 5}, {"id": 4, "title": "d", "more": 5},
    ]  # fmt: skip
    assert lake.advance().counts["kept"] == 3
