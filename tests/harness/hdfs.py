"""A real HDFS: a name node and a data node in one JVM, of Hadoop's own jars."""

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from cdc.sandbox.fetch.cache import cached
from cdc.sandbox.fetch.jars import fetched_jars
from cdc.service.java import require_java

__all__ = ["hdfs"]

_SOURCE = Path(__file__).with_name("Hdfs.java")
_MINICLUSTER = "org.apache.hadoop:hadoop-client-minicluster"
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@contextmanager
def hdfs(*arguments: str | Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The first line of Hdfs.java's output, and its process, which ends with its input."""
    of_spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    [version] = [each.stem.rpartition("-")[2] for each in of_spark if each.name.startswith("hadoop-client-api-")]
    named = f"{_MINICLUSTER}:{version}"
    own = fetched_jars(f"hadoop-minicluster-{version}", [named], label="HDFS", without=("org.apache.hadoop",))
    jars = os.pathsep.join(map(str, [*own, *of_spark]))
    classes = f"{_compiled(jars)}{os.pathsep}{jars}"
    command = [require_java(os.environ), "-cp", classes, *_QUICK, _SOURCE.stem, *arguments]
    pipe, ignored = subprocess.PIPE, subprocess.DEVNULL
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=ignored, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process
        finally:
            process.kill()


def _compiled(jars: str) -> Path:
    """The folder with the classes of Hdfs.java; Java would compile it at each start, which takes seconds."""
    java = require_java(os.environ).resolve()
    known = f"{java} {java.stat().st_mtime_ns} {jars}"
    stamp = hashlib.sha256(_SOURCE.read_bytes() + known.encode()).hexdigest()[:12]

    def compile_into(folder: Path) -> None:
        compiler = [java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars, "-d", folder, _SOURCE]
        subprocess.run(compiler, check=True, capture_output=True)

    return cached(f"hdfs-classes-{stamp}", compile_into)
