"""Which tables there are at a moment, and the columns of one, as DataFrames."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.spark.ddl.lineage import lineage
from cdc.spark.frames.messages import Source
from cdc.spark.frames.told import History, existing
from cdc.spark.frames.typed import Options, spark_type
from cdc.spark.frames.versions import Plan
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.records import parse

__all__ = ["columns_of", "tables_of"]

# In a generator, behind which Spark moves no filter: with each one that is moved to where messages are read, it parses
# all of them once more for each field that the filter has.
_COUNTED = "explode_outer(IF({}, array(struct(database, table, sequence, size(rows) AS count)), NULL))"
_SEGMENTS = "database STRING, table STRING, first BIGINT, end BIGINT, owner STRUCT<database: STRING, table: STRING>"


def columns_of(spark: SparkSession, plan: Plan, options: Options) -> DataFrame:
    """A line for each column: position from 1, column, mysql_type, spark_type, key_position (NULL outside of it)."""
    key = plan.key or ()
    rows = [
        {
            "position": at,
            "column": name,
            "mysql_type": kind,
            "spark_type": spark_type(kind, options),
            "key_position": key.index(name) + 1 if name in key else None,
        }
        for at, (name, kind) in enumerate(plan.columns, 1)
    ]
    schema = "position INT, column STRING, mysql_type STRING, spark_type STRING, key_position INT"
    return local_frame(spark, rows, schema)


def tables_of(source: Source, history: History, sequence: int) -> DataFrame:
    """A line for each table: database, table, changes (rows that its records have, since its rows count), and the first
    and the last sequence of these records."""
    found = existing(history, sequence)
    spark = source.spark
    segments = [
        {**_name(each.database, each.table), "first": each.first, "end": each.end, "owner": _name(*each.owner)}
        for each in lineage(found, history.upto(sequence))
        if each.owner is not None and each.owner in found
    ]
    names = {(str(each["database"]), str(each["table"])) for each in segments}
    counts = F.expr(_COUNTED.format(f"valid AND rows IS NOT NULL AND sequence <= {sequence}")).alias("record")
    records = parse(source.of_tables(names)).select(counts).where("record IS NOT NULL").select("record.*")
    within = F.broadcast(local_frame(spark, segments, _SEGMENTS))
    owned = records.join(within, ["database", "table"]).where("sequence >= first AND sequence < end")
    counted = owned.groupBy("owner").agg(
        F.sum("count").alias("changes"), F.min("sequence").alias("first"), F.max("sequence").alias("last")
    )
    counted = counted.select("owner.*", "changes", "first", "last")
    there = local_frame(spark, [_name(*name) for name in sorted(found)], "database STRING, table STRING")
    return there.join(counted, ["database", "table"], "left").fillna(0, ["changes"]).orderBy("database", "table")


def _name(database: str, table: str) -> Mapping[str, str]:
    return {"database": database, "table": table}
