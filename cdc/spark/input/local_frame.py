"""Turns a few rows in the driver into a DataFrame, without starting Python on the executors."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

__all__ = ["local_frame"]


def local_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]], schema: str) -> DataFrame:
    """Returns a DataFrame of ``rows`` with the columns of ``schema``, in Spark's DDL. JSON must be able to represent
    the values.

    ``createDataFrame`` would start Python on the executors: this takes a second, and the executors may not have Python.
    """
    parsed = F.from_json(F.lit(json.dumps(rows)), f"ARRAY<STRUCT<{schema}>>", {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.explode(parsed).alias("row")).select("row.*")
