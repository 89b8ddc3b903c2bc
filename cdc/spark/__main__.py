"""cdc-audit: runs the audit through spark-submit on this machine, with the Kafka connector and Spark's usual log lines
filtered out, and passes on its exit status.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import metadata, util
from pathlib import Path

from cdc.errors import UserError
from cdc.service.java import require_java
from cdc.service.logs import setup_logging
from cdc.service.private_files import MASK
from cdc.service.process import exit_status
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.spans import span
from cdc.spark.job.accept_file import accepted_drift
from cdc.spark.job.class_archive import archivable, class_archive, mapped, written
from cdc.spark.job.options import SMALL, consumer_profile, parse_options, side_profiles
from cdc.spark.job.stderr_filter import after_ivy, without_banners
from cdc.spark.report.files import JSON, clear

__all__ = ["command", "main"]

_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"


def main() -> int:
    """Run spark-submit with the options of cdc.spark.audit, and return its exit status."""
    return exit_status(lambda: _run(sys.argv[1:]), program="cdc-audit")


def _run(options: Sequence[str]) -> int:
    # Spark writes rows to temporary files, which other users must not read.
    os.umask(MASK)
    given = parse_options("cdc-audit", options)
    profiles = side_profiles(given)
    setup_logging(level=profiles[0].log.level, form=profiles[0].log.format)
    kafkas = [profile.kafka for profile in profiles]
    consumer_profile(given)
    if given.accept:
        accepted_drift(given.accept)
    pyspark = _pyspark()
    archive = class_archive(os.environ, java=require_java(os.environ), pyspark=pyspark)
    # Done here too: Spark takes seconds to start, and a user's mistake is reported at once. With a state it has to wait
    # until that is locked: another audit may use the state and the report.
    if given.state is None:
        clear(given.report)
    report = given.report / JSON
    earlier = _version(report)
    small = sum(span(kafka).size for kafka in kafkas if kafka_options(kafka)) <= SMALL and given.watch is None
    programs = Path(sys.executable).parent
    environment = _environment(programs)
    writing: list[str] = []
    if given.watch is not None:
        arguments = command(programs, environment, options, small=small, java=mapped(archive))
        status = _status(*_without_spark_submit(arguments, environment))
    else:
        with written(archive, possible=archivable(environment, pyspark=pyspark)) as writing:
            java = writing or mapped(archive)
            status = _status(command(programs, environment, options, small=small, java=java), environment)
    told = None if _version(report) in (None, earlier) else int(json.loads(report.read_text())["exit_status"])
    if writing and told is not None:
        return told  # a JVM that cannot write the archive says so, and ends with an error, after all is done
    if status in (0, 1) and told != status:
        # spark-submit also ends with 1 if it fails itself, which would mean drift.
        raise UserError("Spark ended before the audit did", hint="see Spark's messages above")
    return status


def _pyspark() -> Path:
    """PySpark's folder. Raises UserError where it is not installed."""
    pyspark = util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise UserError("PySpark is not installed", hint="pip install 'cdc-mysql[spark]'")
    return Path(pyspark.origin).parent


def _environment(programs: Path) -> dict[str, str]:
    """The environment of spark-submit, in which it uses this Python, in the folder ``programs``."""
    environment = dict(os.environ)
    # spark-submit finds PySpark through the python3 that comes first on PATH.
    environment["PATH"] = f"{programs}{os.pathsep}{environment.get('PATH', '')}"
    environment["PYSPARK_PYTHON"] = environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Everything runs on this machine, so its host name need not resolve.
    environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    # The audit's output goes through Spark, so it can't see the terminal's width. 0 means no terminal: no line breaks.
    environment["COLUMNS"] = str(os.get_terminal_size(1).columns) if sys.stdout.isatty() else "0"
    return environment


def _version(report: Path) -> tuple[int, int] | None:
    """What distinguishes this report from a later one; None if there is no report."""
    if not report.exists():
        return None
    status = report.stat()
    return status.st_ino, status.st_mtime_ns


def command(
    programs: Path, environment: Mapping[str, str], options: Sequence[str], *, small: bool, java: Sequence[str] = ()
) -> list[str]:
    """The spark-submit command line: the connector from CDC_SPARK_JARS (a comma list of jars), or by its Maven name.

    ``java`` are more options of the JVM.

    A ``small`` audit ends before the JVM's second compiler and parallel garbage collector would save time.
    """
    here = Path(__file__).parent
    jars = environment.get("CDC_SPARK_JARS")
    connector = ["--jars", jars] if jars else ["--packages", f"{_CONNECTOR}:{metadata.version('pyspark')}"]
    java = [f"-Dlog4j2.configurationFile={(here / 'log4j2.properties').as_uri()}", *java]
    java += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"] if small else []
    progress = str(not small and sys.stderr.isatty()).lower()
    settings = ["--conf", "spark.ui.enabled=false", "--conf", f"spark.ui.showConsoleProgress={progress}"]
    submit = [str(programs / "spark-submit"), "--master", "local[*]", *connector, *settings]
    submit += ["--driver-java-options", " ".join(f'"{option}"' for option in java)]
    return [*submit, str(here / "audit.py"), *options]


def _without_spark_submit(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The same audit without spark-submit, whose JVM would end at once on a signal: Python handles it instead."""
    script = next(at for at, word in enumerate(arguments) if word.endswith("audit.py"))
    settings = shlex.join([*arguments[1:script], "pyspark-shell"])
    return [sys.executable, *arguments[script:]], {**environment, "PYSPARK_SUBMIT_ARGS": settings}


def _status(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of spark-submit; its standard error is passed on without the lines that it always writes.

    Ivy's output while it resolves the connector is held back, and shown only if it fails.
    """
    # The terminal sends a signal to its whole foreground process group. In a group of its own the child gets each one
    # only once, from the handlers below.
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, process_group=0) as process:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, lambda number, _: process.send_signal(number))
        assert process.stderr is not None
        chunks: Iterator[bytes] = iter(partial(os.read, process.stderr.fileno(), 65_536), b"")
        for chunk in without_banners(after_ivy(chunks) if "--packages" in arguments else chunks):
            sys.stderr.buffer.write(chunk)
            sys.stderr.buffer.flush()
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
