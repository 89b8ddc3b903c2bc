"""Starts Spark in the process of a program, without the lines that it always writes; or uses that of spark-submit."""

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from cdc.spark.job.connector import coordinates
from cdc.spark.job.session import cancel_jobs, has_stopped, session
from cdc.spark.job.stderr_filter import after_ivy, without_banners

__all__ = ["cancelling", "started"]

_AGAIN_SECONDS = 0.2  # a job may begin after others were cancelled


def started(
    environment: Mapping[str, str],
    name: str,
    *,
    packages: Sequence[str] = (),
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A session called ``name`` with its ``settings``: on this machine, with the master that PYSPARK_SUBMIT_ARGS of the
    ``environment`` names, or as spark-submit was told to.

    ``packages`` are the Maven names of what Spark needs beside its Kafka connector; CDC_SPARK_JARS (a comma list of
    jars) takes the place of both.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in environment
    if not submitted and "PYSPARK_SUBMIT_ARGS" not in environment:
        os.environ["PYSPARK_SUBMIT_ARGS"] = _arguments(environment, packages)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Everything runs on this machine, so its host name need not resolve.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    handler = signal.getsignal(signal.SIGINT)
    try:
        if submitted:
            return session(name, settings)
        with _stderr_without_noise(ivy="CDC_SPARK_JARS" not in environment):
            return session(name, settings)
    finally:
        # Spark's own, which it puts in place of the program's, raises KeyboardInterrupt.
        signal.signal(signal.SIGINT, handler)


def cancelling(spark: SparkSession, stop: threading.Event) -> SparkSession:
    """``spark``, whose jobs fail once ``stop`` is set: a program waits for them, and would end only after them."""

    def cancel() -> None:
        stop.wait()
        while not has_stopped(spark):
            cancel_jobs(spark)
            time.sleep(_AGAIN_SECONDS)

    threading.Thread(target=cancel, name="cancelling", daemon=True).start()
    return spark


def _arguments(environment: Mapping[str, str], packages: Sequence[str]) -> str:
    """What spark-submit would get."""
    jars = environment.get("CDC_SPARK_JARS")
    names = ",".join([coordinates(), *packages])
    connectors = ["--jars", jars] if jars else ["--packages", names]
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.ui.showConsoleProgress=false"]
    log = (Path(__file__).parents[1] / "log4j2.properties").as_uri()
    settings += ["--driver-java-options", f"-Dlog4j2.configurationFile={log}"]
    return shlex.join(["--master", "local[*]", *connectors, *settings, "pyspark-shell"])


@contextmanager
def _stderr_without_noise(*, ivy: bool) -> Iterator[None]:
    """The JVM that is started here writes its standard error into a pipe, from which the rest is passed on."""
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
