"""Writes tables of plain Parquet. A table consists of folders, each written by Spark as a whole, and of a pointer, a
file that lists the table's folders.

    _current.json   the pointer: the version, the folders with its rows, the sizes of their files, and its metadata
                    (``commits.Note``)
    _v7/            rows that the commit of version 7 wrote

The folder of a table contains the folders of several versions. A reader that reads the whole folder of the table finds
no rows, since readers ignore names that begin with ``_``.

Invariant: a folder is written and flushed completely before the pointer that lists it replaces the old pointer, by a
single rename. So after a kill the table is either the old one or the new one, and a folder that the pointer does not
list contains no rows of the table.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdc.lake.commits import Note, Written
from cdc.lake.folder import quoted, unfit, version_folder
from cdc.spark.folders import Folder, as_pattern

__all__ = ["POINTER", "ParquetTables", "Part", "put_together"]

POINTER = "_current.json"
_TOGETHER = 10  # if this many folders have the same number of commits, they are merged into one folder
_DAMAGED = (ValueError, KeyError, TypeError)
_NAME = re.compile("_v[1-9][0-9]*")
_FILE_BYTES = 128 << 20  # bytes; the size of the files that a merge of folders writes


@dataclass(frozen=True, slots=True)
class Part:
    """A folder with rows: its ``name``, the number of ``commits`` that appended the rows, and its ``files`` with their
    sizes in bytes."""

    name: str
    commits: int
    files: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Pointer:
    """The pointer of a table. It contains the ``version``, the ``folders`` with its rows, the folder names of the
    previous version (``before``), and the note as text.
    """

    version: int
    folders: tuple[Part, ...]
    before: tuple[str, ...]
    note: str

    @classmethod
    def parse(cls, text: str) -> "_Pointer":
        """Parses a pointer. Raises KeyError, TypeError or ValueError if it is damaged."""
        tree = json.loads(text)
        folders = tuple(Part(**each) for each in tree["folders"])
        return cls(int(tree["version"]), folders, tuple(tree["before"]), tree["note"])


class ParquetTables:
    """The tables of a lake in the format Parquet, below the folder ``lake``."""

    settings: Mapping[str, str] = {}

    def __init__(self, spark: SparkSession, lake: Folder) -> None:
        self._spark, self._lake = spark, lake
        # Spark's default type, INT96, is obsolete, and some readers do not support it.
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")

    def written(self, folder: str, since: int | None) -> Written | None:
        """Returns the version in the pointer; None if the table does not exist.

        The returned note is None if the folders contain other files than cdc-lake wrote. ``since`` is ignored.
        """
        text = self._lake.read(f"{folder}/{POINTER}")
        if text is None:
            return None
        try:
            pointer = _Pointer.parse(text)
        except _DAMAGED:
            return Written(self._newest(folder), None)
        # The names and sizes of the files show whether files were added or removed.
        same = all(self._files(f"{folder}/{each.name}") == each.files for each in pointer.folders)
        return Written(pointer.version, Note.parse(pointer.note) if same else None)

    def unfit(self, columns: Sequence[str]) -> str:
        """Returns the reason why no table can have these columns; empty if a table can have them."""
        return unfit(columns, ())

    def merges(self, columns: Sequence[str]) -> bool:
        """Whether rows can be merged into a table with these columns."""
        return True

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Replaces the rows and columns of the table by ``rows``."""
        self._commit(rows, folder, note, keeping=(), commits=1)

    def merge(self, net: DataFrame, folder: str, columns: tuple[str, ...], key: tuple[str, ...], note: Note) -> None:
        """Applies the changed rows ``net`` (see ``rows.net_rows``) to the table, which has these ``columns``. All rows
        of the table are written again.
        """
        source = {name: f"c{at}" for at, name in enumerate(columns)}
        same = [F.expr(f"t.{quoted(name)} = s.{source[name]}") for name in key]
        came = net.persist()  # persisted, because the changed rows are read twice
        try:
            others = self._rows(folder).alias("t").join(came.alias("s"), same, "left_anti")
            new = came.where("NOT gone").select(*(F.col(at).alias(name) for name, at in source.items()))
            self.replace(others.unionByName(new), folder, note)
        finally:
            came.unpersist()

    def append(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Appends ``rows``, which have the columns of the table.

        Ten folders with one commit each are merged into one folder, ten merged folders are merged again, and so on. So
        a table has few folders, and each row is written only a few times.
        """
        kept, joined = put_together(self._pointer(folder).folders)
        if joined:
            size = sum(sum(each.files.values()) for each in joined)
            rows = rows.unionByName(self._read(folder, joined)).coalesce(1 + size // _FILE_BYTES)
        self._commit(rows, folder, note, keeping=kept, commits=1 + sum(each.commits for each in joined))
        self.clean(folder, ())

    def empty(self, folder: str, note: Note) -> None:
        """Removes all rows of the table."""
        self.replace(self._rows(folder).limit(0), folder, note)

    def clean(self, folder: str, versions: Collection[int]) -> None:
        """Removes all folders except those of the current version, of the version before it, and of ``versions``."""
        pointer = self._pointer(folder)
        kept = {*pointer.before, *(each.name for each in pointer.folders), *map(version_folder, versions)}
        for name in self._folders(folder):
            if name not in kept:
                self._lake.remove(f"{folder}/{name}")

    def maintain(self, folder: str, note: Note, version: int) -> None:
        """Does nothing: each commit merges small folders, and ``clean`` removes old ones."""

    def _commit(self, rows: DataFrame, folder: str, note: Note, *, keeping: Sequence[Part], commits: int) -> None:
        """Writes ``rows`` to a new folder, and replaces the pointer: the new version consists of this folder and the
        folders ``keeping``."""
        self._lake.make(folder)
        try:
            before = self._pointer(folder)
        except _DAMAGED:
            before = _Pointer(0, (), (), "")
        # The new version is also higher than any folder that a killed run has left. So no folder is written twice.
        version = 1 + max(before.version, self._newest(folder))
        name = version_folder(version)
        rows.write.parquet(self._lake.at(f"{folder}/{name}"))
        self._lake.flush(f"{folder}/{name}")
        parts = (*keeping, Part(name, commits, self._files(f"{folder}/{name}")))
        pointer = _Pointer(version, parts, tuple(each.name for each in before.folders), note.text())
        self._lake.replace(f"{folder}/{POINTER}", json.dumps(asdict(pointer), ensure_ascii=False))

    def _pointer(self, folder: str) -> _Pointer:
        """Reads the pointer of a table. Raises KeyError, TypeError or ValueError if the pointer is missing or
        damaged."""
        return _Pointer.parse(self._lake.read(f"{folder}/{POINTER}") or "")

    def _files(self, name: str) -> dict[str, int]:
        return {each.name: each.size for each in self._lake.entries(name) if each.name.endswith(".parquet")}

    def _folders(self, table: str) -> list[str]:
        return [name for name in self._lake.names(table) if _NAME.fullmatch(name)]

    def _newest(self, table: str) -> int:
        """Returns the highest number of a folder, including folders that killed runs have left; 0 if there are no
        folders.
        """
        return max((int(name[2:]) for name in self._folders(table)), default=0)

    def _rows(self, folder: str) -> DataFrame:
        return self._read(folder, self._pointer(folder).folders)

    def _read(self, folder: str, parts: Iterable[Part]) -> DataFrame:
        return self._spark.read.parquet(*(as_pattern(self._lake.at(f"{folder}/{each.name}")) for each in parts))


def put_together(parts: Sequence[Part]) -> tuple[Sequence[Part], Sequence[Part]]:
    """Splits the parts of a table into two groups: parts that stay unchanged, and parts at the end that are merged with
    the rows to append.
    """
    end, commits = len(parts), 1
    others = _TOGETHER - 1
    while end >= others and all(each.commits == commits for each in parts[end - others : end]):
        end, commits = end - others, commits * _TOGETHER
    return parts[:end], parts[end:]
