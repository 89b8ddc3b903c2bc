"""What a verdict is held to, and what is told of a drifted follower: samples of each table, all foreign writes."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.config.filters import Filters
from cdc.spark.job.options import Terms
from cdc.spark.report.terminal import terminal
from tests.generators.streams import Stream, Table, both, checkpoint, query
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


def test_exact_asks_no_digest(judged: Judge) -> None:
    """Images in another order, each removed as often as it was added: digests of them add up."""
    leader, follower = history()
    for at, (one, other) in enumerate((("ball", "b"), ("b", "c"), ("c", "d"))):
        leader.transaction(TOY.update(((1, one), (1, other))))
        swapped = (("b", "c"), ("ball", "b"), ("c", "d"))[at]
        follower.transaction(TOY.update(((1, swapped[0]), (1, swapped[1]))), checkpoint(2 + at, 3 + at))
    assert judged(leader, follower).discontinuities == {"leader": 0, "follower": 0}
    audit = judged(leader, follower, terms=Terms(exact=True))
    assert (audit.verdict, audit.discontinuities) == ("no drift", {"leader": 0, "follower": 3})
    assert [(t.table, t.leader_rows) for t in audit.tables] == [("toy", 1), ("zebra", 1)]


def test_what_the_leader_leaves_out_is_not_replicated(judged: Judge) -> None:
    """But what it has logged is compared, whatever its filters are now."""
    leader, follower = history()
    own = Table("reports/daily", ["id"], ["id"])
    follower.transaction(query("CREATE DATABASE reports", "reports", ("CreateDatabase", "reports")))
    follower.transaction(query("CREATE TABLE daily (…)", "reports", ("CreateTable", "reports/daily")))
    follower.transaction(own.add((1,), (2,)))
    follower.transaction(query("CREATE TABLE empty (…)", "reports", ("CreateTable", "reports/empty")))
    audit = judged(leader, follower)
    assert (audit.verdict, audit.drifted_rows, audit.schema_drift) == ("drift", 2, 3)
    for terms in (Terms(), Terms(exact=True)):
        audit = judged(leader, follower, leader_filters=Filters(include_dbs=("flvDb",)), terms=terms)
        assert (audit.verdict, audit.exit_status, audit.drifted_rows, audit.schema_drift) == ("no drift", 0, 0, 0)
        assert [(t.database, t.table, t.rows) for t in audit.not_replicated] == [
            ("reports", "daily", 2),
            ("reports", "empty", 0),
        ]
        assert [t.table for t in audit.tables] == ["toy", "zebra"]
        assert audit.foreign_writes == 4
        told = "leave out: reports.daily (2 rows) and reports.empty (0 rows)."
        assert any(line.endswith(told) for line in terminal(audit))
    follower.transaction(TOY.add((9, "ghost")))
    narrowed = Filters(include_tables=("flvDb.zebra",))
    audit = judged(leader, follower, leader_filters=narrowed)
    assert (audit.verdict, [(row.table, row.kind) for row in audit.drifted]) == ("drift", [("toy", "extra")])
