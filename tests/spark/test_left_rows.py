"""The rows of a table that remain after all changes of them."""

import pytest
from pyspark.sql import SparkSession

from cdc.spark.ddl.lineage import END
from cdc.spark.frames.alteration import Origin
from cdc.spark.frames.rows import changed_rows, left_rows
from cdc.spark.frames.versions import Plan, Stretch
from cdc.spark.input.records import LEADER
from tests.generators.streams import Stream, Table, messages

pytestmark = pytest.mark.spark


def test_a_repair_adds_no_rows_to_a_table_that_had_no_key_at_first(spark: SparkSession) -> None:
    """CREATE UNIQUE INDEX gave it a key, by which the repair names rows, still counted by all of their values."""
    leader, columns = Stream(), ["id", "v"]
    leader.transaction(Table("db/t", columns).add((1, "a"), (2, "b"), (2, "b")))
    leader.transaction(Table("db/t", columns, ["id"]).repair([(1,), (3,)], (1, "a")))
    stretch = Stretch(("db", "t"), 0, END, tuple(columns), (), tuple(map(Origin, columns)))
    plan = Plan(("db", "t"), (("id", "int"), ("v", "text")), ("id",), keyed=False, stretches=(stretch,))
    changed = changed_rows(messages(spark, {LEADER: leader}), plan, since=0, upto=9)
    found = sorted(tuple(row["image"]) for row in left_rows(changed, plan).collect())
    assert found == [('{"SignedInteger":1}', '{"String":"a"}'), *[('{"SignedInteger":2}', '{"String":"b"}')] * 2]
