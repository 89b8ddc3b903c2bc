"""A few rows that the driver knows, as a DataFrame for which no executor needs Python."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

__all__ = ["literal"]


def literal(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """``rows`` with the columns of ``schema``, in Spark's DDL; their values are what JSON has.

    ``createDataFrame`` would start Python on the executors, which takes a second, and they may have none.
    """
    parsed = F.from_json(F.lit(json.dumps(rows)), f"ARRAY<STRUCT<{schema}>>", {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.explode(parsed).alias("row")).select("row.*")
