"""The Spark session of an audit, and how it is set for the size of one."""

from pyspark.sql import SparkSession

from cdc.spark.options import SMALL

__all__ = ["KEPT_CODE", "NOTHING_HELD", "cut_short", "session", "set_for"]

_RECORDS_A_TASK = 50_000
# Spark keeps what it compiled for the next query, by default for fewer than one audit has: one audit after the other
# then compiled all of it anew, and the JVM once more, which was a quarter of its CPU time.
KEPT_CODE = ("spark.sql.codegen.cache.maxEntries", "1000")
# What is cached is serialized in batches of up to 4 MB, and by default the stream that does it holds on to the last 100
# of them, in case one comes again: 400 MB a task, which no spilling frees.
NOTHING_HELD = ("spark.serializer.objectStreamReset", "1")


def session() -> SparkSession:
    """The session that spark-submit prepared."""
    # A cast that fails is an error, not a NULL that drops out of a comparison.
    builder = SparkSession.builder.appName("cdc-audit").config("spark.sql.ansi.enabled", "true")
    spark = builder.config("spark.sql.session.timeZone", "UTC").config(*KEPT_CODE).config(*NOTHING_HELD).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def set_for(spark: SparkSession, size: int) -> None:
    """Set Spark for ``size`` records and rows: what serves large audits costs small ones seconds, and vice versa."""
    spark.conf.set("spark.sql.shuffle.partitions", str(1 + size // _RECORDS_A_TASK))
    spark.conf.set("spark.sql.adaptive.enabled", str(size > SMALL).lower())
    # What is cached is read a few times in one audit: less than to find out how each column is compressed best.
    spark.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")


def cut_short(spark: SparkSession) -> None:
    """Make the jobs fail that are under way. From then on Spark is not heard: it would only complain of its end."""
    spark.sparkContext.setLogLevel("OFF")
    jvm = spark.sparkContext._jvm
    assert jvm is not None  # it is there as long as the context
    # Traces of what its threads can't do any more go past the log.
    jvm.java.lang.System.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
    spark.sparkContext.cancelAllJobs()
