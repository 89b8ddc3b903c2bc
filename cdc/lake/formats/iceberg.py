"""Writes tables of Iceberg with Spark, in a catalog of folders or in a shared one. Each table is written in one commit,
with the note in the summary of the snapshot.
"""

import hashlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from pyspark.sql import DataFrame, DataFrameWriterV2, SparkSession

from cdc.lake.commits import Note, Written, merge_statement
from cdc.lake.folder import unfit
from cdc.spark.folders import Folder
from cdc.spark.private_names import call_from_java, java_class, java_session

__all__ = ["IcebergTables", "in_files", "metadata_file"]

_NOTE = "cdc_lake"
_RESERVED = frozenset({
    "_deleted", "_file", "_pos", "_partition", "_spec_id", "_row_id", "_last_updated_sequence_number",
})  # fmt: skip
# Columns that Spark's MERGE adds to the rows of the table. With one of them in the table it fails, or writes other
# values into it without an error.
_OF_MERGE = frozenset({"__row_operation", "__row_from_source", "__row_from_target", "__row_id"})
_ALSO_OF_MERGE = "__original_row_id"  # begins the names of such columns, too
_KEPT_SECONDS = 7 * 86_400  # as Delta does by default
_ONLY_FILES = "replace"  # a snapshot with this operation contains the same rows in other files


class Catalog(Protocol):
    """The catalog of the lake's tables: Spark has it under ``name``. ``committing`` surrounds each commit."""

    name: str

    def identifier(self, folder: str) -> str: ...

    def metadata(self, folder: str) -> str | None: ...

    def write(self, writer: DataFrameWriterV2, folder: str) -> None: ...

    def require_own(self, folder: str) -> None: ...

    def committing(self) -> AbstractContextManager[None]: ...


class FolderCatalog:
    """Iceberg's Hadoop catalog, with the folder ``lake`` as its warehouse."""

    def __init__(self, spark: SparkSession, lake: Folder) -> None:
        self._lake = lake
        # The catalog of each lake has its own name, because a Spark session keeps each catalog that it has opened.
        self.name = f"cdc_lake_{hashlib.sha256(lake.address.encode()).hexdigest()[:12]}"
        name = f"spark.sql.catalog.{self.name}"
        spark.conf.set(name, "org.apache.iceberg.spark.SparkCatalog")
        # The cache is off, because the cache would still contain the old table after a table was dropped and created
        # again.
        for key, value in (("type", "hadoop"), ("warehouse", lake.address), ("cache-enabled", "false")):
            spark.conf.set(f"{name}.{key}", value)

    def identifier(self, folder: str) -> str:
        """Returns the name of a table in the catalog."""
        return folder.replace("/", ".")

    def metadata(self, folder: str) -> str | None:
        """Returns the content of the newest metadata file of a table; None if the table does not exist."""
        file = metadata_file(self._lake, folder)
        return None if file is None else self._lake.read(file) or "{}"

    def write(self, writer: DataFrameWriterV2, folder: str) -> None:
        """Creates or replaces a table."""
        writer.createOrReplace()

    def require_own(self, folder: str) -> None:
        """Does nothing: all tables in the lake's folder are its own."""

    def committing(self) -> AbstractContextManager[None]:
        """Does nothing, because no server is asked."""
        return nullcontext()


class IcebergTables:
    """The tables of a lake in the format Iceberg: below the folder ``lake``, or in a shared ``catalog``."""

    settings: Mapping[str, str] = {
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    }

    def __init__(self, spark: SparkSession, lake: Folder, catalog: Catalog | None = None) -> None:
        self._spark, self._catalog = spark, catalog or FolderCatalog(spark, lake)

    def written(self, folder: str, since: int | None) -> Written | None:
        """Returns the newest snapshot that has a note; None if the table does not exist.

        The returned note is None if another writer has changed rows or columns since that snapshot, or between the
        snapshot ``since`` and that snapshot, unless a snapshot between them replaced all rows: that one has no parent.
        If there is no snapshot ``since``, older snapshots are not read.
        """
        text = self._catalog.metadata(folder)
        if text is None:
            return None
        table = json.loads(text)
        snapshots = {each["snapshot-id"]: each for each in table.get("snapshots", [])}
        current = snapshot = snapshots.get(table.get("current-snapshot-id"))
        newest = None
        while snapshot is not None:
            note = Note.parse(snapshot["summary"].get(_NOTE))
            if note is None and snapshot["summary"]["operation"] != _ONLY_FILES:
                newest = None
                break
            if note is not None and newest is None:
                if snapshot.get("schema-id") != table["current-schema-id"]:
                    break
                newest = Written(int(snapshot["snapshot-id"]), note)
            if newest and (since not in snapshots or snapshot["snapshot-id"] == since):
                break
            snapshot = snapshots.get(snapshot.get("parent-snapshot-id"))
        return newest or Written(int(current["snapshot-id"]) if current else -1, None)

    def unfit(self, columns: Sequence[str]) -> str:
        """Returns the reason why no table can have these columns; empty if a table can have them."""
        return unfit(columns, _RESERVED, in_files)

    def merges(self, columns: Sequence[str]) -> bool:
        """Whether rows can be merged into a table with these columns."""
        names = [name.lower() for name in columns]
        return not _OF_MERGE.intersection(names) and not any(name.startswith(_ALSO_OF_MERGE) for name in names)

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Replaces the rows and columns of the table by ``rows``."""
        writer = rows.writeTo(self._name(folder)).using("iceberg").tableProperty("format-version", "2")
        self._catalog.write(writer.option(f"snapshot-property.{_NOTE}", note.text()), folder)

    def merge(self, net: DataFrame, folder: str, columns: tuple[str, ...], key: tuple[str, ...], note: Note) -> None:
        """Applies the changed rows ``net`` (see ``rows.net_rows``) to the table, which has these ``columns``."""
        self._catalog.require_own(folder)
        view = "cdc_lake_net"
        net.createOrReplaceTempView(view)
        statement = merge_statement(self._name(folder), view, columns, key)
        try:
            with self._catalog.committing():
                self._with_note(note, lambda: self._spark.sql(statement))
        finally:
            self._spark.catalog.dropTempView(view)

    def append(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Appends ``rows``, which have the columns of the table."""
        self._catalog.require_own(folder)
        with self._catalog.committing():
            rows.writeTo(self._name(folder)).option(f"snapshot-property.{_NOTE}", note.text()).append()

    def empty(self, folder: str, note: Note) -> None:
        """Removes all rows of the table."""
        self.replace(self._spark.read.table(self._name(folder)).limit(0), folder, note)

    def clean(self, folder: str, versions: Collection[int]) -> None:
        """Does nothing: expire_snapshots removes old files, when the lake's owner decides so."""

    def maintain(self, folder: str, note: Note, version: int) -> None:
        """Merges small files in one commit, and removes the snapshots that are older than a week and than the snapshot
        ``version``, which readers still find in the lake's list. Nothing is committed if there are no small files.
        """
        # The procedures of SQL take no note. Without it, the newest snapshot with a note would be removed after a week.
        with self._catalog.committing():
            table = java_class(self._spark, "org.apache.iceberg.spark.Spark3Util").loadIcebergTable(
                java_session(self._spark), self._name(folder)
            )
            actions = java_class(self._spark, "org.apache.iceberg.spark.actions.SparkActions").get()
            actions.rewriteDataFiles(table).snapshotProperty(_NOTE, note.text()).execute()
            table.refresh()
            older = min(int((time.time() - _KEPT_SECONDS) * 1000), table.snapshot(version).timestampMillis())
            actions.expireSnapshots(table).expireOlderThan(older).retainLast(1).execute()

    def _name(self, folder: str) -> str:
        return ".".join(f"`{part}`" for part in (self._catalog.name, *self._catalog.identifier(folder).split(".")))

    def _with_note(self, note: Note, work: Callable[[], object]) -> None:
        """Runs ``work`` so that its commits contain ``note``. Iceberg takes the properties of a commit from the thread
        that executes the statement, so Java calls ``work`` in a thread with these properties.
        """
        properties = java_class(self._spark, "java.util.HashMap")()
        properties.put(_NOTE, note.text())
        failure = java_class(self._spark, "java.lang.Class").forName("java.lang.RuntimeException")
        commits = java_class(self._spark, "org.apache.iceberg.spark.CommitMetadata")
        call_from_java(self._spark, work, lambda called: commits.withCommitProperties(properties, called, failure))


def metadata_file(lake: Folder, table: str) -> str | None:
    """Finds the newest metadata file of a table in a catalog of folders; None if the table does not exist."""
    folder = f"{table}/metadata"
    try:
        version = int(lake.read(f"{folder}/version-hint.text") or "")
    except ValueError:
        return None
    # The version hint is written after the metadata file, so it may be older than the newest metadata file.
    while lake.exists(f"{folder}/v{version + 1}.metadata.json"):
        version += 1
    file = f"{folder}/v{version}.metadata.json"
    return file if lake.exists(file) else None


def in_files(name: str) -> str:
    """Returns the name of a column in Iceberg's files. It consists of letters, digits and ``_``, and does not begin
    with a digit.
    """
    return "".join(_in_files(character, at) for at, character in enumerate(name))


def _in_files(character: str, at: int) -> str:
    if character == "_" or character.isalpha() or (at and character.isdecimal()):
        return character
    return f"_{character}" if character.isdecimal() else f"_x{ord(character):X}"
