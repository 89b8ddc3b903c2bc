"""Runs cdc's programs as a user would run them: as console scripts with a profile."""

import importlib.metadata
import os
import sys
from pathlib import Path

from cdc.errors import PromiseError, UserError
from cdc.sandbox.fetch.jars import java, spark_connector_jars
from cdc.sandbox.profiles import ProfileFiles
from cdc.sandbox.server.process import Process
from cdc.service.java import with_spark

__all__ = ["Programs", "spark_jars"]

_AUDIT_SECONDS = 300
_REPAIR_SECONDS = 60


class Programs:
    """Runs a producer on each server, and the consumer between the servers. Also runs audits and repairs. The logs of
    all programs are in ``folder``.
    """

    def __init__(self, folder: Path, profiles: ProfileFiles) -> None:
        self._folder = folder
        self._profiles = profiles
        self._running: list[Process] = []

    def start(self) -> None:
        """Starts both producers and the consumer. They end together with this process. Raises UserError if a program is
        not installed.
        """
        for script, name, profile in (
            ("cdc-producer", "producer", self._profiles.producer),
            ("cdc-producer", "follower-producer", self._profiles.follower),
            ("cdc-consumer", "consumer", self._profiles.consumer),
        ):
            process = Process(name, folder=self._folder)
            process.start([_script(script), profile])
            self._running.append(process)

    def check(self) -> None:
        """Raises PromiseError, with the last line of the program's output, if a program has ended."""
        for process in self._running:
            if not process.running():
                said = process.said().rpartition("\n")[2]
                raise PromiseError(f"{process.name} ended: {said}", code="CDC-DEMO-NO-PROGRESS", where=str(process.log))

    def stop(self) -> None:
        """Stops the programs in the order in which they were started. Raises PromiseError if a program does not end by
        itself within 30 s."""
        slow = [process.name for process in self._running if not process.stop(seconds=30)]
        self._running.clear()
        if slow:
            raise PromiseError(
                f"{', '.join(slow)} did not end when asked to", code="CDC-DEMO-NO-PROGRESS", where=str(self._folder)
            )

    def kill(self) -> None:
        """Sends SIGKILL to the programs that are still running."""
        for process in self._running:
            process.kill()
        self._running.clear()

    def audit(self, report: Path) -> tuple[int, str]:
        """Runs the audit; returns its exit status and output. The audit writes its report to the folder ``report``."""
        process = Process(report.name, folder=self._folder)
        files = ("--leader", self._profiles.producer, "--follower", self._profiles.follower, "--report", report)
        jars = ",".join(map(str, spark_jars()))
        process.start([_script("cdc-audit"), *files], environment=os.environ | {"CDC_SPARK_JARS": jars})
        return process.wait(seconds=_AUDIT_SECONDS), process.said()

    def repair(self, report: Path) -> str:
        """Runs cdc-repair on ``report``; returns its output. Raises PromiseError if cdc-repair fails, which means that
        not all drifted rows were requested.
        """
        process = Process("repair", folder=self._folder)
        process.start([_script("cdc-repair"), self._profiles.producer, "--report", report])
        if status := process.wait(seconds=_REPAIR_SECONDS):
            raise PromiseError(
                f"cdc-repair ended with exit status {status}", code="CDC-DEMO-BROKEN", where=str(process.log)
            )
        return process.said()


def spark_jars() -> list[Path]:
    """Fetches the jars with which Spark reads Kafka, if they are not in the cache yet. Raises UserError if Java or
    PySpark is missing, or if the jars can't be fetched.
    """
    java()
    try:
        version = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        raise UserError("the audit needs PySpark", code="CDC-SANDBOX-JARS", hint=with_spark()) from None
    return spark_connector_jars(version)


def _script(name: str) -> Path:
    script = Path(sys.executable).with_name(name)
    if not script.exists():
        raise UserError(
            f"{name} is not installed", code="CDC-SANDBOX-JARS", where=str(script.parent), hint=with_spark()
        )
    return script
