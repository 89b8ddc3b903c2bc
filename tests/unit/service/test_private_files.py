"""What only its owner may read, whatever the umask and whatever was there before."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdc.sandbox.servers import ProfileFiles
from cdc.service.private_files import make_folder, tighten, write_text
from cdc.spark.report.files import clear, staged


@pytest.fixture(autouse=True, params=[0o000, 0o022, 0o277])
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_file_that_is_new_or_was_open_to_all(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.touch()
    old.chmod(0o644)
    for path in (old, tmp_path / "new"):
        write_text(path, "secret ✓")
        assert (mode(path), path.read_text()) == (0o600, "secret ✓")


def test_a_folder_that_is_made_and_one_that_was_there(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    there.chmod(0o750)
    for path, wanted in ((there, 0o750), (tmp_path / "new", 0o700)):
        make_folder(path)
        assert mode(path) == wanted
    (there / "file").touch()
    (there / "file").chmod(0o664)
    (there / "link").symlink_to("/etc/passwd")
    tighten(there)
    assert (mode(there), mode(there / "file")) == (0o700, 0o600)
    with pytest.raises(NotADirectoryError):
        make_folder(there / "file")


def test_a_report_folder_is_ours_unless_it_has_other_things_in_it(tmp_path: Path) -> None:
    for name, others in (("ours", []), ("shared", ["index.html"])):
        folder = tmp_path / name
        folder.mkdir()
        for each in ["report.json", *others]:
            (folder / each).touch()
        folder.chmod(0o755)
        clear(folder)
        assert mode(folder) == (0o755 if others else 0o700)
        with staged(folder) as aside:
            assert mode(aside) == 0o700
            write_text(aside / "report.json", "{}")
        assert mode(folder / "report.json") == 0o600


def test_profiles_of_a_sandbox_hold_a_password(tmp_path: Path) -> None:
    files = ProfileFiles.below(tmp_path)
    files.write(leader_port=1, follower_port=2, kafka_port=3)
    assert {mode(each) for each in (files.producer, files.consumer, files.follower)} == {0o600}
