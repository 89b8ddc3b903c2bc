"""Starts the JVM of a driver beside this process, so that Python's modules load while it starts.

PySpark starts its JVM only when a session is created. It finds a running one by two variables of its environment, as it
does when spark-submit runs Python (``pyspark.java_gateway``).
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

from cdc.errors import UserError
from cdc.spark.job.connector import PACKAGES
from cdc.spark.job.stderr_filter import after_ivy, without_banners

__all__ = ["driver_jvm", "environment_of"]

_WAIT_SECONDS = 0.02
# A first JVM only prints the command line of the other one: more compilation would never pay off.
_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def environment_of(home: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of ``environment`` in which PySpark and its JVM run; Spark is in the folder ``home``."""
    changed = dict(environment)
    # Without it a Python process is started to find Spark.
    changed.setdefault("SPARK_HOME", str(home))
    changed.setdefault("SPARK_LAUNCHER_OPTS", _LAUNCHER)
    changed["PYSPARK_PYTHON"] = changed["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Everything runs on this machine, so its host name need not resolve.
    changed.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return changed


@contextmanager
def driver_jvm(arguments: Sequence[str], environment: Mapping[str, str]) -> Iterator["DriverJvm"]:
    """Starts spark-submit's JVM with these ``arguments``; at the end of the block it has ended.

    Its standard error is passed on without the lines that it always writes. Ivy's lines about the connector are held
    back, and printed only if it fails.
    """
    with tempfile.TemporaryDirectory(prefix="cdc-spark-") as folder:
        place = Path(folder, "connection")
        ours = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(place)}
        command = [str(Path(environment["SPARK_HOME"], "bin", "spark-submit")), *arguments, "pyspark-shell"]
        # The JVM ends at the end of its standard input, so when this process ends. In its own process group it does not
        # get the terminal's signals for this process.
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
            # The JVM removes its temporary files, and may write an archive of its classes.
            process.wait()
            passing.join()


class DriverJvm:
    """A JVM that is starting."""

    def __init__(self, process: "subprocess.Popen[bytes]", place: Path, passing: threading.Thread) -> None:
        self._process = process
        self._place = place
        self._passing = passing

    def require_started(self) -> None:
        """Waits until the JVM is ready, and sets its port for PySpark. Raises UserError if it has ended."""
        while not self._place.exists():
            if self._process.poll() is not None:
                self._passing.join()
                raise UserError(
                    "Spark ended before the program did", code="CDC-SPARK-ENDED", hint="see Spark's messages above"
                )
            time.sleep(_WAIT_SECONDS)
        # The file has the port, the length of the secret, and the secret (PythonGatewayServer.scala, which renames the
        # complete file).
        told = self._place.read_bytes()
        os.environ["PYSPARK_GATEWAY_PORT"] = str(int.from_bytes(told[:4], "big"))
        os.environ["PYSPARK_GATEWAY_SECRET"] = told[8:].decode()


def _pass_on(source: IO[bytes], resolves: bool) -> None:
    chunks: Iterator[bytes] = iter(partial(os.read, source.fileno(), 65_536), b"")
    kept: Iterable[bytes] = after_ivy(chunks) if resolves else chunks
    for chunk in without_banners(kept):
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()
