"""Starts Spark in this process, with its Kafka connector and without the lines that it always writes."""

import os
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import metadata
from pathlib import Path

from pyspark.sql import SparkSession

from cdc import spark
from cdc.spark.job.session import session
from cdc.spark.job.stderr_filter import after_ivy, without_banners

__all__ = ["started", "submit_arguments"]

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


def started(environment: Mapping[str, str]) -> SparkSession:
    """A session on this machine, or with the master that PYSPARK_SUBMIT_ARGS of the ``environment`` names."""
    if "PYSPARK_SUBMIT_ARGS" not in environment:
        os.environ["PYSPARK_SUBMIT_ARGS"] = submit_arguments(environment)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Everything runs on this machine, so its host name need not resolve.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _stderr_without_noise(ivy="CDC_SPARK_JARS" not in environment):
        return session()


def submit_arguments(environment: Mapping[str, str]) -> str:
    """What spark-submit would get: the connector from CDC_SPARK_JARS (a comma list of jars), or by its Maven name."""
    jars = environment.get("CDC_SPARK_JARS")
    connector = ["--jars", jars] if jars else ["--packages", f"{_CONNECTOR}:{metadata.version('pyspark')}"]
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.ui.showConsoleProgress=false"]
    log = (Path(spark.__file__).parent / "log4j2.properties").as_uri()
    settings += ["--driver-java-options", f"-Dlog4j2.configurationFile={log}"]
    return shlex.join(["--master", "local[*]", *connector, *settings, "pyspark-shell"])


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
