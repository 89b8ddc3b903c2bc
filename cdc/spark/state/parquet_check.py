"""Parquet that Spark's executors write and the driver must find: counted by who wrote it and by who reads it.

An executor writes to the path as its own machine has it. Where that is no folder which the driver sees, too, the files
are lost and Spark says nothing of it: the driver commits what it finds, none of them or some.
"""

import threading
from pathlib import Path

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from cdc.errors import UserError
from cdc.service.private_files import tighten

__all__ = ["location", "rows_in", "write"]

_TOLD_SECONDS = 60.0  # by then Spark has told a count that it will tell


def location(path: Path) -> str:
    """An absolute ``path`` as Spark takes it: Hadoop does not undo what Path.as_uri() escapes, a space among it."""
    return f"file://{path}"


def write(frame: DataFrame, folder: Path, *, option: str) -> int:
    """Write ``frame`` to a new ``folder``, for its owner only; how many rows it has.

    Raises UserError where the driver does not find all that was written; ``option`` is the one that named the folder.
    """
    seen = Observation()
    frame.observe(seen, F.count(F.lit(1)).alias("rows")).write.parquet(location(folder))
    wrote = _told(seen)
    wanted, found = frame.count() if wrote is None else wrote, rows_in(frame.sparkSession, folder)
    if found != wanted:
        raise UserError(
            f"of {wanted} rows that Spark's executors wrote the driver finds {found}",
            where=f"{option}: {folder}",
            hint="name a folder that the driver and all executors share",
        )
    try:
        tighten(folder)
    except OSError as error:
        raise UserError(
            f"cannot keep others from reading the rows: {error}",
            where=f"{option}: {folder}",
            hint="let executors run as the driver's user, and name a folder whose files take a mode",
        ) from None
    return wanted


def _told(seen: Observation) -> int | None:
    """What Spark counted while it wrote; None where it does not tell, as when its queue of events ran over."""
    told: list[int] = []
    # It waits for ever.
    asking = threading.Thread(target=lambda: told.append(int(seen.get["rows"])), name="rows written", daemon=True)
    asking.start()
    asking.join(_TOLD_SECONDS)
    return told[0] if told else None


def rows_in(spark: SparkSession, folder: Path) -> int:
    """How many rows the Parquet files in ``folder`` have by their footers, which the driver itself reads."""
    jvm = spark._jvm
    assert jvm is not None  # it is there as long as the context
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    rows = 0
    for path in folder.glob("*.parquet"):
        place = jvm.org.apache.hadoop.fs.Path(location(path))
        file = jvm.org.apache.parquet.hadoop.util.HadoopInputFile.fromPath(place, hadoop)
        reader = jvm.org.apache.parquet.hadoop.ParquetFileReader.open(file)
        try:
            rows += reader.getRecordCount()
        finally:
            reader.close()
    return rows
