"""Keeps an archive of the classes that an audit's JVM loads: mapping the archive takes half as long as reading 250
jars.

The JVM writes the archive when it ends (``-XX:ArchiveClassesAtExit``) and maps the archive at the next start, unless
the class path has changed since (JDK manual, "Class Data Sharing"). An archive belongs to one JDK and one installation
of PySpark.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["archivable", "archive_folder", "class_archive", "mapped", "written"]

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
