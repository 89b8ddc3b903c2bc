"""Starts the JVM of a program's own Spark, with the jars that it needs on the class path, and its class archive."""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from typing import Self

from cdc.errors import UserError
from cdc.service.java import require_java, with_spark
from cdc.spark.job.class_archive import archivable, archive_folder, class_archive, mapped, written
from cdc.spark.job.connector import coordinates, known_jars, remember, resolving
from cdc.spark.job.driver_jvm import DriverJvm, driver_jvm, environment_of

__all__ = ["FIRST_COMPILER", "FOR_LITTLE", "FOR_MUCH", "Runtime", "launched", "with_one_collector"]

# The second compiler and the parallel collector save time only later. Above the initial size of the space for classes
# (21 MB) all of the heap is collected.
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
"""Called with the settings of the session that has started."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """The folder of Spark (``home``) and the program ``java`` that it runs with."""

    home: Path
    java: Path

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Self:
        """The runtime of SPARK_HOME, whose PySpark is used then, or PySpark's. Raises UserError if Spark or a JDK is
        missing."""
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
    """Starts a JVM; gives it and the function to call once Spark runs in it.

    ``packages`` are the Maven names of what Spark needs beside the Kafka connector, ``java`` options of the JVM. With
    ``archived`` its classes are archived at its end unless they are already.
    """
    home = runtime.home
    environment = environment_of(home, environment)
    names = ",".join([coordinates(), *packages])
    plain, kept = archivable(environment, home=home), archive_folder(environment) / "connector.json"
    jars = known_jars(environment, kept, names) if plain else []
    archive = class_archive(environment, java=runtime.java, home=home, jars=jars)
    java = with_one_collector(java, environment)
    # The class path of this first run differs from later ones, which know the jars: its archive would not fit them.
    with written(archive, possible=plain and bool(jars) and archived) as writing:
        arguments = [*resolving(environment, jars, names), *_settings([*java, *(writing or mapped(archive))], progress)]
        with driver_jvm(arguments, environment) as jvm:
            yield jvm, lambda settings: remember(settings, kept, names, home=home) if plain else None


def with_one_collector(java: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The options without a garbage collector if the ``environment`` names one: a JVM refuses two."""
    given = " ".join(environment.get(name, "") for name in _OPTIONS)
    return [option for option in java if not (_COLLECTOR.search(given) and _COLLECTOR.search(option))]


def _settings(java: Sequence[str], progress: bool) -> list[str]:
    """The settings of a program's Spark as spark-submit's arguments; ``java`` are options of the JVM."""
    java = [f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}", *java]
    settings = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": str(progress).lower()}
    confs = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    return ["--master", "local[*]", *confs, "--driver-java-options", " ".join(f'"{option}"' for option in java)]
