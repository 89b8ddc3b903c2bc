"""A program's folder is the same on this machine and through Hadoop: what is written is read, and replaced.

Through Hadoop it is a store of objects here, and HDFS in test_hdfs.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.spark.folders import Entry, Folder, LocalFolder
from cdc.spark.hadoop_folder import HadoopFolder

pytestmark = pytest.mark.spark

MAKERS: dict[str, Callable[[SparkSession, Path], Folder]] = {
    "local": lambda spark, path: LocalFolder(path),
    "hadoop": lambda spark, path: HadoopFolder(spark, path.as_uri()),
}


@pytest.fixture(params=MAKERS)
def folder(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Folder:
    return MAKERS[request.param](spark, tmp_path / "lake")


def test_files(folder: Folder, tmp_path: Path) -> None:
    has_files(folder)
    assert [(tmp_path / "lake" / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700, 0o600]


def has_files(folder: Folder) -> None:
    """Files are written, read and listed."""
    assert (folder.names(""), folder.entries("a"), folder.read("a/b"), folder.exists("")) == ([], [], None, False)
    folder.make("")
    folder.make("a", private=True)
    for text in ("first", "é\n" * 100_000):
        folder.replace("a/b", text, private=True)
        assert (folder.read("a/b"), folder.entries("a")) == (text, [Entry("b", False, len(text.encode()))])
    folder.replace("c", "text")
    folder.flush("a")
    assert (folder.names(""), folder.names("a")) == (["a", "c"], ["b"])
    assert folder.at("a/b") == f"{folder.address}/a/b"
    assert folder.at("") == folder.address


def test_folders_are_moved_and_removed(folder: Folder) -> None:
    moves_folders(folder)


def moves_folders(folder: Folder) -> None:
    """What is where a folder is moved to is replaced."""
    for text in ("old", "new"):
        folder.make("x/b")
        folder.replace("x/b/c", text)
        folder.move("x/b", "gone/x/b")
    assert (folder.read("gone/x/b/c"), folder.exists("x/b"), folder.names("gone/x/b")) == ("new", False, ["c"])
    folder.remove("gone/x")
    assert (folder.exists("gone/x"), folder.names("gone")) == (False, [])


def test_what_fails_is_an_error_of_the_system(folder: Folder, spark: SparkSession) -> None:
    folder.make("a/b")
    with pytest.raises(OSError, match="a"):
        folder.replace("a/b", "over a folder")
    with pytest.raises(OSError, match="No FileSystem for scheme"):
        HadoopFolder(spark, "nowhere://host/lake")
