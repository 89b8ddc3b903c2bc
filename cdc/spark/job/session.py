"""The Spark session of an audit, and how it is set for the size of one."""

import logging

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from cdc.errors import CdcError
from cdc.service.private_files import MASK
from cdc.spark.job.options import SMALL

__all__ = ["KEPT_CODE", "NOTHING_HELD", "SparkGone", "cut_short", "ended", "gone", "session", "set_for"]

_A_TASK, _A_SMALL_TASK = 50_000, 200_000  # records or rows
_MANY_ROWS = 1_000_000
# Spark keeps what it compiled for the next query, by default for fewer than one audit has: one audit after the other
# then compiled all of it anew, and the JVM once more, which was a quarter of its CPU time.
KEPT_CODE = ("spark.sql.codegen.cache.maxEntries", "1000")
# What is cached is serialized in batches of up to 4 MB, and by default the stream that does it holds on to the last 100
# of them, in case one comes again: 400 MB a task, which no spilling frees.
NOTHING_HELD = ("spark.serializer.objectStreamReset", "1")


class SparkGone(CdcError):
    """Spark's JVM has ended, or Spark in it: this process can audit no more. It is no verdict."""

    exit_status = 2


def session() -> SparkSession:
    """The session that spark-submit prepared."""
    # What Py4J logs with a trace, some of it on the root logger, it raises as well.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.levelno >= logging.CRITICAL)
    # A cast that fails is an error, not a NULL that drops out of a comparison.
    builder = SparkSession.builder.appName("cdc-audit").config("spark.sql.ansi.enabled", "true")
    # For executors, which write with the umask of their machine.
    builder = builder.config("spark.hadoop.fs.permissions.umask-mode", f"{MASK:03o}")
    spark = builder.config("spark.sql.session.timeZone", "UTC").config(*KEPT_CODE).config(*NOTHING_HELD).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def set_for(spark: SparkSession, records: int, *, rows: int = 0) -> None:
    """Set Spark for so many records, with so many rows as far as that is known yet.

    What serves large audits costs small ones seconds, and vice versa.
    """
    small = records <= SMALL and rows <= _MANY_ROWS
    # By rows, too, since they are what a task sorts, and one record may hold thousands: too many in one task, and the
    # pieces that it spills and merges take more memory than there is. While they are few it is the tasks that cost: 30
    # stages have so many each, and with adaptive execution, which would merge them, each stage is planned anew.
    spark.conf.set("spark.sql.shuffle.partitions", str(1 + max(records, rows) // (_A_SMALL_TASK if small else _A_TASK)))
    spark.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    # What is cached is read a few times in one audit: less than to find out how each column is compressed best.
    spark.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")


def gone(spark: SparkSession) -> bool:
    """Whether the JVM has ended, or Spark in it: then nothing that is asked of it has an answer any more."""
    try:
        return bool(spark.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True


def ended(spark: SparkSession) -> None:
    """Stop Spark, where it has not ended by itself."""
    if not gone(spark):
        spark.stop()


def cut_short(spark: SparkSession) -> None:
    """Make the jobs fail that are under way. From then on Spark is not heard: it would only complain of its end."""
    try:
        spark.sparkContext.setLogLevel("OFF")
        jvm = spark.sparkContext._jvm
        assert jvm is not None  # it is there as long as the context
        # Traces of what its threads can't do any more go past the log.
        jvm.java.lang.System.setErr(jvm.java.io.PrintStream(jvm.java.io.OutputStream.nullOutputStream()))
        spark.sparkContext.cancelAllJobs()
    except (Py4JError, OSError):
        # With the JVM the jobs ended, too.
        if not gone(spark):
            raise
