"""Delta's change data feed of a lake: folded from its first version on it gives the table."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.lake.formats.delta import DeltaTables
from cdc.lake.pipeline import Refused
from tests.harness.pair import Pair
from tests.harness.programs import run_well
from tests.spark.test_lake import Killed, Opened

pytestmark = [pytest.mark.spark, pytest.mark.integration]

DATABASE = "a_change_data_feed"
ORDERS = f"{DATABASE}/orders"


@pytest.mark.long
def test_a_change_data_feed(pair: Pair, lake_spark: SparkSession, tmp_path: Path) -> None:
    """`make test` has test_lake.test_a_lake_follows_its_leader, of a lake without a feed."""

    def opened(*, feed: bool = True) -> Opened:
        lake = Opened(lake_spark, pair.source, tmp_path / "lake", "delta")
        lake.lake.changes = None
        assert isinstance(lake.lake.tables, DeltaTables)
        if feed:
            lake.lake.tables.change_feed, lake.lake.prepare = True, lake.lake.tables.begin_feed
        return lake

    def changed(*statements: str) -> None:
        pair.on_leader(*statements, database=DATABASE)
        run_well("cdc-producer", pair.source, "--until-current")

    changed(
        "CREATE TABLE orders (id INT PRIMARY KEY, n INT)", "INSERT INTO orders VALUES (1, 1), (2, 2), (3, 3)",
        "CREATE TABLE own (id INT PRIMARY KEY, _change_type INT)", "INSERT INTO own VALUES (1, 1)",
        "CREATE TABLE hidden (id INT PRIMARY KEY, __is_cdc INT)", "INSERT INTO hidden VALUES (1, 1)",
    )  # fmt: skip
    lake = opened(feed=False)
    lake.advance()
    changed("CREATE TABLE other (id INT PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    lake.advance()  # the lake is further than the note of the table
    orders = f"delta.`{lake.folder.folder.at(ORDERS)}`"
    kept = "delta.deletedFileRetentionDuration", "interval 20 days"  # Delta 4.1: no more than the log's 30
    lake_spark.sql(f"ALTER TABLE {orders} SET TBLPROPERTIES ('{kept[0]}' = '{kept[1]}')")
    lake.folder.close()

    lake = opened()
    changed(
        "UPDATE orders SET n = 20 WHERE id = 2", "DELETE FROM orders WHERE id = 3", "INSERT INTO orders VALUES (4, 4)"
    )
    lake.folder.save = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):  # between the commit that begins the feed and the state that lists it
        lake.advance()
    lake.folder.close()
    lake = opened()
    run = lake.advance()
    assert (run.counts["merged"], run.counts["written"], run.counts["kept"]) == (1, 0, 3)
    assert not lake.elsewhere(ORDERS)[0] > 3, "one commit to begin with, one for the rows"
    changed("CREATE INDEX n ON orders (n)", "UPDATE orders SET n = NULL WHERE id = 1")
    assert lake.advance().counts["written"] == 1, "as a whole"
    assert kept in map(tuple, lake_spark.sql(f"SHOW TBLPROPERTIES {orders}").collect()), "set by the lake's owner"
    changed("UPDATE orders SET n = 5 WHERE id = 1")
    assert lake.advance().counts["merged"] == 1
    assert_feed_gives_the_table(lake, begin=2, rows={1: 1, 2: 2, 3: 3})
    assert lake.rows(ORDERS) == Counter([(1, 5), (2, 20), (4, 4)])
    changed("TRUNCATE own", "UPDATE hidden SET __is_cdc = 2")
    with pytest.raises(Refused, match=f": {DATABASE}.hidden;"):
        lake.advance()
    assert lake.rows(f"{DATABASE}/own") == Counter(), "emptied, without a feed"
    changed("INSERT INTO own VALUES (2, 2)")
    with pytest.raises(Refused, match=f"{DATABASE}.hidden, {DATABASE}.own"):
        lake.advance()
    lake.folder.close()


def assert_feed_gives_the_table(lake: Opened, *, begin: int, rows: dict[int, int | None]) -> None:
    """``rows`` are those of version ``begin``, from which on the table has its feed."""
    path = lake.folder.folder.at(ORDERS)
    feed = (
        lake.spark.read.option("readChangeFeed", "true").option("startingVersion", begin + 1).format("delta").load(path)
    )
    held = Counter(rows.items())
    for version in sorted({row["_commit_version"] for row in feed.collect()}):
        of_version = feed.where(f"_commit_version = {version}").collect()
        held -= Counter(
            (row["id"], row["n"]) for row in of_version if row["_change_type"] in ("delete", "update_preimage")
        )
        held += Counter(
            (row["id"], row["n"]) for row in of_version if row["_change_type"] in ("insert", "update_postimage")
        )
    assert held == lake.rows(ORDERS)


def killed(_: object) -> None:
    raise Killed
