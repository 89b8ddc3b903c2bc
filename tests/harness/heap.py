"""Counts what is in the heap of Spark's JVM."""

import re
import subprocess
from pathlib import Path

from pyspark.sql import SparkSession

from cdc.spark.private_names import java_class

__all__ = ["sessions_of"]


def sessions_of(spark: SparkSession) -> int:
    """The number of Spark sessions in the heap that something still refers to; the JVM collects all others first."""
    home = Path(java_class(spark, "java.lang.System").getProperty("java.home"))
    process = java_class(spark, "java.lang.ProcessHandle").current().pid()
    command = [home / "bin" / "jcmd", str(process), "GC.class_histogram"]
    histogram = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    [count] = re.findall(r"(\d+) +\d+ +org\.apache\.spark\.sql\.internal\.SessionState\s", histogram)
    return int(count)
