"""Writes tables of Delta Lake with Spark, each table in one commit, with the note in the commit's userMetadata."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import TimestampNTZType

from cdc.lake.commits import Note, Written, merge_statement
from cdc.lake.folder import CHANGES, unfit
from cdc.spark.folders import Folder

__all__ = ["DeltaTables"]

_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_FEED = "delta.enableChangeDataFeed"
# The columns that the feed adds, and the one that marks its rows while they are written: Delta loses the values of a
# table's own column of that name, without an error.
_OF_FEED = frozenset({"_change_type", "_commit_version", "_commit_timestamp", "__is_cdc"})
# Columns that Delta's MERGE adds to the rows of the table: with some of these names in the table, it fails.
_OF_MERGE = frozenset({
    "_row_dropped_", "_source_row_present_", "_target_row_present_", "_source_row_index", "_target_row_index_",
    "_row_id_", "_file_name_", "_condition_", "_incr_row_count_", "packedcdc",
})  # fmt: skip
_KEPT = ("delta.deletedFileRetentionDuration", "delta.logRetentionDuration")  # properties that users set
_OF_PROPERTIES = ("SET TBLPROPERTIES", "UNSET TBLPROPERTIES")  # operations that change neither rows nor columns
_NEEDS_MAPPING = frozenset(" ,;{}()\n\t=")  # with such a character in a name, Delta needs its column mapping


class DeltaTables:
    """The tables of a lake in the format Delta, below the folder ``lake``. If ``change_feed`` is true, each table that
    is written has Delta's change data feed from then on; tables of changes, which are only appended to, need none.
    """

    settings: Mapping[str, str] = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # By default Delta reads a table's log in 50 tasks, even if the log is short.
        "spark.databricks.delta.snapshotPartitions": "2",
    }

    def __init__(self, spark: SparkSession, lake: Folder) -> None:
        self._spark, self._lake = spark, lake
        self.change_feed = False

    def written(self, folder: str, since: int | None) -> Written | None:
        """Returns the newest version that has a note; None if the table does not exist.

        The returned note is None if another writer has changed rows or columns since that version, or between the
        version ``since`` and that version, unless a version between them replaced all rows. If there is no version
        ``since``, older versions are not read.
        """
        log = f"{folder}/_delta_log"
        versions = self._versions_since(log, since) or self._all_versions(log)
        newest = None
        for version in versions:
            if newest is not None and version == since:
                break
            text = self._lake.read(_file(log, version)) or ""
            actions = [json.loads(line) for line in text.split("\n") if line]
            if (note := Note.parse(_user_metadata(actions))) is not None:
                newest = newest or Written(version, note)
                if since not in versions or _replaces(actions):
                    break
            elif _operation(actions) not in _OF_PROPERTIES and any(map(_changes, actions)):
                return Written(version, None)
        return newest or (Written(versions[-1], None) if versions else None)

    def unfit(self, columns: Sequence[str]) -> str:
        """Returns the reason why no table can have these columns; empty if a table can have them."""
        return unfit(columns, _OF_FEED if self.change_feed else ())

    def merges(self, columns: Sequence[str]) -> bool:
        """Whether rows can be merged into a table with these columns."""
        return not _OF_MERGE.intersection(map(str.lower, columns))

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Replaces the rows and columns of the table by ``rows``. The table keeps how long its old files stay."""
        writer = rows.writeTo(self._name(folder)).using("delta")
        if any(_NEEDS_MAPPING & set(name) for name in rows.columns):
            writer = writer.tableProperty("delta.columnMapping.mode", "name")
        if any(isinstance(each.dataType, TimestampNTZType) for each in rows.schema):
            # Delta adds the feature timestampNtz only when it creates a table. It refuses a column of this type in a
            # table without the feature.
            writer = writer.tableProperty("delta.feature.timestampNtz", "supported")
        # A table that is only emptied may have a column of the feed's own: it goes on without the feed.
        if self._needs_feed(folder) and not self.unfit(rows.columns):
            writer = writer.tableProperty(_FEED, "true")
        before = self._properties(folder)
        for key in before.keys() & _KEPT:
            writer = writer.tableProperty(key, before[key])
        with self._noted(note):
            writer.createOrReplace()

    def merge(self, net: DataFrame, folder: str, columns: tuple[str, ...], key: tuple[str, ...], note: Note) -> None:
        """Applies the changed rows ``net`` (see ``rows.net_rows``) to the table, which has these ``columns``."""
        view = "cdc_lake_net"
        net.createOrReplaceTempView(view)
        try:
            with self._noted(note):
                self._spark.sql(merge_statement(self._name(folder), view, columns, key))
        finally:
            self._spark.catalog.dropTempView(view)

    def append(self, rows: DataFrame, folder: str, note: Note) -> None:
        """Appends ``rows``, which have the columns of the table."""
        with self._noted(note):
            rows.writeTo(self._name(folder)).append()

    def empty(self, folder: str, note: Note) -> None:
        """Removes all rows of the table."""
        self.replace(self._spark.read.table(self._name(folder)).limit(0), folder, note)

    def clean(self, folder: str, versions: Collection[int]) -> None:
        """Does nothing, because VACUUM removes the files of old versions, and the lake's owner decides when to run
        VACUUM.
        """

    def maintain(self, folder: str, note: Note, version: int) -> None:
        """Merges small files in one commit, and removes the files that no version of the last week needs (or of the
        time that a property of the table sets), for which Delta commits a version, too.
        """
        with self._noted(note):
            self._spark.sql(f"OPTIMIZE {self._name(folder)}")
            self._spark.sql(f"VACUUM {self._name(folder)}")

    def begin_feed(self, folder: str, note: Note) -> None:
        """Gives a table that was written without the change data feed the feed from its next version on, by a commit
        with ``note``. A table with a column of the feed's own is left: it is refused once it has to be written.
        """
        name = self._name(folder)
        if self.unfit(self._spark.read.table(name).columns):
            return
        if self._properties(folder).get(_FEED) != "true":
            with self._noted(note):
                self._spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('{_FEED}' = 'true')")

    def _properties(self, folder: str) -> dict[str, str]:
        """Returns the properties of the table; none if it does not exist."""
        log = f"{folder}/_delta_log"  # a run that was killed may have made it, and nothing in it
        if not (self._lake.exists(_file(log, 0)) or self._lake.exists(f"{log}/_last_checkpoint")):
            return {}
        found = self._spark.sql(f"SHOW TBLPROPERTIES {self._name(folder)}")
        return {row["key"]: row["value"] for row in found.collect()}

    def _needs_feed(self, folder: str) -> bool:
        return self.change_feed and not folder.startswith(f"{CHANGES}/")

    def _name(self, folder: str) -> str:
        return f"delta.`{self._lake.at(folder).replace('`', '``')}`"

    def _versions_since(self, log: str, since: int | None) -> list[int]:
        """Returns the versions from ``since`` on, newest first. The folder of the log is not listed, since it may
        contain very many files.
        """
        if since is None:
            return []
        end = since
        while self._lake.exists(_file(log, end)):
            end += 1
        return list(range(end - 1, since - 1, -1))

    def _all_versions(self, log: str) -> list[int]:
        names = (name.removesuffix(".json") for name in self._lake.names(log) if name.endswith(".json"))
        return sorted((int(name) for name in names if name.isdigit()), reverse=True)

    @contextmanager
    def _noted(self, note: Note) -> Iterator[None]:
        self._spark.conf.set(_METADATA, note.text())
        try:
            yield
        finally:
            self._spark.conf.unset(_METADATA)


def _file(log: str, version: int) -> str:
    return f"{log}/{version:020d}.json"


def _user_metadata(actions: list[dict[str, Any]]) -> str | None:
    return next((each["commitInfo"].get("userMetadata") for each in actions if "commitInfo" in each), None)


def _replaces(actions: list[dict[str, Any]]) -> bool:
    """Whether a commit has created the table, or replaced its rows and columns as a whole."""
    return _operation(actions).startswith(("CREATE", "REPLACE"))


def _operation(actions: list[dict[str, Any]]) -> str:
    return next((str(each["commitInfo"].get("operation", "")) for each in actions if "commitInfo" in each), "")


def _changes(action: dict[str, Any]) -> bool:
    """Whether an action of a commit changes rows or columns. The actions of OPTIMIZE do not, since it only merges
    files."""
    of_file = action.get("add") or action.get("remove") or action.get("cdc")
    return "metaData" in action or bool(of_file and of_file.get("dataChange", True))
