"""Records in fragments, as the audit reads them: put together, or no record where something is missing."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from cdc.kafka.fragments import FRAGMENT_HEADER, cut
from cdc.spark.input.records import put_together
from cdc.spark.input.small_data import local_frame
from cdc.spark.input.spans import Span

pytestmark = pytest.mark.spark

COLUMNS = "side STRING, partition STRING, offset BIGINT, value STRING, mark STRING"
RECORD = "gr\u00fc\u00dfe \u2028 \U0001f600 " * 5


def fragments(partition: str, begin: int, *, sequence: int) -> list[dict[str, Any]]:
    """The messages of RECORD, some ten of them."""
    return [
        {
            "side": "leader",
            "partition": partition,
            "offset": begin + number,
            "value": text.decode(),
            "mark": mark.decode(),
        }
        for number, (mark, text) in enumerate(cut(RECORD.encode(), 12, sequence=sequence))
    ]


def test_put_together_or_no_record(spark: SparkSession) -> None:
    alone = {"side": "leader", "partition": "t/0", "offset": 5, "value": "whole"}
    cut_off, complete = fragments("t/0", 5, sequence=1)[-2:], fragments("t/0", 20, sequence=2)
    missing, altered = fragments("t/0", 50, sequence=3), fragments("u/0", 100, sequence=4)
    del missing[2]
    altered[1]["value"] = altered[1]["value"].swapcase()
    first = cut_off[0]["offset"]
    unfinished = fragments("u/0", 200, sequence=5)[1:]  # its beginning is missing in the midst of the topic
    at = [each[0]["offset"] for each in (complete, missing, altered, unfinished)]
    rows = [dict(alone, offset=19), *complete, *missing, *altered, *unfinished, *cut_off]
    frame = local_frame(spark, rows, COLUMNS).repartition(3)
    header = F.array(F.struct(F.lit(FRAGMENT_HEADER).alias("key"), F.col("mark").cast("binary").alias("value")))
    frame = frame.withColumn("headers", F.when(F.col("mark").isNotNull(), header)).drop("mark")
    frame = frame.withColumn("value", F.col("value").cast("binary"))
    span = Span({("t", 0): (first, 99), ("u", 0): (100, 300)}, fragmented=True)
    found = {(row["partition"], row["offset"]): bytes(row["value"]) for row in put_together(frame, span).collect()}
    assert found == {
        ("t/0", 19): b"whole",
        ("t/0", at[0]): RECORD.encode(),
        ("t/0", at[1]): b"",
        ("u/0", at[2]): b"",
        ("u/0", at[3]): b"",
    }
