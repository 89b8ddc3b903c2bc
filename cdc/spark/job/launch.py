"""Starts a JVM in which a program runs Spark, with the jars that the program needs on its class path (the Kafka
connector among them), and with an archive of its classes.

The JVM starts in parallel to this process, which loads Python's modules while the JVM starts. PySpark itself would
start a JVM only when a session is created. If two environment variables are set, PySpark uses a JVM that is already
running, as it does when spark-submit runs Python (``pyspark.java_gateway``).
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata, util
from pathlib import Path
from typing import IO, Self
from urllib.parse import unquote, urlsplit

from cdc.errors import UserError
from cdc.service.java import require_java_for_spark, with_spark
from cdc.service.spark_packages import CONNECTOR, FORMATS, kafka_connector, lake_package
from cdc.spark.job.output import after_ivy, without_banners

__all__ = [
    "FIRST_COMPILER",
    "FOR_LITTLE",
    "FOR_MUCH",
    "PACKAGES",
    "Runtime",
    "archivable",
    "archive_folder",
    "class_archive",
    "known_jars",
    "launched",
    "mapped",
    "package_names",
    "remember",
    "remembered_jars",
    "resolving",
    "with_one_collector",
    "written",
]

# Keeps an archive of the classes that an audit's JVM loads: mapping the archive takes half as long as reading 250 jars.
#
# The JVM writes the archive when it ends (``-XX:ArchiveClassesAtExit``) and maps the archive at the next start, unless
# the class path has changed since (JDK manual, "Class Data Sharing"). An archive belongs to one JDK and one
# installation of PySpark.

_FOLDER = "class-archives"
_KEPT_SECONDS = 30 * 86_400
_FREE_BYTES = 1 << 30  # a JVM that can't write its archive of 170 MB ends with an error
# If the archive does not fit the JVM, the JVM prints warnings on standard output and runs without the archive. These
# options turn the warnings off.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_folder(environment: Mapping[str, str]) -> Path:
    """Returns the folder that contains all archives."""
    cache = environment.get("CDC_CACHE") or Path(environment.get("HOME") or Path.home(), ".cache", "cdc")
    return Path(cache, _FOLDER)


def class_archive(environment: Mapping[str, str], *, java: Path, home: Path, jars: Sequence[Path] = ()) -> Path:
    """Returns the path of the class data archive for ``java``, ``jars`` and the Spark installation ``home``; the file
    need not exist.
    """
    program = java.resolve()
    files = [program, *jars, *sorted((home / "jars").glob("*.jar"))]
    known = [(str(file), status.st_size, status.st_mtime_ns) for file in files if (status := file.stat())]
    return archive_folder(environment) / (hashlib.sha256(repr(known).encode()).hexdigest()[:16] + ".jsa")


def archivable(environment: Mapping[str, str], *, home: Path) -> bool:
    """Whether the class path that spark-submit builds from ``environment`` and Spark's folder contains only jars.

    If the class path contains a folder with files, the JVM writes no archive, and ends with an error after the verdict.
    """
    folders = [environment.get(name) for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")]
    folders.append(environment.get("SPARK_CONF_DIR") or str(home / "conf"))
    try:
        files = any(name and Path(name).is_dir() and any(Path(name).iterdir()) for name in folders)
    except OSError:
        return False
    return not files and not environment.get("SPARK_DIST_CLASSPATH")


def mapped(archive: Path) -> list[str]:
    """Returns the JVM options that map the archive, or no options if the archive does not exist."""
    try:
        os.utime(archive)  # so that the archive is not removed as unused
    except OSError:
        return []
    return [f"-XX:SharedArchiveFile={archive}", *_QUIET]


@contextmanager
def written(archive: Path, *, possible: bool = True) -> Iterator[list[str]]:
    """Yields the JVM options that write the archive when the JVM ends. Yields no options if the archive exists already,
    does not fit into its folder, or is not ``possible`` (see ``archivable``).

    The JVM must have ended before the context ends.
    """
    aside = archive.with_suffix(f".{os.getpid()}")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        fits = os.access(archive.parent, os.W_OK) and shutil.disk_usage(archive.parent).free > _FREE_BYTES
    except OSError:
        fits = False
    if archive.exists() or not fits or not possible:
        yield []
        return
    try:
        yield [f"-XX:ArchiveClassesAtExit={aside}", *_QUIET]
        with suppress(OSError):  # the JVM could not write the archive, or was killed
            aside.rename(archive)
    finally:
        aside.unlink(missing_ok=True)
        _remove_unused(archive.parent)


def _remove_unused(folder: Path) -> None:
    for path in folder.iterdir():
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT_SECONDS:
                path.unlink()


# Finds the packages that Spark needs: as known jars, or as Maven names, which Spark resolves at each start.
#
# The classes of jars on the JVM's class path are archived with Spark's own classes. The classes of jars that ``--jars``
# and ``--packages`` load are read and verified at each start.

PACKAGES = "spark.jars.packages"

_VERSION = re.compile(r"-[0-9][^/]*\.jar$")


def resolving(environment: Mapping[str, str], jars: Sequence[Path], names: str) -> list[str]:
    """Returns the arguments with which spark-submit gets the packages that Spark needs: it puts the known ``jars`` on
    the class path. If there are no known jars, it loads the jars in CDC_SPARK_JARS (a comma-separated list) or, without
    this variable, the packages with these Maven ``names`` (comma-separated; empty if Spark needs no packages).
    """
    if jars:
        return ["--driver-class-path", os.pathsep.join(map(str, jars))]
    given = environment.get("CDC_SPARK_JARS")
    if given:
        return ["--jars", given]
    # The names are passed as a setting, since ``remember`` compares them with the settings of the Spark session. The
    # settings would not contain names that are passed with --packages.
    return ["--conf", f"{PACKAGES}={names}"] if names else []


def known_jars(environment: Mapping[str, str], kept: Path, names: str) -> list[Path]:
    """Returns the jars in CDC_SPARK_JARS (a comma-separated list) or, if this variable is not set, the jars that
    ``remember`` wrote to ``kept`` for the Maven ``names``.

    The list is empty if there are no jars, or if one of them is not a file.
    """
    given = environment.get("CDC_SPARK_JARS")
    jars = [Path(path) for path in (given.split(",") if given else _remembered(kept).get(names, []))]
    return jars if all(jar.is_file() for jar in jars) else []


def remembered_jars(environment: Mapping[str, str]) -> Path:
    """Returns the file in which ``remember`` keeps the paths of jars."""
    return archive_folder(environment) / "connector.json"


def remember(settings: Mapping[str, str], kept: Path, names: str, *, home: Path) -> None:
    """Writes the paths of the jars that Spark has found for the Maven ``names`` to the file ``kept``.

    ``settings`` are the settings of the Spark session; ``home`` is Spark's folder.
    """
    if settings.get(PACKAGES) != names:
        return
    jars = [unquote(urlsplit(each).path) for each in settings.get("spark.jars", "").split(",")]
    with suppress(OSError):  # on failure the next run resolves the names again
        kept.parent.mkdir(parents=True, exist_ok=True)
        aside = kept.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps({**_remembered(kept), names: _that_spark_lacks(jars, home)}))
        aside.replace(kept)


def _remembered(kept: Path) -> dict[str, list[str]]:
    try:
        found = json.loads(kept.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _that_spark_lacks(jars: Iterable[str], home: Path) -> list[str]:
    """Returns the ``jars`` that Spark itself does not contain; for the other jars Spark's own version is used, as with
    ``--packages``."""
    # Ivy writes the group in front of a jar's name, Spark does not. So only the ends of the names are compared.
    of_spark = tuple(f"_{_VERSION.sub('', jar.name)}" for jar in (home / "jars").glob("*.jar"))
    return [each for each in jars if not _VERSION.sub("", Path(each).name).endswith(of_spark)]


def package_names(environment: Mapping[str, str], home: Path, *, lake: str | None = None) -> str:
    """Returns the Maven names, separated by commas, of the packages that the Spark in the folder ``home`` needs: its
    Kafka connector, unless it is among Spark's own jars, and the package of the lake's format ``lake``.

    Empty if CDC_SPARK_JARS names the jars. Raises UserError if a package does not exist for this version of Spark.
    """
    if environment.get("CDC_SPARK_JARS"):
        return ""
    version = spark_version(home)
    has_connector = any((home / "jars").glob(f"{CONNECTOR.partition(':')[2]}-*.jar"))
    names = [] if has_connector else [kafka_connector(version)]
    return ",".join([*names, *([lake_package(lake, version)] if lake in FORMATS else [])])


def spark_version(home: Path) -> str:
    """Returns the version of the Spark in the folder ``home``, which need not be that of an installed PySpark."""
    core = next((home / "jars").glob("spark-core_*.jar"), None)
    return core.stem.partition("-core_")[2].partition("-")[2] if core else metadata.version("pyspark")


# The second compiler and the parallel collector save time only in longer runs. The initial metaspace is enlarged, since
# the JVM collects the whole heap when classes have filled the metaspace (21 MB by default).
FIRST_COMPILER = ("-XX:TieredStopAtLevel=1",)
_CLASSES = "-XX:MetaspaceSize=256m"
FOR_LITTLE = (*FIRST_COMPILER, "-XX:+UseSerialGC", _CLASSES)
"""Options of a JVM that reads up to ``job.options.SMALL`` records."""
FOR_MUCH = ("-XX:+UseParallelGC", _CLASSES)
"""Options of a JVM that reads whole topics: the default collector would take a seventh more CPU time than this one."""

_COLLECTOR = re.compile(r"-XX:[+]Use\w+GC\b")
_OPTIONS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_LOGGING = Path(__file__).parents[1] / "log4j2.properties"

Remember = Callable[[Mapping[str, str]], None]
"""A function to be called with the settings of the Spark session that has started."""


_WAIT_SECONDS = 0.02
# Options of the first of spark-submit's two JVMs. The first JVM only prints the command line of the second JVM, and
# ends before further compilation pays off.
_LAUNCHER = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


_LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")  # the first that is set counts (POSIX, "Internationalization Variables")


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
    # In the locale C, Java knows only names of files in ASCII, and does not start in a folder with another name.
    locale = next((found for name in _LOCALE if (found := environment.get(name))), "C")
    if locale in ("C", "POSIX"):
        changed["LC_ALL"] = "C.UTF-8"
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
        return cls(Path(home or Path(pyspark.origin).parent), require_java_for_spark(environment))


@contextmanager
def launched(
    runtime: Runtime,
    environment: Mapping[str, str],
    *,
    lake: str | None = None,
    java: Sequence[str] = (),
    progress: bool = False,
    archived: bool = True,
) -> Iterator[tuple[DriverJvm, Remember]]:
    """Starts a JVM. Yields the JVM, and the function that the caller must call once Spark runs in the JVM.

    ``lake`` is the format of a lake for which Spark needs a package besides the Kafka connector; ``java`` are options
    of the JVM. With ``archived`` the JVM's classes are archived when the JVM ends, unless an archive exists.
    """
    home = runtime.home
    environment = environment_of(home, environment)
    names = package_names(environment, home, lake=lake)
    plain, kept = archivable(environment, home=home), remembered_jars(environment)
    jars = known_jars(environment, kept, names) if plain else []
    archive = class_archive(environment, java=runtime.java, home=home, jars=jars)
    java = with_one_collector(java, environment)
    # A first run does not know the jars yet, so its class path differs from the class path of later runs. Later runs
    # could not use its archive, so it writes none.
    knows_all = bool(jars) or not (names or environment.get("CDC_SPARK_JARS"))
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
