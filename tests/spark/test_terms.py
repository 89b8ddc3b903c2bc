"""What a verdict is held to, and what is told of a drifted follower: samples of each table, all foreign writes."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.spark.report.renderers import terminal
from tests.generators.streams import Stream, Table, both, query
from tests.spark.conftest import Judge

pytestmark = pytest.mark.spark

TOY = Table("flvDb/toy", ["id", "name"], ["id"])
ZEBRA = Table("flvDb/zebra", ["id", "name"], ["id"])
CREATE = query("CREATE DATABASE flvDb", "flvDb", ("CreateDatabase", "flvDb"))


def history() -> tuple[Stream, Stream]:
    return both([CREATE], [TOY.add((1, "ball"))], [ZEBRA.add((1, "stripe"))])


def test_each_drifted_table_has_its_samples(judged: Judge, spark: SparkSession, tmp_path: Path) -> None:
    leader, follower = history()
    follower.transaction(TOY.add(*((number, "ghost") for number in range(10, 310))))
    for number in range(130):
        follower.transaction(ZEBRA.add((10 + number, "ghost")) if number < 2 else ZEBRA.update(((1, "a"), (1, "b"))))
    audit = judged(leader, follower)
    of_table = [row.table for row in audit.drifted]
    assert of_table == ["toy"] * 97 + ["zebra"] * 3
    assert audit.drifted_rows == 303
    lines = "\n".join(terminal(audit))
    assert lines.count("extra in flvDb.zebra") == 2
    assert "… 130 foreign writes in all, see foreign.parquet in the report" not in lines
    assert "… 131 foreign writes in all, see foreign.parquet in the report" in lines
    rows = spark.read.parquet((tmp_path / "foreign.parquet").as_uri()).orderBy("sequence").collect()
    assert (len(rows), len(audit.foreign), rows[0]["rows"]) == (131, 100, 300)
    assert [row["transaction"] for row in rows[:100]] == [each.transaction for each in audit.foreign]
    assert rows[0]["tables"] == ["flvDb.toy"]
