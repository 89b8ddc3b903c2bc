"""Writes a DataFrame as Parquet and checks that the driver finds every row that the executors wrote.

An executor writes to the path on its own machine. If that folder is not shared with the driver, the files are lost
without an error: the driver commits the files that it finds, and it may find none.
"""

import threading
from collections.abc import Mapping

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from cdc.errors import UserError
from cdc.spark.folders.folder import Folder

__all__ = ["rows_in", "write"]

# Classes are looked up by their whole names: Py4J would look up each part of a dotted name in 300 jars.
_CLASSES = (
    "org.apache.hadoop.fs.Path", "org.apache.parquet.hadoop.util.HadoopInputFile",
    "org.apache.parquet.hadoop.ParquetFileReader",
)  # fmt: skip
_OBSERVATION_SECONDS = 60.0  # Spark delivers the observed count within this time or never


def write(frame: DataFrame, folder: Folder, name: str, *, option: str, pages: Mapping[str, int] | None = None) -> int:
    """Writes ``frame`` to the new folder ``name`` in ``folder``, which only its owner can read; returns the number of
    rows.

    ``pages`` are Parquet options for the size of pages; ``option`` is the command-line option that names the folder.
    Raises UserError if the driver does not find all rows, or cannot protect the files from other users.
    """
    observation = Observation()
    frame.observe(observation, F.count(F.lit(1)).alias("rows")).write.options(**pages or {}).parquet(folder.uri(name))
    observed = _observed(observation)
    written, found = frame.count() if observed is None else observed, rows_in(frame.sparkSession, folder, name)
    if found != written:
        raise UserError(
            f"Spark's executors wrote {written} rows, but the driver finds {found}",
            code="CDC-AUDIT-FILES",
            where=f"{option}: {folder.at(name)}",
            hint="name a folder that the driver and all executors share",
        )
    try:
        folder.tighten(name)
    except OSError as error:
        raise UserError(
            f"cannot make the files unreadable for other users: {error}",
            code="CDC-AUDIT-FILES",
            where=f"{option}: {folder.at(name)}",
            hint="run executors as the driver's user, and name a folder whose file system has file modes",
        ) from None
    return written


def _observed(observation: Observation) -> int | None:
    """Returns the number of rows that Spark counted while writing; None if Spark does not report it, for instance
    because its event queue is full."""
    found: list[int] = []
    # Observation.get has no timeout, so another thread waits for it.
    waiting = threading.Thread(target=lambda: found.append(int(observation.get["rows"])), name="rows", daemon=True)
    waiting.start()
    waiting.join(_OBSERVATION_SECONDS)
    return found[0] if found else None


def rows_in(spark: SparkSession, folder: Folder, name: str) -> int:
    """Counts the rows in the Parquet files of ``name`` in ``folder``; the driver reads the counts from the files'
    footers.
    """
    jvm = spark._jvm
    assert jvm is not None  # the JVM exists as long as the context
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    rows = 0
    # Each class is looked up once, by its whole name.
    hadoop_paths, files, readers = (getattr(jvm, name) for name in _CLASSES)
    for entry in folder.entries(name):
        if not entry.name.endswith(".parquet"):
            continue
        reader = readers.open(files.fromPath(hadoop_paths(folder.uri(f"{name}/{entry.name}")), hadoop))
        try:
            rows += reader.getRecordCount()
        finally:
            reader.close()
    return rows
