"""Tables whose small files are merged, and that go on: as they were, and no table is written as a whole for it."""

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.harness.heap import sessions_of
from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.spark.test_lake import Killed, Opened, needs_iceberg

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.long]

FOLDERS = ("{0}/orders", "_history/{0}/orders")
RUNS = 6  # Iceberg merges five files or more


def test_a_maintained_lake(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    goes_on(pair, lake_spark, tmp_path, "delta", "a_maintained_lake")


@needs_iceberg
def test_a_maintained_iceberg_lake(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    goes_on(pair, lake_spark, tmp_path, "iceberg", "a_maintained_iceberg_lake")


def goes_on(pair: Pair, lake_spark: SparkSession, tmp_path: Path, form: str, database: str) -> None:
    folders = [each.format(database) for each in FOLDERS]
    pair.on_leader(
        "CREATE TABLE orders (id INT PRIMARY KEY, name VARCHAR(20))", "CREATE TABLE idle (id INT PRIMARY KEY)",
        "INSERT INTO idle VALUES (1)", database=database,
    )  # fmt: skip
    lake = Opened(lake_spark, pair.source, tmp_path / "lake", form)
    for number in range(RUNS):
        changed(pair, database, f"INSERT INTO orders VALUES ({number}, 'a')")
        lake.advance()
    before = [(files_of(lake, each), texts(lake, each)) for each in folders]
    sequence = lake.lake.state.sequence
    lake.lake.maintain()
    for folder, (files, rows) in zip(folders, before, strict=True):
        assert files_of(lake, folder) < files
        assert texts(lake, folder) == rows
    for each in json.loads((tmp_path / "lake/lake.json").read_text())["tables"]:
        if each["table"] == "orders":  # a reader finds the version that has the merged files, and its sequence
            version, note, _ = lake.elsewhere(each["folder"])
            assert (version, json.loads(note)["cdc_lake"]["sequence"]) == (each["version"], sequence)
    assert lake.advance().counts["kept"] == 2
    changed(pair, database, "UPDATE orders SET name = 'b' WHERE id = 1")
    run = lake.advance()
    assert (run.counts["merged"], run.counts["kept"], run.counts["written"]) == (1, 1, 0)
    sessions = sessions_of(lake_spark)
    for number in range(RUNS):
        changed(pair, database, f"INSERT INTO orders VALUES ({RUNS + number}, 'a')")
        lake.advance()
    assert sessions_of(lake_spark) == sessions  # runs leave nothing in the heap that grows with their number
    lake.lake.passed = killed
    with pytest.raises(Killed):
        lake.lake.maintain()
    lake.folder.close()
    lake = Opened(lake_spark, pair.source, tmp_path / "lake", form)
    changed(pair, database, "DELETE FROM orders WHERE id = 0")
    run = lake.advance()
    assert (run.counts["merged"], run.counts["kept"], run.counts["written"]) == (1, 1, 0)
    assert lake.rows(folders[0]) == Counter([(1, "b"), *((number, "a") for number in range(2, 2 * RUNS))])
    lake.folder.close()


def files_of(lake: Opened, folder: str) -> int:
    return lake.read(folder).select(F.input_file_name()).distinct().count()


def texts(lake: Opened, folder: str) -> list[str]:
    return sorted(map(repr, lake.lines(folder)))


def changed(pair: Pair, database: str, statement: str) -> None:
    pair.on_leader(statement, database=database)
    run_well("cdc-producer", pair.source, "--until-current")


def killed(point: str, table: str) -> None:
    if point == "maintained" and table.endswith("orders"):
        raise Killed
