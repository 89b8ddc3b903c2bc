"""Puts records together that are too large for one Kafka message and were written as several (cdc.kafka.fragments)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.kafka.fragments import HEADER
from cdc.model.partition import partition_name
from cdc.spark.input.local_frame import local_frame
from cdc.spark.input.spans import Span

__all__ = ["put_together"]

_FIELDS = ("sequence", "number", "total", "checksum")
# Where a fragment is missing the value is none of a record, so that the audit does not pass over it.
_WHOLE = """
    size(fragments) = total AND fragments.number = transform(fragments, (f, i) -> CAST(i AS BIGINT))
    AND crc32(whole) = checksum
"""


def put_together(messages: DataFrame, span: Span) -> DataFrame:
    """The records in ``messages`` (side, partition, offset, value, headers), without their headers.

    A record has the offset of its first fragment. One at the span's beginning whose first fragments are before it is
    left out: retention has deleted them, or the record was read by an earlier audit.
    """
    mark = F.expr(f"CAST(get(filter(headers, h -> h.key = '{HEADER}'), 0).value AS STRING)")
    marked = messages.withColumn("mark", mark)
    alone = marked.where("mark IS NULL").select("side", "partition", "offset", "value")
    numbers = F.split("mark", " ")
    fragments = marked.where("mark IS NOT NULL").select(
        "side",
        "partition",
        "offset",
        "value",
        *(F.get(numbers, F.lit(place)).try_cast("bigint").alias(name) for place, name in enumerate(_FIELDS)),
    )
    fragment = F.struct("number", "offset", F.col("value").cast("string").alias("text"))
    grouped = fragments.groupBy("side", "partition", "sequence", "total", "checksum").agg(
        F.array_sort(F.collect_list(fragment)).alias("fragments")
    )
    first = F.col("fragments")[0]
    grouped = grouped.withColumn("whole", F.expr("CAST(array_join(fragments.text, '') AS BINARY)"))
    begins = [{"partition": partition_name(each), "begin": begin} for each, (begin, _) in span.partitions.items()]
    known = F.broadcast(local_frame(messages.sparkSession, begins, "partition STRING, begin BIGINT"))
    cut_off = (first["number"] > 0) & (first["offset"] == F.col("begin"))
    whole = grouped.join(known, "partition").where(~F.coalesce(cut_off, F.lit(False)))
    value = F.when(F.expr(_WHOLE), F.col("whole")).otherwise(F.lit(b""))
    return alone.unionByName(whole.select("side", "partition", first["offset"].alias("offset"), value.alias("value")))
