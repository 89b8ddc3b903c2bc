"""cdc-audit: runs the audit on this machine, in a Spark with the Kafka connector whose usual log lines are left out."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path

from cdc.errors import UserError
from cdc.service.java import require_java
from cdc.service.logs import print_error, setup_logging
from cdc.service.private_files import MASK
from cdc.service.process import exit_status
from cdc.spark.input.kafka_options import kafka_options
from cdc.spark.input.spans import span
from cdc.spark.job.accept_file import accepted_drift
from cdc.spark.job.class_archive import archivable, archive_folder, class_archive, mapped, written
from cdc.spark.job.connector import connector, known_jars, remember
from cdc.spark.job.driver_jvm import driver_jvm, environment_of
from cdc.spark.job.options import SMALL, consumer_profile, parse_options, side_profiles
from cdc.spark.report.files import clear

__all__ = ["main"]

_LOGGING = Path(__file__).with_name("log4j2.properties")
# The second compiler and the parallel collector save time only later. Above the initial size of the space for classes
# (21 MB) all of the heap is collected.
_SMALL = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:MetaspaceSize=256m")


def main() -> int:
    """Run cdc.spark.audit with the options of the command line, and return its exit status."""
    # A traceback says nothing that who interrupts an audit does not know.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return exit_status(lambda: _run(sys.argv[1:]), program="cdc-audit")
    except Exception as error:  # noqa: BLE001 - any failure here is no verdict, and exit status 1 would mean drift
        print_error("cdc-audit", f"Spark failed: {type(error).__name__}: {str(error).partition(chr(10))[0]}")
        return 2


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
    home, java = _spark_home(), require_java(os.environ)
    # Done here too: Spark takes seconds to start, and a user's mistake is reported at once. With a state it has to wait
    # until that is locked: another audit may use the state and the report.
    if given.state is None:
        clear(given.report)
    small = sum(span(kafka).size for kafka in kafkas if kafka_options(kafka)) <= SMALL and given.watch is None
    environment = environment_of(home, os.environ)
    plain, kept = archivable(environment, home=home), archive_folder(environment) / "connector.json"
    jars = known_jars(environment, kept) if plain else []
    archive = class_archive(environment, java=java, home=home, jars=jars)
    arguments = connector(environment, kept, on_class_path=plain)
    # One that is written is not that of the next audit, which knows the connector's jars by then.
    with written(archive, possible=plain and bool(jars) and given.watch is None) as writing:
        arguments += _settings(small=small, java=writing or mapped(archive))
        with driver_jvm(arguments, environment) as jvm:
            # It takes as long as the JVM takes to start.
            from cdc.spark.audit import main as audit

            def started(settings: Mapping[str, str]) -> None:
                # PySpark's handler asks the JVM to cancel jobs, amid whatever it is asked, and ends with a traceback.
                signal.signal(signal.SIGINT, signal.SIG_DFL)
                if plain:
                    remember(settings, kept, home=home)

            jvm.require_started()
            return audit(options, started=started)


def _spark_home() -> Path:
    """Spark's folder: SPARK_HOME, whose PySpark is used then, or PySpark's. Raises UserError where it is not there."""
    if home := os.environ.get("SPARK_HOME"):
        sys.path[:0] = [str(Path(home, "python")), *map(str, Path(home).glob("python/lib/py4j-*-src.zip"))]
    pyspark = util.find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        raise UserError("PySpark is not installed", hint="pip install 'cdc-mysql[spark]'")
    return Path(home or Path(pyspark.origin).parent)


def _settings(*, small: bool, java: Sequence[str] = ()) -> list[str]:
    """The settings of the audit's Spark as spark-submit's arguments; ``java`` are more options of the JVM.

    A ``small`` audit ends before the JVM's second compiler and parallel garbage collector would save time.
    """
    java = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *java]
    java += _SMALL if small else []
    progress = str(not small and sys.stderr.isatty()).lower()
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": progress}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return ["--master", "local[*]", *confs, "--driver-java-options", " ".join(f'"{option}"' for option in java)]


if __name__ == "__main__":
    sys.exit(main())
