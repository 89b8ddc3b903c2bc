"""Finds the packages that Spark needs: as known jars, or as Maven names, which Spark resolves at each start.

The classes of jars on the JVM's class path are archived with Spark's own classes (``job.class_archive``). The classes
of jars that ``--jars`` and ``--packages`` load are read and verified at each start.
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
    """Returns the arguments for spark-submit. They put the known ``jars`` on the class path or, if there are no known
    jars, pass the jars in CDC_SPARK_JARS or the Maven ``names`` (both are comma-separated lists). If ``names`` is
    empty, Spark needs no further packages.
    """
    if jars:
        return ["--driver-class-path", os.pathsep.join(map(str, jars))]
    given = environment.get("CDC_SPARK_JARS")
    # ``remember`` reads the names from the session's settings, which would not contain names given with --packages.
    if given:
        return ["--jars", given]
    return ["--conf", f"{PACKAGES}={names}"] if names else []


def known_jars(environment: Mapping[str, str], kept: Path, names: str) -> list[Path]:
    """Returns the jars in CDC_SPARK_JARS (a comma-separated list) or, if this variable is not set, the jars that
    ``remember`` wrote to ``kept`` for the Maven ``names``.

    The list is empty if there are no jars, or if one of them is not a file.
    """
    given = environment.get("CDC_SPARK_JARS")
    jars = [Path(path) for path in (given.split(",") if given else _remembered(kept).get(names, []))]
    return jars if all(jar.is_file() for jar in jars) else []


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
    # The file names that Ivy writes begin with the group, so only their ends are compared.
    of_spark = tuple(f"_{_VERSION.sub('', jar.name)}" for jar in (home / "jars").glob("*.jar"))
    return [each for each in jars if not _VERSION.sub("", Path(each).name).endswith(of_spark)]


def coordinates(home: Path) -> list[str]:
    """Returns the connector's Maven name, with the version of PySpark; nothing if the connector is among the jars of
    Spark, whose folder is ``home``.
    """
    if any((home / "jars").glob(f"{_ARTIFACT.partition(':')[2]}-*.jar")):
        return []
    return [f"{_ARTIFACT}:{metadata.version('pyspark')}"]
