"""Reads the values of messages of which the places in Kafka are known, with memory for a bit each.

Which messages of a partition are wanted is in bitmaps of their offsets, of 4 kB for 32,768 of them, which each task
gets: 122 MB for a thousand million messages. A join by the offsets would write the values of all messages to disk.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

__all__ = ["values_at"]

# Offsets begin with 0, and the numbers that bitmaps are made of with 1.
_BUCKET, _BIT = "bitmap_bucket_number(offset + 1)", "bitmap_bit_position(offset + 1)"
_IS_SET = f"getbit(CAST(conv(hex(substr(bits, int({_BIT} div 8) + 1, 1)), 16, 10) AS BIGINT), int({_BIT} % 8)) = 1"


def values_at(messages: DataFrame, places: DataFrame) -> DataFrame:
    """Of the ``messages`` (partition, offset, value) those whose partition and offset ``places`` has, each once."""
    wanted = places.groupBy(F.col("partition").alias("of"), F.expr(_BUCKET).alias("bucket"))
    bitmaps = wanted.agg(F.expr(f"bitmap_construct_agg({_BIT})").alias("bits"))
    within = F.expr(f"partition = of AND {_BUCKET} = bucket AND {_IS_SET}")
    return messages.join(F.broadcast(bitmaps), within, "left_semi").select("partition", "offset", "value")
