"""Which version of a table counts, by what is in its folder."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.lake.commits import Note, Written
from cdc.lake.folder import unfit
from cdc.lake.formats.delta import DeltaTables
from cdc.lake.formats.iceberg import IcebergTables, in_files
from cdc.spark.folders import LocalFolder

NOTE = Note("d", "t", 7, "gtid", "0123")
ROWS = {"add": {"path": "a.parquet", "dataChange": True}}
SAME_ROWS = {"add": {"path": "b.parquet", "dataChange": False}}


def commit(
    lake: Path, version: int, *actions: dict[str, Any], note: Note | None = None, operation: str = "any"
) -> None:
    info = {"commitInfo": {"operation": operation, **({"userMetadata": note.text()} if note else {})}}
    log = lake / "d/t/_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(each) + "\n" for each in (info, *actions))
    (log / f"{version:020d}.json").write_text(text)


@pytest.mark.parametrize("since", [None, 0, 1, 5])
def test_the_note_of_a_delta_table_counts_until_rows_change(tmp_path: Path, since: int | None) -> None:
    tables = DeltaTables(None, LocalFolder(tmp_path))  # type: ignore[arg-type]
    assert tables.written("d/t", since) is None
    commit(tmp_path, 0, ROWS)
    assert tables.written("d/t", since) == Written(0, None)
    commit(tmp_path, 1, ROWS, note=NOTE)
    assert tables.written("d/t", since) == Written(1, NOTE)
    commit(tmp_path, 2, SAME_ROWS, {"remove": {"path": "a.parquet", "dataChange": False}})
    assert tables.written("d/t", since) == Written(1, NOTE), "files were only put together"
    commit(tmp_path, 3, {"metaData": {"schemaString": "…"}}, operation="SET TBLPROPERTIES")
    assert tables.written("d/t", since) == Written(1, NOTE), "a property was set"
    commit(tmp_path, 3, {"metaData": {"schemaString": "…"}})
    assert tables.written("d/t", since) == Written(3, None)
    commit(tmp_path, 4, ROWS, note=NOTE)
    commit(tmp_path, 5, ROWS)
    assert tables.written("d/t", since) == Written(5, None)


def test_a_version_of_others_below_the_newest_note_of_delta_is_found(tmp_path: Path) -> None:
    """Others write while a run merges, or while it maintains the table."""
    tables = DeltaTables(None, LocalFolder(tmp_path))  # type: ignore[arg-type]
    commit(tmp_path, 0, ROWS, note=NOTE)
    commit(tmp_path, 1, SAME_ROWS)
    commit(tmp_path, 2, ROWS, note=NOTE)
    assert tables.written("d/t", 0) == Written(2, NOTE)
    commit(tmp_path, 3, ROWS)
    commit(tmp_path, 4, SAME_ROWS, note=NOTE)
    assert tables.written("d/t", 0) == tables.written("d/t", 2) == Written(3, None)
    assert tables.written("d/t", 4) == Written(4, NOTE)
    commit(tmp_path, 5, ROWS, note=NOTE, operation="CREATE OR REPLACE TABLE AS SELECT")
    assert tables.written("d/t", 2) == Written(5, NOTE)


def test_a_version_that_was_put_back_is_found(tmp_path: Path) -> None:
    commit(tmp_path, 0, ROWS, note=NOTE)
    assert DeltaTables(None, LocalFolder(tmp_path)).written("d/t", 4) == Written(0, NOTE)  # type: ignore[arg-type]


def snapshot(number: int, operation: str, *, parent: int | None = None, note: Note | None = None) -> dict[str, Any]:
    summary = {"operation": operation, **({"cdc_lake": note.text()} if note else {})}
    return {"snapshot-id": number, "parent-snapshot-id": parent, "schema-id": 0, "summary": summary}


def of_folder(lake: Path) -> IcebergTables:
    class Nothing:
        conf = type("Conf", (), {"set": lambda *_: None})()

    return IcebergTables(Nothing(), LocalFolder(lake))  # type: ignore[arg-type]


def iceberg(lake: Path, version: int, *snapshots: dict[str, Any], schema: int = 0) -> None:
    folder = lake / "d/t/metadata"
    folder.mkdir(parents=True, exist_ok=True)
    content = {"current-schema-id": schema, "snapshots": snapshots, "current-snapshot-id": snapshots[-1]["snapshot-id"]}
    (folder / f"v{version}.metadata.json").write_text(json.dumps(content))


def test_the_note_of_an_iceberg_table_counts_until_rows_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = of_folder(tmp_path)
    assert tables.written("d/t", None) is None
    ours = snapshot(11, "overwrite", note=NOTE)
    iceberg(tmp_path, 1, ours)
    (tmp_path / "d/t/metadata/version-hint.text").write_text("1")
    assert tables.written("d/t", None) == Written(11, NOTE)
    iceberg(tmp_path, 2, ours, snapshot(12, "replace", parent=11))  # to which the hint does not point yet
    assert tables.written("d/t", None) == Written(11, NOTE), "files were only put together"
    iceberg(tmp_path, 3, ours, snapshot(12, "replace", parent=11), snapshot(13, "append", parent=12))
    assert tables.written("d/t", None) == Written(13, None)
    iceberg(tmp_path, 4, ours, schema=1)
    assert tables.written("d/t", None) == Written(11, None), "columns were changed"


def test_a_snapshot_of_others_below_the_newest_note_of_iceberg_is_found(tmp_path: Path) -> None:
    tables = of_folder(tmp_path)
    ours, merged = snapshot(11, "overwrite", note=NOTE), snapshot(13, "overwrite", parent=12, note=NOTE)
    (tmp_path / "d/t/metadata").mkdir(parents=True)
    (tmp_path / "d/t/metadata/version-hint.text").write_text("1")
    iceberg(tmp_path, 1, ours, snapshot(12, "replace", parent=11), merged)
    assert tables.written("d/t", 11) == Written(13, NOTE)
    iceberg(tmp_path, 2, ours, snapshot(12, "append", parent=11), merged)
    assert tables.written("d/t", 11) == Written(13, None)
    assert tables.written("d/t", 13) == Written(13, NOTE)
    replaced = snapshot(14, "append", note=NOTE)  # which has no parent
    iceberg(tmp_path, 3, ours, snapshot(12, "append", parent=11), merged, replaced)
    assert tables.written("d/t", 11) == Written(14, NOTE)


def test_spark_is_not_needed_to_find_it() -> None:
    assert SparkSession.getActiveSession() is None


@pytest.mark.parametrize(
    "columns",
    [("id", "_deleted"), ("id", "_POS"), ("2024", "_2024"), ("a.b", "a_x2Eb"), ("K", "\N{KELVIN SIGN}")],
)
def test_columns_that_iceberg_can_not_have(columns: tuple[str, ...], tmp_path: Path) -> None:
    tables = of_folder(tmp_path)
    why = tables.unfit(columns)
    assert columns[1] in why
    assert not tables.unfit(columns[:1])


def test_names_in_files_are_those_of_iceberg() -> None:
    names = ("id", "2024", "a.b", "é", "a b", "$")
    assert [in_files(name) for name in names] == ["id", "_2024", "a_x2Eb", "é", "a_x20b", "_x24"]
    assert unfit(["2024", "_2024"], ()) == ""


def test_columns_that_are_one_to_spark() -> None:
    """As Java ignores case: each letter's upper case, then the lower case of that."""
    for names in (("ı", "i"), ("a", "A"), ("ſ", "s"), ("K", "\N{KELVIN SIGN}"), ("µ", "μ")):
        assert "become one" in unfit(names, ()), names
    assert unfit(["ß", "ss", "é", "e", "ẞ2"], ()) == ""


def test_into_which_columns_rows_are_merged(tmp_path: Path) -> None:
    delta = DeltaTables(None, LocalFolder(tmp_path))  # type: ignore[arg-type]
    for columns in (["id", "_Row_Dropped_"], ["packedCdc"]):
        assert not delta.merges(columns)
    assert delta.merges(["id", "_dropped", "__row_operation"])
    iceberg = of_folder(tmp_path)
    for columns in (["id", "__Row_Operation"], ["__original_row_id_c"]):
        assert not iceberg.merges(columns)
    assert iceberg.merges(["id", "row_operation", "_row_dropped_"])


def test_the_feed_of_delta_takes_more_names(tmp_path: Path) -> None:
    tables = DeltaTables(None, LocalFolder(tmp_path))  # type: ignore[arg-type]
    columns = ["id", "__is_CDC"]
    assert not tables.unfit(columns)
    tables.change_feed = True
    assert "__is_CDC" in tables.unfit(columns)
