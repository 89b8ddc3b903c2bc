"""A real HDFS: a name node and a data node in one JVM, of Hadoop's own jars."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from cdc.sandbox.fetch.jars import fetched_jars
from cdc.service.java import require_java

__all__ = ["hdfs"]

_SOURCE = Path(__file__).with_name("Hdfs.java")
_MINICLUSTER = "org.apache.hadoop:hadoop-client-minicluster:3.4.1"


@contextmanager
def hdfs(*arguments: str | Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The first line of Hdfs.java's output, and its process, which ends with its input."""
    own = fetched_jars("hadoop-minicluster-3.4.1", [_MINICLUSTER], label="HDFS", without=("org.apache.hadoop",))
    jars = os.pathsep.join([*map(str, own), f"{Path(pyspark.__file__).parent}/jars/*"])
    command = [require_java(os.environ), "-cp", jars, "-XX:TieredStopAtLevel=1", _SOURCE, *arguments]
    pipe, ignored = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=ignored, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()
