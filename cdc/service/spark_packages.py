"""Maps each supported version of Spark to the Maven names of the packages that work with it. Pure.

The table contains versions that Maven Central serves with all that they depend on: no program asks a registry which
versions exist. Several patches of the Kafka connector are served without their ``spark-token-provider-kafka-0-10``, so
their dependencies can't be resolved. A connector works with each patch of its minor version.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cdc.errors import UserError

__all__ = ["CONNECTOR", "FORMATS", "kafka_connector", "lake_package", "lake_packages"]

CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""Group and artifact of Spark's connector for Kafka."""

FORMATS = {"delta": "Delta Lake", "iceberg": "Iceberg"}
"""Maps each format of a lake that needs a package to the format's name."""


@dataclass(frozen=True, slots=True)
class _Packages:
    connector: str
    lakes: Mapping[str, str]


# The lakes' packages are compiled for one minor version of Spark each; with another one they end in NoSuchMethodError.
_OF_MINOR = {
    "4.0": _Packages(
        connector="4.0.0",
        lakes={
            "delta": "io.delta:delta-spark_2.13:4.0.0",
            "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",
        },
    ),
    "4.1": _Packages(
        connector="4.1.1",
        lakes={
            "delta": "io.delta:delta-spark_4.1_2.13:4.4.0",
            "iceberg": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
        },
    ),
    "4.2": _Packages(connector="4.2.0", lakes={"delta": "io.delta:delta-spark_4.2_2.13:4.4.0"}),
}


def kafka_connector(version: str) -> str:
    """Returns the Maven name of the Kafka connector for this ``version`` of Spark. Raises UserError if this minor
    version of Spark is not supported.
    """
    return f"{CONNECTOR}:{_packages(version).connector}"


def lake_package(form: str, version: str) -> str:
    """Returns the Maven name of the package that this ``version`` of Spark needs for the lake's format ``form``. Raises
    UserError if there is none for this minor version.
    """
    known = _packages(version).lakes
    if form in known:
        return known[form]
    others = [minor for minor, packages in _OF_MINOR.items() if form in packages.lakes]
    raise UserError(
        f"there is no {FORMATS[form]} for Spark {version}",
        code="CDC-LAKE-NO-PACKAGE",
        where=f"option --format {form}",
        hint=f"use PySpark {' or '.join(others)}, such as pip install 'pyspark~={others[-1]}.0', "
        f"or the format {' or '.join([*known, 'parquet'])}",
    )


def lake_packages(version: str) -> Mapping[str, str]:
    """Maps each format of a lake that this ``version`` of Spark can write with a package to the package's Maven name.
    Raises UserError if this minor version of Spark is not supported.
    """
    return _packages(version).lakes


def _packages(version: str) -> _Packages:
    # Builds of cloud providers add their own parts to a version, such as 4.0.1-amzn-0.
    minor = re.match(r"\d+\.\d+", version)
    if minor is None or minor[0] not in _OF_MINOR:
        supported = list(_OF_MINOR)
        raise UserError(
            f"Spark {version} is not supported",
            code="CDC-SPARK-VERSION",
            where="SPARK_HOME, or the installed PySpark",
            hint=f"use Spark {', '.join(supported[:-1])} or {supported[-1]}, such as pip install "
            f"'pyspark~={supported[-1]}.0', or name the jars of its Kafka connector in CDC_SPARK_JARS to try it",
        )
    return _OF_MINOR[minor[0]]
