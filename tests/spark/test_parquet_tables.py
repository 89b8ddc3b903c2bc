"""A lake's tables of plain Parquet: each write is there whole or not at all, and readers find the rows that count."""

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.lake.commits import Note, Written
from cdc.lake.formats.parquet import POINTER, ParquetTables
from cdc.spark.folders import LocalFolder
from cdc.spark.input.small_data import local_frame

pytestmark = pytest.mark.spark

COLUMNS = ("id", "a b.`c")
Row = tuple[int, str | None]


class Killed(BaseException):
    """Ends a write, as a kill does."""


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path) -> ParquetTables:
    lake = tmp_path / "of {a} [lake] with *"
    lake.mkdir()
    return ParquetTables(spark, LocalFolder(lake))


def folder(tables: ParquetTables) -> Path:
    return Path(tables._lake.address)


def note(sequence: int) -> Note:
    return Note("d", "t", sequence, "", "any")


def frame(tables: ParquetTables, rows: Iterable[Row]) -> DataFrame:
    made = [{"id": number, "x": text} for number, text in rows]
    return local_frame(tables._spark, made, "id INT, x STRING").toDF(*COLUMNS)


def net(tables: ParquetTables, *rows: tuple[int, str | None, bool]) -> DataFrame:
    made = [{"c0": number, "c1": text, "gone": gone} for number, text, gone in rows]
    return local_frame(tables._spark, made, "c0 INT, c1 STRING, gone BOOLEAN")


def held(tables: ParquetTables, *, spark: bool = True) -> Counter[Row]:
    """The rows of the folders that the pointer names, as Spark and a reader that is not Spark have them."""
    table = folder(tables) / "d/t"
    names = [each["name"] for each in json.loads((table / POINTER).read_text())["folders"]]
    read = [tuple(row.values()) for name in names for row in pq.read_table(table / name).to_pylist()]
    if spark:
        assert Counter(map(tuple, tables._rows("d/t").collect())) == Counter(read)
    return Counter(read)


def versions(tables: ParquetTables) -> set[str]:
    return {path.name for path in (folder(tables) / "d/t").iterdir() if path.is_dir()}


def test_what_is_written_is_read(tables: ParquetTables) -> None:
    assert tables.written("d/t", None) is None
    tables.replace(frame(tables, [(1, "a"), (2, None), (3, "c")]), "d/t", note(5))
    assert (held(tables), tables.written("d/t", None)) == (
        {(1, "a"): 1, (2, None): 1, (3, "c"): 1},
        Written(1, note(5)),
    )
    changed = net(tables, (1, "A", False), (2, None, True), (4, "d", False), (5, None, True))
    tables.merge(changed, "d/t", COLUMNS, COLUMNS[:1], note(7))
    assert held(tables) == {(1, "A"): 1, (3, "c"): 1, (4, "d"): 1}
    assert tables.written("d/t", None) == Written(2, note(7))
    tables.clean("d/t", [1])
    assert versions(tables) == {"_v1", "_v2"}, "readers of lake.json may be amid the first"
    tables.empty("d/t", note(8))
    tables.clean("d/t", [2])
    assert (held(tables), versions(tables)) == ({}, {"_v2", "_v3"})
    assert pq.read_table(folder(tables) / "d/t/_v3").column_names == list(COLUMNS)
    assert pq.read_table(folder(tables) / "d/t").num_rows == 0, "the folder of all versions is no table"


def test_a_write_that_was_killed_counts_nothing(tables: ParquetTables, monkeypatch: pytest.MonkeyPatch) -> None:
    tables.replace(frame(tables, [(1, "a")]), "d/t", note(5))
    tables.append(frame(tables, [(2, "b")]), "d/t", note(6))
    with monkeypatch.context() as patched:
        patched.setattr(LocalFolder, "replace", killing)
        for write in (tables.append, tables.replace):
            with pytest.raises(Killed):
                write(frame(tables, [(3, "c")]), "d/t", note(7))
    assert (held(tables), tables.written("d/t", None)) == ({(1, "a"): 1, (2, "b"): 1}, Written(2, note(6)))
    tables.append(frame(tables, [(4, "d")]), "d/t", note(8))
    assert (held(tables), versions(tables)) == ({(1, "a"): 1, (2, "b"): 1, (4, "d"): 1}, {"_v1", "_v2", "_v5"})


def killing(*_: Any, **__: Any) -> None:
    raise Killed


def test_what_something_else_wrote_is_noticed(tables: ParquetTables) -> None:
    tables.replace(frame(tables, [(1, "a")]), "d/t", note(5))
    (folder(tables) / "d/t/_v1/more.parquet").touch()
    assert tables.written("d/t", None) == Written(1, None)
    (folder(tables) / "d/t/_v1/more.parquet").unlink()
    assert tables.written("d/t", None) == Written(1, note(5))
    (folder(tables) / "d/t" / POINTER).write_text("{")
    assert tables.written("d/t", None) == Written(1, None)
    tables.replace(frame(tables, [(2, "b")]), "d/t", note(6))
    assert (held(tables), tables.written("d/t", None)) == ({(2, "b"): 1}, Written(2, note(6)))


def test_appended_folders_are_put_together(tables: ParquetTables) -> None:
    tables.replace(frame(tables, [(0, "0")]), "d/t", note(0))
    for number in range(1, 12):
        tables.append(frame(tables, [(number, str(number))]), "d/t", note(number))
        assert held(tables, spark=number == 11) == {(each, str(each)): 1 for each in range(number + 1)}
        if number == 9:
            assert len(versions(tables)) == 10, "readers may be amid those that became one"
    assert tables.written("d/t", None) == Written(12, note(11))
    assert versions(tables) == {"_v10", "_v11", "_v12"}
