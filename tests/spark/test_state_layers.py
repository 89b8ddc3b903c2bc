"""The layers of a state: only pages with rows that are looked up are read, and what is merged stays small."""

from pathlib import Path
from random import Random

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.spark.folders import LocalFolder
from cdc.spark.input.small_data import set_tiny
from cdc.spark.state.coverage import PAGES, rows_of, sorted_layer
from cdc.spark.state.parquet_parts import write
from cdc.spark.state.store import StateStore
from tests.generators.frames import frame_of
from tests.harness.seed import SEED
from tests.spark.test_state import TOPICS, frames, kept

pytestmark = pytest.mark.spark

ROWS = 20_000


@pytest.mark.parametrize("tiny", [True, False])
def test_only_pages_with_rows_that_are_looked_up_are_read(spark: SparkSession, tmp_path: Path, *, tiny: bool) -> None:
    set_tiny(spark, records=0 if tiny else 1 << 40)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    rows = spark.range(ROWS).selectExpr("xxhash64(id) AS hash", "1 AS generation", "array(string(id)) AS image")
    write(sorted_layer(rows), LocalFolder(tmp_path), "rows", option="", pages=PAGES)
    chance = Random(SEED)
    wanted = {row["hash"]: row["image"] for row in rows.collect() if chance.random() < 20 / ROWS}
    layers = spark.read.parquet(LocalFolder(tmp_path).uri("rows"))
    found = rows_of(layers, frame_of(spark, [*((each,) for each in wanted), (7,)], "hash BIGINT"), few=True)
    assert {row["hash"]: row["image"] for row in found.collect()} == wanted
    assert len(wanted) <= scanned(found) <= 128 * (len(wanted) + 1)
    none = rows_of(layers, frame_of(spark, [], "hash BIGINT"), few=True)
    assert none.collect() == []


def scanned(frame: DataFrame) -> int:
    """The number of rows that were read from files for ``frame``, which was collected."""
    [scan] = [leaf for leaf in _leaves(frame._jdf.queryExecution().executedPlan()) if "FileScan" in leaf.toString()]
    return int(scan.metrics().apply("numOutputRows").value())


def _leaves(plan: object) -> list[object]:
    found = plan.collectLeaves()  # type: ignore[attr-defined]
    return [found.apply(at) for at in range(found.size())]


def test_layers_are_merged_by_size(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A large layer above the first is left alone while small ones come, and the rows above are counted."""
    monkeypatch.setattr("cdc.spark.state.parquet_parts._MOST_GENERATIONS", 3)
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    state = StateStore.open(spark, tmp_path, {"format": 1})
    state.save(None, frames(spark, 0, rows=range(3000)), TOPICS)
    state.save(state.load(TOPICS), frames(spark, 1, rows=range(2500), touched=True), TOPICS)
    for upto in range(2, 5):
        state.save(state.load(TOPICS), frames(spark, upto, rows=[upto], touched=True), TOPICS)
    assert kept(tmp_path)["parts"]["rows"] == [1, 2, 5]
    assert [kept(tmp_path)[name] for name in ("rows", "above")] == [3000, 2503]
    held = state.load(TOPICS)
    assert held is not None
    some = frame_of(spark, [(each,) for each in (2, 3, 4, 7, 2600)], "hash BIGINT")
    found = {row["hash"]: row["net"] for row in rows_of(held.layers, some, few=True).collect()}
    assert found == {2: 2, 3: 3, 4: 4, 7: 1, 2600: 0}
    state.close()
