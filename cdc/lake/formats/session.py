"""Starts Spark with the connectors of Kafka and of the lake's format."""

import os
from collections.abc import Mapping

from pyspark.sql import SparkSession

from cdc.spark.job import in_process

__all__ = ["PACKAGES", "started"]

PACKAGES = {
    "delta": "io.delta:delta-spark_2.13:4.0.0",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
}
"""The Maven name of the packages that Spark needs for each format; Parquet needs none."""


def started(environment: Mapping[str, str], form: str, settings: Mapping[str, str]) -> SparkSession:
    """Starts a session with the ``settings`` of the format ``form``; see ``in_process.started``."""
    # As with any program, the umask decides which users may read the lake's files.
    mask = os.umask(0)
    os.umask(mask)
    own = {"spark.hadoop.fs.permissions.umask-mode": f"{mask:03o}", "spark.sql.adaptive.enabled": "true"}
    packages = [PACKAGES[form]] if form in PACKAGES else []
    return in_process.started(environment, "cdc-lake", packages=packages, settings={**own, **settings})
