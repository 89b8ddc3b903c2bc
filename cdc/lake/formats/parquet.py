"""Tables of plain Parquet: folders that Spark writes as a whole, and a file that says which of them are the table.

    _current.json   the pointer: the version, the folders that are its rows, with the sizes of their files, and the note
    _v7/            rows that the commit of version 7 wrote

Readers leave out folders whose names begin so, where one gives them that of the table: it has rows of several versions.

Invariant: a folder is written and flushed completely before the pointer names it, by one rename. So a kill leaves the
table as it was, or as it was to be, and a folder that the pointer does not name is no rows of it.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.lake.commit_metadata import Note, Written
from cdc.lake.folder import quoted, unfit, version_folder
from cdc.spark.folders.folder import Folder

__all__ = ["POINTER", "ParquetTables", "Part", "put_together"]

POINTER = "_current.json"
_TOGETHER = 10  # folders of so many commits each become one
_DAMAGED = (ValueError, KeyError, TypeError)
_NAME = re.compile("_v[1-9][0-9]*")
_PATTERN = re.compile(r"[\\\[\]{}*?]")
_FILE_BYTES = 128 << 20  # of a file that puts folders together


@dataclass(frozen=True, slots=True)
class Part:
    """A folder of rows, which ``commits`` commits appended, and the ``files`` in it with their sizes in bytes."""

    name: str
    commits: int
    files: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Pointer:
    """A table's ``version`` is the rows in its ``folders``; ``before`` are those of the version before."""

    version: int
    folders: tuple[Part, ...]
    before: tuple[str, ...]
    note: str

    @classmethod
    def parse(cls, text: str) -> "_Pointer":
        """Raises KeyError, TypeError or ValueError for a damaged one."""
        tree = json.loads(text)
        folders = tuple(Part(**each) for each in tree["folders"])
        return cls(int(tree["version"]), folders, tuple(tree["before"]), tree["note"])


class ParquetTables:
    """The tables in Parquet below the folder ``lake``."""

    settings: Mapping[str, str] = {}

    def __init__(self, spark: SparkSession, lake: Folder) -> None:
        self._spark, self._lake = spark, lake
        # Spark's default is INT96, which other readers take as obsolete, or not at all.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

    def written(self, folder: str, since: int | None) -> Written | None:
        """The version that the pointer names, None where there is no table. Its note counts as long as its files are
        those that were written. ``since`` costs nothing here."""
        text = self._lake.read(f"{folder}/{POINTER}")
        if text is None:
            return None
        try:
            pointer = _Pointer.parse(text)
        except _DAMAGED:
            return Written(self._newest(folder), None)
        # What else was written to them, or is missing, is found by names and sizes.
        same = all(self._files(f"{folder}/{each.name}") == each.files for each in pointer.folders)
        return Written(pointer.version, Note.parse(pointer.note) if same else None)

    def unfit(self, columns: Sequence[str]) -> str:
        """Why no table can have these columns; empty where one can."""
        return unfit(columns, ())

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Make ``rows`` all of the table, with their columns."""
        self._commit(rows, folder, note, keeping=(), commits=1)

    def merge(self, net: DataFrame, folder: str, columns: tuple[str, ...], key: tuple[str, ...], note: Note) -> None:
        """Apply the rows ``net`` (see ``rows.net_rows``) of a table with these columns: writes all of it again."""
        source = {name: f"c{at}" for at, name in enumerate(columns)}
        same = [F.expr(f"t.{quoted(name)} = s.{source[name]}") for name in key]
        came = net.persist()  # it is read twice
        try:
            others = self._rows(folder).alias("t").join(came.alias("s"), same, "left_anti")
            new = came.where("NOT gone").select(*(F.col(at).alias(name) for name, at in source.items()))
            self.replace(others.unionByName(new), folder, note)
        finally:
            came.unpersist()

    def append(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Add ``rows`` to the table, whose columns they have.

        Folders of ten commits become one, ten of these one again, so a table has few, and a row is written few times.
        """
        kept, joined = put_together(self._pointer(folder).folders)
        if joined:
            size = sum(sum(each.files.values()) for each in joined)
            rows = rows.unionByName(self._read(folder, joined)).coalesce(1 + size // _FILE_BYTES)
        self._commit(rows, folder, note, keeping=kept, commits=1 + sum(each.commits for each in joined))
        self.clean(folder, ())

    def empty(self, folder: str, note: Note) -> None:
        """Remove all rows of the table."""
        self.replace(self._rows(folder).limit(0), folder, note)

    def clean(self, folder: str, versions: Collection[int]) -> None:
        """Remove all folders but those of the table, of its version before, and of these ``versions``."""
        pointer = self._pointer(folder)
        kept = {*pointer.before, *(each.name for each in pointer.folders), *map(version_folder, versions)}
        for name in self._folders(folder):
            if name not in kept:
                self._lake.remove(f"{folder}/{name}")

    def _commit(self, rows: DataFrame, folder: str, note: Note, *, keeping: Sequence[Part], commits: int) -> None:
        """Make ``rows`` and the folders ``keeping`` the table."""
        self._lake.make(folder)
        try:
            before = self._pointer(folder)
        except _DAMAGED:
            before = _Pointer(0, (), (), "")
        # Also above folders that a kill left, so that a version's folder is never written to again.
        version = 1 + max(before.version, self._newest(folder))
        name = version_folder(version)
        rows.write.parquet(self._lake.at(f"{folder}/{name}"))
        self._lake.flush(f"{folder}/{name}")
        parts = (*keeping, Part(name, commits, self._files(f"{folder}/{name}")))
        pointer = _Pointer(version, parts, tuple(each.name for each in before.folders), note.text())
        self._lake.replace(f"{folder}/{POINTER}", json.dumps(asdict(pointer), ensure_ascii=False))

    def _pointer(self, folder: str) -> _Pointer:
        """That of a table. Raises KeyError, TypeError or ValueError where it has none or a damaged one."""
        return _Pointer.parse(self._lake.read(f"{folder}/{POINTER}") or "")

    def _files(self, name: str) -> dict[str, int]:
        return {each.name: each.size for each in self._lake.entries(name) if each.name.endswith(".parquet")}

    def _folders(self, table: str) -> list[str]:
        return [name for name in self._lake.names(table) if _NAME.fullmatch(name)]

    def _newest(self, table: str) -> int:
        """The highest number of a folder, whether it is of a version or was left by a kill."""
        return max((int(name[2:]) for name in self._folders(table)), default=0)

    def _rows(self, folder: str) -> DataFrame:
        return self._read(folder, self._pointer(folder).folders)

    def _read(self, folder: str, parts: Iterable[Part]) -> DataFrame:
        # Spark takes some characters of a path as those of a pattern.
        paths = [_PATTERN.sub(r"\\\g<0>", self._lake.at(f"{folder}/{each.name}")) for each in parts]
        return self._spark.read.parquet(*paths)


def put_together(parts: Sequence[Part]) -> tuple[Sequence[Part], Sequence[Part]]:
    """Those of a table that stay as they are, and those at its end that become one with what is appended now."""
    end, commits = len(parts), 1
    others = _TOGETHER - 1
    while end >= others and all(each.commits == commits for each in parts[end - others : end]):
        end, commits = end - others, commits * _TOGETHER
    return parts[:end], parts[end:]
