"""Fetches Java libraries and their dependencies from Maven Central into the cache, with Maven or with PySpark's Ivy."""

import functools
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from cdc.errors import UserError
from cdc.sandbox.fetch.cache import cached, run_fetch
from cdc.service.java import require_java, with_spark
from cdc.service.spark_packages import FORMATS, kafka_connector, lake_packages

__all__ = ["fetched_jars", "java", "lake_jars", "spark_connector_jars"]

# PySpark contains the jars of these groups.
_IN_PYSPARK = (
    "org.apache.hadoop",
    "org.scala-lang",
    "org.slf4j",
    "org.lz4",
    "org.xerial.snappy",
    "at.yawk.lz4",  # Spark 4.2's
    "com.google.code.findbugs",
)
_IN_PYSPARK_FOR_LAKES = (
    "org.apache.spark",
    "org.apache.parquet",
    "org.apache.logging.log4j",
    "org.roaringbitmap",
    "com.fasterxml.jackson.core",
    "org.locationtech.jts",
    "io.airlift",
    "commons-pool",
    "com.github.luben",
    "commons-logging",
)


def spark_connector_jars(version: str) -> list[Path]:
    """Fetches the jars of Spark's Kafka connector for this ``version`` of PySpark, and the dependencies that PySpark
    does not contain. Raises UserError.
    """
    connector = kafka_connector(version)
    number = connector.rpartition(":")[2]
    return fetched_jars(
        f"spark-kafka-{number}", [connector], label=f"Spark's Kafka connector {number}", without=_IN_PYSPARK
    )


def lake_jars(version: str) -> list[Path]:
    """Fetches the jars of Delta Lake and, if there are any, of Iceberg for this ``version`` of PySpark, and the
    dependencies that PySpark does not contain. Raises UserError.
    """
    found = []
    for form, package in lake_packages(version).items():
        name = "spark-" + "-".join(package.split(":")[1:]).replace("_2.13", "")
        found += fetched_jars(name, [package], label=FORMATS[form], without=(*_IN_PYSPARK, *_IN_PYSPARK_FOR_LAKES))
    return found


def fetched_jars(name: str, artifacts: Sequence[str], *, label: str, without: Sequence[str] = ()) -> list[Path]:
    """Fetches the jars of ``artifacts`` (``group:artifact:version``) and of their runtime dependencies, except
    dependencies in the groups ``without``.

    The jars are kept in the cache under ``name``. The first call downloads them and verifies their checksums. Raises
    UserError.
    """
    by_maven = shutil.which("mvn") is not None
    fetch = _by_maven if by_maven else _by_ivy

    def fill(folder: Path) -> None:
        with tempfile.TemporaryDirectory() as aside:
            command = fetch(artifacts, into=folder, aside=Path(aside), without=without)
            run_fetch(command, label=label, into=folder)

    jars = sorted(cached(name, fill).glob("*.jar"))
    if not jars:
        raise UserError(
            f"no jars of {label} in the cache",
            code="CDC-SANDBOX-CACHE",
            where=name,
            hint="remove that folder, then try again",
        )
    return jars


def _by_maven(artifacts: Sequence[str], *, into: Path, aside: Path, without: Sequence[str]) -> list[str | Path]:
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in without
    )
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>"
        f"<exclusions>{exclusions}</exclusions></dependency>"
        for group, artifact, version in (name.split(":") for name in artifacts)
    )
    pom = aside / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>cdc</groupId><artifactId>jars</artifactId>"
        f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
    )
    strict: list[str | Path] = ["--batch-mode", "--strict-checksums", "-Dstyle.color=never", "--file", pom]
    return ["mvn", *strict, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={into}"]


def _by_ivy(artifacts: Sequence[str], *, into: Path, aside: Path, without: Sequence[str]) -> list[str | Path]:
    dependencies = "".join(
        f"<dependency org={quoteattr(group)} name={quoteattr(artifact)} rev={quoteattr(version)} conf='default'/>"
        for group, artifact, version in (name.split(":") for name in artifacts)
    )
    exclusions = "".join(f"<exclude org={quoteattr(group)}/>" for group in without)
    module = aside / "ivy.xml"
    module.write_text(
        "<ivy-module version='2.0'><info organisation='cdc' module='jars'/><configurations><conf name='default'/>"
        f"</configurations><dependencies>{dependencies}{exclusions}</dependencies></ivy-module>"
    )
    # If there is no settings file, Ivy uses Maven Central and verifies every checksum.
    ivy: list[str | Path] = [
        java(),
        "-jar",
        _ivy_jar(),
        "-ivy",
        module,
        "-cache",
        aside / "cache",
        "-types",
        "jar",
        "bundle",
    ]
    return [*ivy, "-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"]


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    if spec is not None and spec.origin is not None:
        for jar in Path(spec.origin).parent.glob("jars/ivy-*.jar"):
            return jar
    raise UserError(
        "Java libraries cannot be fetched: there is neither Maven nor PySpark",
        code="CDC-SANDBOX-JARS",
        hint=f"install maven, or {with_spark()}",
    )


@functools.cache
def java() -> Path:
    """Finds the program ``java`` that this process would run. Raises UserError if there is none, or if it
    is too old.
    """
    return require_java(os.environ)
