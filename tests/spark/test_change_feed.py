"""A change data feed of streams made by hand: applied as docs/tables.md says, it makes the table."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.spark.ddl.lineage import END
from cdc.spark.frames.alteration import Origin
from cdc.spark.frames.api import feed_of_table
from cdc.spark.frames.rows import changed_rows, left_rows, typed_rows
from cdc.spark.frames.typed import Options
from cdc.spark.frames.versions import Plan, Stretch
from cdc.spark.input.records import LEADER
from tests.generators.streams import Stream, Table, messages

NAME, COLUMNS = ("d", "t"), ("id", "n")
TABLE = Table("d/t", list(COLUMNS), key=["id"])
ADDS = "_change_type IN ('insert', 'update_postimage')"


def plan(*, keyed: bool) -> Plan:
    stretch = Stretch(NAME, 0, END, COLUMNS, ("id",) if keyed else (), tuple(map(Origin, COLUMNS)))
    return Plan(NAME, (("id", "int"), ("n", "int")), ("id",), keyed, (stretch,))


def applied(feed: DataFrame) -> DataFrame:
    """Of each key the last row counts, if it adds one."""
    last = feed.groupBy("id").agg(
        F.max_by(F.struct("n", F.expr(ADDS).alias("adds")), F.expr(f"struct(_commit_version, {ADDS})")).alias("row")
    )
    return last.where("row.adds").select("id", "row.n")


def test_the_feed_of_a_copy_amid_changes(spark: SparkSession) -> None:
    """A row that is changed while the table is copied comes again with its chunk, in which it is as it was then; a row
    that was moved to another key is gone under the first; and a repair is no change of the leader."""
    stream = Stream()
    stream.transaction(TABLE.chunk(None, (2,), (1, 10), (2, 20)))
    stream.transaction(TABLE.update(((3, 30), (3, 31)), ((2, 20), (5, 20))), TABLE.add((6, 60)), TABLE.delete((1, 10)))
    stream.transaction(TABLE.update(((5, 20), (2, 21)), ((6, 60), (5, 61))))
    stream.transaction(TABLE.chunk((2,), None, (3, 31), (4, 40), (5, 61)))
    stream.transaction(TABLE.repair([(2,)], (2, 21)))
    stream.transaction(TABLE.update(((4, 40), (4, None))))
    read = messages(spark, {LEADER: stream})
    upto = 7
    feed = feed_of_table(read, plan(keyed=False), Options(), since=0, upto=upto)
    wanted = plan(keyed=True)
    table = typed_rows(left_rows(changed_rows(read, wanted, since=0, upto=upto), wanted), wanted, Options())
    rows = {(row.id, row.n) for row in applied(feed).collect()}
    assert rows == {(2, 21), (3, 31), (4, None), (5, 61)}
    assert {(row.id, row.n) for row in table.collect()} == rows
    kinds = sorted((row._commit_version, row._change_type) for row in feed.where("_commit_version > 4").collect())
    assert kinds == [(5, "insert")] * 3 + [(7, "update_postimage"), (7, "update_preimage")]
