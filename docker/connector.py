"""Fetches Spark's connector for Kafka while an image is built, and puts it among the jars of the installed Spark."""

import shutil
from pathlib import Path

import pyspark

from cdc.sandbox.fetch.jars import spark_connector_jars


def main() -> None:
    """Copies the jars."""
    for jar in spark_connector_jars(pyspark.__version__):
        shutil.copy(jar, Path(pyspark.__file__).parent / "jars" / jar.name)


if __name__ == "__main__":
    main()
