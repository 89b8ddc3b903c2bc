"""A lake's folder: one process at a time, one stream, and a state that is replaced as a whole."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from cdc.errors import PromiseError, UserError
from cdc.lake.commits import Note, Written
from cdc.lake.folder import Held, LakeFolder, State
from cdc.lake.pipeline import Lake, Tables
from cdc.model.read_record import ReadRecord
from cdc.spark.folders import LocalFolder
from cdc.spark.frames.schema_history import NOTHING
from cdc.spark.frames.typed import Options
from tests.unit.spark.test_history_text import HISTORY

IDENTITY = {"format": "delta", "resource": "l", "topic": "t", "layout": "single", "prefix": ""}
STATE = State(
    9, "gtid:4", {"t/0": 12}, {"flv://l/d/t": 8}, {"t": "id"}, {"zero_dates": "null"}, HISTORY,
    (Held(("d", "t"), "d/t", 3), Held(("d", "é"), "d/~e9~", 1 << 60)),
    read={"t/0": (ReadRecord(9, 11, "b.1", 4, 5), ReadRecord(7, 9, "b.1", 3, 4)), "u/0": ()},
)  # fmt: skip


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    folder = LakeFolder(LocalFolder(tmp_path / "lake"), IDENTITY)
    assert folder.load() == State()
    folder.save(STATE)
    folder.close()
    again = LakeFolder(LocalFolder(tmp_path / "lake"), IDENTITY)
    assert again.load() == STATE
    again.close()
    listed = json.loads((tmp_path / "lake/lake.json").read_text())
    assert (listed["sequence"], listed["transaction"], listed["resource"]) == (9, "gtid:4", "l")
    assert listed["tables"][0] == {"database": "d", "table": "t", "folder": "d/t", "version": 3}
    assert (tmp_path / "lake/_cdc/state.json").stat().st_mode & 0o77 == 0, "statements may have secrets"


def test_another_process_is_refused(tmp_path: Path) -> None:
    folder = LakeFolder(LocalFolder(tmp_path), IDENTITY)
    with pytest.raises(UserError, match="another cdc-lake writes to this lake"):
        LakeFolder(LocalFolder(tmp_path), IDENTITY)
    folder.close()
    LakeFolder(LocalFolder(tmp_path), IDENTITY).close()


def test_a_state_that_another_process_saved_is_noticed(tmp_path: Path) -> None:
    """As it can where there is no lock."""
    folder = LakeFolder(LocalFolder(tmp_path), IDENTITY)
    folder.load()
    folder.save(STATE)
    folder.save(replace(STATE, sequence=10))
    file = tmp_path / "_cdc/state.json"
    file.write_text(file.read_text().replace("gtid:4", "gtid:5"))
    with pytest.raises(PromiseError, match="another process wrote to this lake meanwhile"):
        folder.save(replace(STATE, sequence=11))
    folder.close()


@pytest.mark.parametrize("other", [{"format": "iceberg"}, {"resource": "m"}, {"topic": "u"}, {"prefix": "p"}])
def test_a_lake_of_another_is_refused(tmp_path: Path, other: dict[str, str]) -> None:
    first = LakeFolder(LocalFolder(tmp_path), IDENTITY)
    first.save(STATE)
    first.close()
    folder = LakeFolder(LocalFolder(tmp_path), IDENTITY | other)
    with pytest.raises(UserError, match=f"the lake was made with {next(iter(other))}"):
        folder.load()
    folder.close()


@pytest.mark.parametrize("content", ["", "{}", '{"format": 1}', "[1]"])
def test_a_damaged_state_is_refused(tmp_path: Path, content: str) -> None:
    folder = LakeFolder(LocalFolder(tmp_path), IDENTITY)
    (tmp_path / "_cdc/state.json").write_text(content)
    with pytest.raises(UserError, match="cannot read the lake's state"):
        folder.load()
    folder.close()


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(UserError, match=r"other files and no lake: 'photo\.jpg'"):
        LakeFolder(LocalFolder(tmp_path), IDENTITY)


def test_a_dropped_table_is_moved_once(tmp_path: Path) -> None:
    folder, held = LakeFolder(LocalFolder(tmp_path), IDENTITY), STATE.tables[0]
    for _ in range(2):
        (tmp_path / "d/t").mkdir(parents=True)
        assert folder.remove(held, 9) == str(tmp_path / "_dropped/d/t~9")
    assert folder.remove(held, 9) is None
    folder.close()


def test_as_of_which_sequence_a_table_is(tmp_path: Path) -> None:
    """What is not read again must be in the table already: else it is written as a whole."""
    folder = LakeFolder(LocalFolder(tmp_path), IDENTITY)
    lake = Lake(folder, None, None, Options(), lambda name: True, replace(STATE, history=NOTHING))  # type: ignore[arg-type]
    held, note = STATE.tables[0], Note("d", "t", 5, "", "")
    assert lake._base(held, Written(3, note)) == 9, "unchanged since the state was saved"
    assert lake._base(held, Written(4, replace(note, sequence=11))) == 11, "of a run that was killed"
    assert lake._base(None, Written(0, replace(note, sequence=11))) == 11
    assert lake._base(held, Written(2, note)) is None, "an older version was put back"
    assert lake._base(held, Written(4, None)) is None, "something else wrote"
    assert lake._base(held, None) is None
    folder.close()


def test_a_version_of_something_else_is_not_maintained(tmp_path: Path) -> None:
    """An older version that was put back is written as a whole by the next run, as without maintenance."""
    of_lake = {"d/t": 2, "d/~e9~": 1 << 60}
    maintained = list[str]()

    def maintain(folder: str, note: Note, version: int) -> None:
        maintained.append(folder)
        of_lake[folder] += 1
        notes[folder] = note

    notes = {name: Note("d", name, 5, "", "") for name in of_lake}
    written = lambda name, since: Written(of_lake[name], notes[name])  # noqa: E731
    tables = cast(Tables, SimpleNamespace(written=written, maintain=maintain))
    folder = LakeFolder(LocalFolder(tmp_path), IDENTITY)
    lake = Lake(folder, tables, None, Options(), lambda name: True, replace(STATE, history=NOTHING))  # type: ignore[arg-type]
    lake.maintain()
    assert maintained == ["d/~e9~"]
    assert [each.version for each in lake.state.tables] == [3, (1 << 60) + 1]
    assert lake._base(lake.state.tables[0], Written(2, notes["d/t"])) is None
    assert notes["d/~e9~"].sequence == 9
    lake.maintain(lambda: True)
    assert maintained == ["d/~e9~"], "it was told to stop"
    folder.close()
