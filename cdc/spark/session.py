"""The Spark session of an audit, and how it is set for the size of one."""

from pyspark.sql import SparkSession

from cdc.spark.options import SMALL

__all__ = ["session", "set_for"]

_RECORDS_A_TASK = 50_000


def session() -> SparkSession:
    """The session that spark-submit prepared."""
    # A cast that fails is an error, not a NULL that drops out of a comparison.
    builder = SparkSession.builder.appName("cdc-audit").config("spark.sql.ansi.enabled", "true")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def set_for(spark: SparkSession, size: int) -> None:
    """Set Spark for ``size`` records and rows: what serves large audits costs small ones seconds, and vice versa."""
    spark.conf.set("spark.sql.shuffle.partitions", str(1 + size // _RECORDS_A_TASK))
    spark.conf.set("spark.sql.adaptive.enabled", str(size > SMALL).lower())
