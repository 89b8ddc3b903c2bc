"""Starts a JVM in which a program runs Spark. The jars that the program needs are on the class path, and the JVM uses a
class archive.

The JVM starts in parallel to this process, so that Python's modules load meanwhile. PySpark itself would start a JVM
only when a session is created. If two environment variables are set, PySpark uses a JVM that is already running, as it
does when spark-submit runs Python (``pyspark.java_gateway``).
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import util
from pathlib import Path
from typing import IO, Self

from cdc.errors import UserError
from cdc.service.java import require_java, with_spark
from cdc.spark.job.class_archive import archivable, archive_folder, class_archive, mapped, written
from cdc.spark.job.connector import PACKAGES, coordinates, known_jars, remember, resolving
from cdc.spark.job.stderr_filter import after_ivy, without_banners

__all__ = ["FIRST_COMPILER", "FOR_LITTLE", "FOR_MUCH", "Runtime", "launched", "with_one_collector"]

# The second compiler and the parallel collector save time only in longer runs. The initial metaspace is enlarged, since
# the JVM collects the whole heap when classes have filled it (21 MB by default).
FIRST_COMPILER = ("-XX:TieredStopAtLevel=1",)
_CLASSES = "-XX:MetaspaceSize=256m"
FOR_LITTLE = (*FIRST_COMPILER, "-XX:+UseSerialGC", _CLASSES)
"""Options of a JVM that reads up to ``job.options.SMALL`` records."""
FOR_MUCH = ("-XX:+UseParallelGC", _CLASSES)
"""Options of a JVM that reads whole topics: the default collector takes a seventh more CPU time."""

_COLLECTOR = re.compile(r"-XX:[+]Use\w+GC\b")
_OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_LOGGING = Path(__file__).parents[1] / "log4j2.properties"

Remember = Callable[[Mapping[str, str]], None]
"""A function to be called with the settings of the Spark session that has started."""


_WAIT_SECONDS = 0.02
# Options of the first of spark-submit's two JVMs. The first JVM only prints the command line of the second JVM, and
# ends before further compilation pays off.
_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment_of(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Returns a copy of ``environment`` with the variables that PySpark and its JVM need; ``home`` is
    Spark's folder.
    """
    changed = dict(environment)
    # Without SPARK_HOME, spark-submit would start a Python process to find Spark's folder.
    changed.setdefault("SPARK_HOME", str(home))
    changed.setdefault("SPARK_LAUNCHER_OPTS", _LAUNCHER)
    changed["PYSPARK_PYTHON"] = changed["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Everything runs on this machine, so Spark need not resolve its host name.
    changed.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return changed


@contextmanager
def driver_jvm(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator["DriverJvm"]:
    """Starts spark-submit's JVM with these ``arguments``; at the end of the block the JVM has ended.

    The JVM's standard error is passed on without the lines that Spark always writes. Ivy's lines about the connector
    are held back, and printed only if Ivy fails.
    """
    with tempfile.TemporaryDirectory(prefix="cdc-spark-") as folder:
        place = Path(folder, "connection")
        ours = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(place)}
        command = [str(Path(environment["SPARK_HOME"], "bin", "spark-submit")), *arguments, "pyspark-shell"]
        # The JVM ends when its standard input ends, so at the latest when this process ends. In a process group of its
        # own, the JVM does not receive the signals that the terminal sends to this process group.
        process = subprocess.Popen(
            command, env={**environment, **ours}, stdin=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
        )
        assert process.stderr is not None
        assert process.stdin is not None
        passing = threading.Thread(
            target=_pass_on,
            args=(process.stderr, any(PACKAGES in word for word in arguments)),
            name="Spark's messages",
            daemon=True,
        )
        passing.start()
        try:
            yield DriverJvm(process, place, passing)
        finally:
            with suppress(OSError):
                process.stdin.close()
            # This process waits for the JVM, which removes its temporary files before it ends, and may write an archive
            # of its classes.
            process.wait()
            passing.join()


class DriverJvm:
    """A JVM that is starting, and that PySpark will use."""

    def __init__(self, process: "subprocess.Popen[bytes]", place: Path, passing: threading.Thread) -> None:
        self._process = process
        self._place = place
        self._passing = passing

    def require_started(self) -> None:
        """Waits until the JVM is ready, and sets its port and secret for PySpark. Raises UserError if the JVM has
        ended."""
        while not self._place.exists():
            if self._process.poll() is not None:
                self._passing.join()
                raise UserError(
                    "Spark ended before the program did", code="CDC-SPARK-ENDED", hint="see Spark's messages above"
                )
            time.sleep(_WAIT_SECONDS)
        # The file contains the port, the length of the secret, and the secret. The file is complete once it has this
        # name (PythonGatewayServer.scala).
        told = self._place.read_bytes()
        os.environ["PYSPARK_GATEWAY_PORT"] = str(int.from_bytes(told[:4], "big"))
        os.environ["PYSPARK_GATEWAY_SECRET"] = told[8:].decode()


def _pass_on(source: IO[bytes], resolves: bool) -> None:
    chunks: Iterator[bytes] = iter(partial(os.read, source.fileno(), 65_536), b"")
    kept: Iterable[bytes] = after_ivy(chunks) if resolves else chunks
    for chunk in without_banners(kept):
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()


@dataclass(frozen=True, slots=True)
class Runtime:
    """Spark's folder (``home``), and the program ``java`` that runs Spark."""

    home: Path
    java: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """Finds the Spark installation in SPARK_HOME, with its own PySpark, or by default the Spark in the installed
        PySpark. Raises UserError if Spark or a JDK is missing.
        """
        if home := environment.get("SPARK_HOME"):
            sys.path[:0] = [str(Path(home, "python")), *map(str, Path(home).glob("python/lib/py4j-*-src.zip"))]
        pyspark = util.find_spec("pyspark")
        if pyspark is None or pyspark.origin is None:
            raise UserError("PySpark is not installed", code="CDC-AUDIT-NO-PYSPARK", hint=with_spark())
        return cls(Path(home or Path(pyspark.origin).parent), require_java(environment))


@contextmanager
def launched(
    runtime: Runtime,
    environment: Mapping[str, str],
    *,
    packages: Sequence[str] = (),
    java: Sequence[str] = (),
    progress: bool = False,
    archived: bool = True,
) -> Iterator[tuple[DriverJvm, Remember]]:
    """Starts a JVM. Yields the JVM, and the function that the caller must call once Spark runs in the JVM.

    ``packages`` are the Maven names of the packages that Spark needs besides the Kafka connector; ``java`` are options
    of the JVM. With ``archived`` the JVM's classes are archived when the JVM ends, unless an archive exists.
    """
    home = runtime.home
    environment = environment_of(home, environment)
    names = ",".join([*coordinates(home), *packages])
    plain, kept = archivable(environment, home=home), archive_folder(environment) / "connector.json"
    jars = known_jars(environment, kept, names) if plain else []
    archive = class_archive(environment, java=runtime.java, home=home, jars=jars)
    java = with_one_collector(java, environment)
    # A first run does not know the jars yet, so its class path differs from the class path of later runs. Later runs
    # could not use its archive, so it writes none.
    knows_all = bool(jars) or not names
    with written(archive, possible=plain and knows_all and archived) as writing:
        arguments = [*resolving(environment, jars, names), *_settings([*java, *(writing or mapped(archive))], progress)]
        with driver_jvm(arguments, environment) as jvm:
            yield jvm, lambda settings: remember(settings, kept, names, home=home) if plain else None


def with_one_collector(java: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Removes the garbage collector from the options ``java`` if ``environment`` names another collector: a JVM accepts
    only one.
    """
    given = " ".join(environment.get(name, "") for name in _OPTIONS)
    return [option for option in java if not (_COLLECTOR.search(given) and _COLLECTOR.search(option))]


def _settings(java: Sequence[str], progress: bool) -> list[str]:
    """Returns the Spark settings of a program as arguments for spark-submit; ``java`` are options of the JVM."""
    java = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *java]
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": str(progress).lower()}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return ["--master", "local[*]", *confs, "--driver-java-options", " ".join(f'"{option}"' for option in java)]
