"""Finds the packages that Spark needs: known jars, or Maven names, which Spark resolves each time it starts.

Jars on the class path of the JVM are archived with Spark's own classes (``job.class_archive``). The classes of other
jars, which ``--jars`` and ``--packages`` load, are read and verified each time.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["PACKAGES", "coordinates", "known_jars", "remember", "resolving"]

PACKAGES = "spark.jars.packages"

_ARTIFACT = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_VERSION = re.compile(r"-[0-9][^/]*\.jar$")


def resolving(environment: Mapping[str, str], jars: Sequence[Path], names: str) -> list[str]:
    """The arguments for spark-submit: the known ``jars`` on the class path, or else the Maven
    ``names`` (a comma list)."""
    if jars:
        return ["--driver-class-path", os.pathsep.join(map(str, jars))]
    given = environment.get("CDC_SPARK_JARS")
    # Not as --packages, which would be missing in the session's settings that ``remember`` reads.
    return ["--jars", given] if given else ["--conf", f"{PACKAGES}={names}"]


def known_jars(environment: Mapping[str, str], kept: Path, names: str) -> list[Path]:
    """The jars: those of CDC_SPARK_JARS (a comma list), else what ``remember`` wrote to ``kept`` for the Maven
    ``names``.

    Empty if there are none, or one of them is not a file.
    """
    given = environment.get("CDC_SPARK_JARS")
    jars = [Path(path) for path in (given.split(",") if given else _remembered(kept).get(names, []))]
    return jars if all(jar.is_file() for jar in jars) else []


def remember(settings: Mapping[str, str], kept: Path, names: str, *, home: Path) -> None:
    """Writes to ``kept`` the jars to which Spark, in the folder ``home``, has resolved the Maven ``names``.

    ``settings`` are those of the session.
    """
    if settings.get(PACKAGES) != names:
        return
    jars = [unquote(urlsplit(each).path) for each in settings.get("spark.jars", "").split(",")]
    with suppress(OSError):  # on failure the next run resolves them again
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
    """The ``jars`` that Spark itself does not contain; of the others Spark's own version is used, as with
    ``--packages``."""
    # Ivy's file names also contain the group.
    of_spark = tuple(f"_{_VERSION.sub('', jar.name)}" for jar in (home / "jars").glob("*.jar"))
    return [each for each in jars if not _VERSION.sub("", Path(each).name).endswith(of_spark)]


def coordinates() -> str:
    """The connector's Maven name, in PySpark's version."""
    return f"{_ARTIFACT}:{metadata.version('pyspark')}"
