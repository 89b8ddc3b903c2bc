"""Starts Spark in this process with the connectors of Kafka and of the lake's format; or uses that of spark-submit."""

import os
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import metadata, util

from pyspark.sql import SparkSession

from cdc.errors import UserError
from cdc.service.java import require_java
from cdc.spark.job.session import session
from cdc.spark.job.stderr_filter import after_ivy, without_banners

__all__ = ["PACKAGES", "require_spark", "started"]

_KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
PACKAGES = {
    "delta": "io.delta:delta-spark_2.13:4.0.0",
    "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
}
"""By format, the Maven name of what Spark needs for it beside what it has."""


def require_spark(environment: Mapping[str, str]) -> None:
    """Raises UserError where there is no PySpark or no Java that it runs on."""
    if util.find_spec("pyspark") is None:
        raise UserError("PySpark is not installed", hint="pip install 'cdc-mysql[spark]'")
    require_java(environment)


def started(environment: Mapping[str, str], form: str, settings: Mapping[str, str]) -> SparkSession:
    """A session with the ``settings`` of the format ``form``: on this machine, or as spark-submit was told to."""
    submitted = "PYSPARK_GATEWAY_PORT" in environment
    if not submitted and "PYSPARK_SUBMIT_ARGS" not in environment:
        os.environ["PYSPARK_SUBMIT_ARGS"] = _arguments(environment, form)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Everything runs on this machine, so its host name need not resolve.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # Who may read the lake's files is for the umask to say, as with those of any program.
    mask = os.umask(0)
    os.umask(mask)
    own = {"spark.hadoop.fs.permissions.umask-mode": f"{mask:03o}", "spark.sql.adaptive.enabled": "true"}
    if submitted:
        return session("cdc-lake", {**own, **settings})
    with _stderr_without_noise(ivy="CDC_SPARK_JARS" not in environment):
        return session("cdc-lake", {**own, **settings})


def _arguments(environment: Mapping[str, str], form: str) -> str:
    """What spark-submit would get: jars from CDC_SPARK_JARS (a comma list), or by their Maven names."""
    jars = environment.get("CDC_SPARK_JARS")
    names = f"{_KAFKA}:{metadata.version('pyspark')},{PACKAGES[form]}"
    connectors = ["--jars", jars] if jars else ["--packages", names]
    settings = ["--conf", "spark.ui.enabled=false", "--conf", "spark.ui.showConsoleProgress=false"]
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
