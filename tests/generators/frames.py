"""DataFrames of a test's rows: Spark's own would start Python on the executors for each."""

import json
from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

__all__ = ["frame_of"]

_LONGEST = str((1 << 31) - 1)


def frame_of(spark: SparkSession, rows: Iterable[Sequence[object]], schema: str) -> DataFrame:
    """``rows`` with the columns of ``schema``, such as "side STRING, upto BIGINT".

    Values are such as JSON can express; a BINARY one is a text.
    """
    fields = [field.split() for field in schema.split(", ")]
    names = [name for name, _ in fields]
    texts = schema.replace(" BINARY", " STRING")
    told = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    assert spark._jvm is not None
    one = DataFrame(spark._jsparkSession.createDataset([told], spark._jvm.Encoders.STRING()), spark)
    options = {"mode": "FAILFAST", "maxStringLen": _LONGEST}
    parsed = one.select(F.explode(F.from_json("value", f"ARRAY<STRUCT<{texts}>>", options)).alias("row"))
    binary = [
        f"CAST(row.{name} AS BINARY) AS {name}" if f"{name} BINARY" in schema else f"row.{name}" for name in names
    ]
    return parsed.selectExpr(*binary)
