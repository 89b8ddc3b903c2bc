"""Writes rows of a report as Parquet, where this process and the caller's session find them."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from cdc.service.private_files import make_folder
from cdc.spark.folders import LocalFolder, as_pattern
from cdc.spark.input.small_data import local_frame
from cdc.spark.private_names import arrow_tables, by_connect
from cdc.spark.state.parquet_parts import write

__all__ = ["read_rows", "write_rows"]


def write_rows(frame: DataFrame, folder: Path, name: str) -> DataFrame:
    """Writes the rows of ``frame`` to the new folder ``name`` in the report's ``folder``. Returns a frame of them.

    Executors write them, and must share the folder with this process; over Spark Connect, where they share nothing with
    it, this process writes what it receives.
    """
    if not by_connect(frame.sparkSession):
        write(frame, LocalFolder(folder), name, option="option --report")
        return frame.sparkSession.read.parquet(as_pattern(LocalFolder(folder).uri(name)))
    from pyarrow.parquet import ParquetWriter  # Spark Connect needs it, a session with a JVM does not

    make_folder(folder / name)
    tables = arrow_tables(frame)
    first = next(tables)
    with ParquetWriter(folder / name / "part-00000.parquet", first.schema) as writer:
        writer.write_table(first)
        for table in tables:
            writer.write_table(table)
    LocalFolder(folder).tighten(name)
    return frame


def read_rows(spark: SparkSession, folder: Path, name: str, schema: str) -> DataFrame:
    """Returns a frame of the rows that were written to the folder ``name`` of a report in ``folder``; without any rows,
    if there is no such folder.
    """
    if not (folder / name).is_dir():
        return local_frame(spark, [], schema)
    if not by_connect(spark):
        return spark.read.parquet(as_pattern(LocalFolder(folder).uri(name)))
    from pyarrow.parquet import read_table

    return spark.createDataFrame(read_table(folder / name), schema)
