"""Creates the Spark session, in this process or as spark-submit prepared it, configures it for the size of an audit,
and stops it.

PySpark is patched, so that it looks up each Java class for columns only once: every look-up searches 300 jars.
"""

import atexit
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from pyspark.sql import SparkSession

from cdc.errors import CdcError
from cdc.service.logs import event
from cdc.service.private_files import MASK
from cdc.spark.input.small_data import ANY_PARTITIONS, ONE_SESSION
from cdc.spark.input.sql_meaning import MEANING, with_meaning
from cdc.spark.job.launch import Runtime, launched
from cdc.spark.job.options import is_small
from cdc.spark.job.output import after_ivy, without_banners
from cdc.spark.private_names import Py4JError, has_stopped, java_class, look_up_once

__all__ = [
    "CODE_CACHE",
    "NO_REFERENCES",
    "NO_TRACES",
    "SparkGone",
    "cancel_jobs",
    "cancelling",
    "configure_for",
    "log_stage",
    "session",
    "started",
    "stop",
]

_A_TASK, _A_SMALL_TASK = 50_000, 200_000  # records or rows in one task, in a large and in a small audit
# For each task of a stage, the driver stores which partitions the task wrote to. With 200,000 partitions this needs
# 30 kB for each task, and gigabytes in all. docs/design/audit-at-scale.md contains the calculation.
_MOST_PARTITIONS = 20_000
# Spark caches generated code, by default for fewer queries than one audit runs. Then each audit of a series would
# generate and compile all code again, which takes a quarter of the audit's CPU time.
CODE_CACHE = ("spark.sql.codegen.cache.maxEntries", "1000")
# Cached rows are serialized in batches of up to 4 MB. By default Java's ObjectOutputStream keeps references to the last
# 100 batches, in case an object occurs again. They take 400 MB for each task, and spilling does not free this memory.
NO_REFERENCES = ("spark.serializer.objectStreamReset", "1")
# By default each PySpark function queries the JVM several times to record the line of our code that calls it, for error
# messages that our users never see; and Spark describes each query's plan at length for a web page, which is disabled.
# Descriptions without lists of columns and expressions save a twentieth of a tiny audit's CPU time.
NO_TRACES: dict[str, bool | float | int | str | None] = {
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.debug.maxToStringFields": "0",
}


class SparkGone(CdcError):
    """Raised if Spark or its JVM has stopped, so that this process can run no more audits. The exit status means "could
    not judge".
    """

    exit_status = 2


def session(name: str = "cdc-audit", settings: Mapping[str, str] | None = None) -> SparkSession:
    """Creates a session called ``name`` with the settings of spark-submit's command line and the settings that every
    audit needs; ``settings`` override both."""
    # Py4J's log is turned off: it contains errors, with a stack trace, that Py4J also raises. Some are on the root
    # logger.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: record.levelno >= logging.CRITICAL)
    builder = SparkSession.builder.appName(name).config(map=dict(MEANING))
    # Executors on other machines do not have this process's umask.
    builder = builder.config("spark.hadoop.fs.permissions.umask-mode", f"{MASK:03o}")
    builder = builder.config(map=NO_TRACES).config(*CODE_CACHE).config(*NO_REFERENCES)
    spark = builder.config(map=dict(settings or {})).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    look_up_once(spark)
    return with_meaning(spark)


def configure_for(spark: SparkSession, records: int, *, rows: int = 0) -> None:
    """Configures Spark for the size of an audit: the number of ``records``, and the number of ``rows`` (0 if they are
    not counted yet).

    Settings that make large audits fast cost small audits seconds, and vice versa.
    """
    small = is_small(records, rows)
    # Tasks sort rows, and one record may contain thousands of rows. With too many rows in a task, merging the rows that
    # the task spilled needs more memory than there is. With few rows, the number of tasks costs most: each of an
    # audit's 30 stages has this number of tasks, and adaptive execution, which would merge tasks, plans each stage
    # again.
    partitions = 1 + max(records, rows) // (_A_SMALL_TASK if small else _A_TASK)
    spark.conf.set("spark.sql.shuffle.partitions", str(min(partitions, _MOST_PARTITIONS)))
    spark.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    # An audit reads cached data only a few times. Reading them uncompressed costs less than choosing a compression for
    # each column.
    spark.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")
    # A large audit's queries are adaptive, and the persisted data are to keep their many partitions.
    spark.conf.set(*ONE_SESSION)
    spark.conf.set(ANY_PARTITIONS[0], str(small).lower())


def stop(spark: SparkSession) -> None:
    """Stops Spark, unless it has stopped already."""
    if not has_stopped(spark):
        spark.stop()


def cancel_jobs(spark: SparkSession) -> None:
    """Cancels the running jobs, so that the audit fails. Also turns off Spark's log, which would only report the
    cancelled jobs."""
    try:
        spark.sparkContext.setLogLevel("OFF")
        # Interrupted threads print stack traces to standard error directly, not through the log.
        nothing = java_class(spark, "java.io.OutputStream").nullOutputStream()
        java_class(spark, "java.lang.System").setErr(java_class(spark, "java.io.PrintStream")(nothing))
        spark.sparkContext.cancelAllJobs()
    except (Py4JError, OSError):
        # If the JVM has stopped, its jobs have stopped, too, and nothing is left to cancel.
        if not has_stopped(spark):
            raise


# Logs the stages of an audit that takes minutes: the audit prints nothing else before its verdict.

_LOG = logging.getLogger("cdc.audit")


def log_stage(stage: str, *, records: int, rows: int = 0) -> None:
    """Logs that ``stage`` begins, with the size of the audit; logs nothing if the audit takes only seconds."""
    if not is_small(records, rows):
        event(_LOG, stage, records=records, **({"rows": rows} if rows else {}))


# Starts Spark in this process, without its usual output; or uses the Spark session that spark-submit prepared.

_AGAIN_SECONDS = 0.2  # jobs are cancelled again at this interval, since a job may begin after a cancellation


def started(
    environment: Mapping[str, str],
    name: str,
    *,
    lake: str | None = None,
    settings: Mapping[str, str] | None = None,
    java: Sequence[str] = (),
) -> SparkSession:
    """Starts a session called ``name`` with these ``settings``.

    Spark runs on this machine, unless spark-submit runs this program or PYSPARK_SUBMIT_ARGS of the ``environment``
    names a master. ``lake`` is the format of a lake for which Spark needs a package besides its Kafka connector;
    CDC_SPARK_JARS (a comma-separated list of jars) replaces both. ``java`` are options for the JVM that is started here
    if PYSPARK_SUBMIT_ARGS is not set. Raises UserError if a package does not exist for this version of Spark.
    """
    if "PYSPARK_GATEWAY_PORT" in environment:
        return _with_our_signals(lambda: session(name, settings))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Everything runs on this machine, so Spark need not resolve its host name.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if "PYSPARK_SUBMIT_ARGS" in environment:
        with _stderr_without_noise(ivy="CDC_SPARK_JARS" not in environment):
            return _with_our_signals(lambda: session(name, settings))
    until_exit = ExitStack()
    atexit.register(until_exit.close)
    jvm, keep = until_exit.enter_context(
        launched(Runtime.of(environment), environment, lake=lake, java=java, archived=False)
    )
    jvm.require_started()
    spark = _with_our_signals(lambda: session(name, settings))
    keep(dict(spark.sparkContext.getConf().getAll()))
    return spark


def _with_our_signals(start: Callable[[], SparkSession]) -> SparkSession:
    """Calls ``start``, and then restores the program's handler of SIGINT: PySpark's own handler raises
    KeyboardInterrupt.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        return start()
    finally:
        signal.signal(signal.SIGINT, handler)


def cancelling(spark: SparkSession, stop: threading.Event) -> SparkSession:
    """Cancels the jobs of ``spark`` once ``stop`` is set: otherwise the program would end only after its jobs, since it
    waits for them.
    """

    def cancel() -> None:
        stop.wait()
        while not has_stopped(spark):
            cancel_jobs(spark)
            time.sleep(_AGAIN_SECONDS)

    threading.Thread(target=cancel, name="cancelling", daemon=True).start()
    return spark


@contextmanager
def _stderr_without_noise(*, ivy: bool) -> Iterator[None]:
    """Passes on the standard error of a JVM that is started in the block, without the lines that it always writes."""
    source, target = os.pipe()
    kept = os.dup(2)
    os.dup2(target, 2)
    os.close(target)
    threading.Thread(target=_pass_on, args=(source, kept, ivy), daemon=True).start()
    try:
        yield
    finally:
        os.dup2(kept, 2)


def _pass_on(source: int, kept: int, ivy: bool) -> None:
    chunks: Iterator[bytes] = iter(partial(os.read, source, 65_536), b"")
    for chunk in without_banners(after_ivy(chunks) if ivy else chunks):
        os.write(kept, chunk)
