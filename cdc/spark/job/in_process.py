"""Starts Spark in this process, without its usual output; or uses the Spark session that spark-submit prepared."""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from pyspark.sql import SparkSession

from cdc.spark.job.launch import Runtime, launched
from cdc.spark.job.output import after_ivy, without_banners
from cdc.spark.job.session import cancel_jobs, has_stopped, session

__all__ = ["cancelling", "started"]

_AGAIN_SECONDS = 0.2  # jobs are cancelled again at this interval, since a job may begin after a cancellation


def started(
    environment: Mapping[str, str],
    name: str,
    *,
    packages: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
    java: Sequence[str] = (),
) -> SparkSession:
    """Starts a session called ``name`` with these ``settings``.

    Spark runs on this machine, unless spark-submit runs this program or PYSPARK_SUBMIT_ARGS of the ``environment``
    names a master. ``packages`` are the Maven names of the packages that Spark needs besides its Kafka connector;
    CDC_SPARK_JARS (a comma-separated list of jars) replaces both. ``java`` are options for the JVM that is started here
    if PYSPARK_SUBMIT_ARGS is not set.
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
        launched(Runtime.of(environment), environment, packages=packages, java=java, archived=False)
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
