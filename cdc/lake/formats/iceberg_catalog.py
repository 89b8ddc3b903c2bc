"""Keeps the tables of a lake in a catalog that others use, too: an Iceberg REST catalog, or a Hive metastore.

Each table has two properties, which name the lake that made it and its place in that lake. A table without them, or
with others, belongs to another lake or program: it is never written, replaced or renamed.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameWriterV2, SparkSession

from cdc.errors import CdcError, ServerGone, UserError
from cdc.lake.catalog_file import CatalogFile
from cdc.spark.job.output import root_cause
from cdc.spark.private_names import java_causes, java_class, java_errors, java_session, make_active, set_hidden

__all__ = ["CatalogGone", "NotOurs", "SharedCatalog"]

_LAKE, _TABLE = "cdc_lake.owner", "cdc_lake.table"
_ICEBERG = "org.apache.iceberg.exceptions."
_ABSENT = frozenset(_ICEBERG + name for name in ("NoSuchTableException", "NoSuchNamespaceException"))
_OF_ANOTHER_FORMAT = _ICEBERG + "NoSuchIcebergTableException"
_THERE = frozenset({
    _ICEBERG + "AlreadyExistsException", "org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException",
})  # fmt: skip
_REFUSING = frozenset(
    _ICEBERG + name for name in ("NotAuthorizedException", "ForbiddenException", "BadRequestException")
)
_UNSUPPORTED = "java.lang.UnsupportedOperationException"  # not every catalog renames tables
_UNKNOWN = _ICEBERG + "CommitStateUnknownException"
_META = "org.apache.hadoop.hive.metastore.api.MetaException"
_NOT_CONNECTED = "Could not connect to meta store"  # begins the message of a MetaException that a client itself raises
_TRANSPORT = "org.apache.thrift.transport.TTransportException"
_GONE = frozenset({
    *(_ICEBERG + name for name in ("ServiceUnavailableException", "ServiceFailureException", "RESTException",
                                   "CommitFailedException")),
    _UNKNOWN,
    "org.apache.iceberg.hive.RuntimeMetaException", _META, _TRANSPORT,
})  # fmt: skip


class NotOurs(UserError):
    """The catalog has a table under this name which another lake, or another program, made."""


class CatalogGone(ServerGone):
    """The catalog does not answer, or has failed, perhaps after it has committed. The next run reads from the table
    itself what was committed.
    """


class SharedCatalog:
    """The catalog of ``file``, for the tables that the lake with the id ``owner`` has made."""

    def __init__(self, spark: SparkSession, file: CatalogFile, owner: str) -> None:
        self._spark, self._file, self._owner = spark, file, owner
        # A Spark session keeps each catalog that it has opened under its name.
        self.name = f"cdc_lake_{hashlib.sha256(f'{owner} {file.identity()}'.encode()).hexdigest()[:12]}"
        prefix = f"spark.sql.catalog.{self.name}"
        set_hidden(spark, f"{prefix}.", {f"{prefix}.{key}": value for key, value in file.settings().items()})
        spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")

    def identifier(self, folder: str) -> str:
        """Returns the name of a table in this catalog, with dots between its levels."""
        return self._file.identifier(folder)

    def metadata(self, folder: str) -> str | None:
        """Returns the metadata of a table, in the JSON of Iceberg's metadata files; None if the table does not exist.
        Raises NotOurs, and CatalogGone.
        """
        with self.committing():
            table = self._load(folder)
            if table is None:
                return None
            parser = java_class(self._spark, "org.apache.iceberg.TableMetadataParser")
            return str(parser.toJson(table.operations().current()))

    def write(self, writer: DataFrameWriterV2, folder: str) -> None:
        """Creates or replaces a table. Raises NotOurs if the catalog has a table of others under its name."""
        writer = writer.tableProperty(_LAKE, self._owner).tableProperty(_TABLE, folder)
        with self.committing():
            if self._load(folder) is not None:
                writer.replace()
                return
            self._make_namespace(self.identifier(folder))
            # Fails if there is a view of that name, or if another program creates the table meanwhile. CREATE OR
            # REPLACE would replace that table.
            try:
                writer.create()
            except (PySparkException, Py4JError) as error:
                if _THERE.intersection(java_errors(error)):
                    raise self._taken(folder, ", or the view, of this name") from error
                raise

    def require_own(self, folder: str) -> None:
        """Raises NotOurs if the table is not one that this lake has made."""
        with self.committing():
            self._load(folder)

    def remove(self, folder: str, sequence: int) -> str | None:
        """Renames a table that the leader has no longer, and returns its new name; None if this lake has no table of
        that name.
        """
        with self.committing():
            try:
                if self._load(folder) is None:
                    return None
            except NotOurs:
                return None
            target = wanted = self._file.dropped(folder, sequence)
            again = 1
            while self._catalog().tableExists(self._parsed(target)):
                again += 1
                target = f"{wanted}_{again}"
            self._make_namespace(target)
            self._rename(self.identifier(folder), target)
            return target

    def _rename(self, identifier: str, target: str) -> None:
        try:
            self._catalog().renameTable(self._parsed(identifier), self._parsed(target))
        except (PySparkException, Py4JError) as error:
            if not (_REFUSING | {_UNSUPPORTED}).intersection(java_errors(error)):
                raise
            raise UserError(
                f"the catalog refuses to rename a table that the leader has no longer: {root_cause(error)[:300]}",
                code="CDC-LAKE-CATALOG-REFUSES", where=f"table {identifier} of catalog {self._file.uri}",
                hint=f"drop it there, or allow that it is renamed to {target}",
            ) from error  # fmt: skip

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Converts errors of the catalog in the block to CatalogGone, or to UserError if the catalog refuses what is
        asked of it.
        """
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if (found := self._error(error)) is not None:
                raise found from error
            raise

    def _error(self, error: Exception) -> CdcError | None:
        causes, message = java_causes(error), root_cause(error)[:300]
        names = [name for name, _ in causes]
        of_metastore = _of_metastore(causes)
        if of_metastore or _REFUSING.intersection(names):
            return UserError(
                f"the catalog refuses: {of_metastore or message}", code="CDC-LAKE-CATALOG-REFUSES",
                where=f"catalog {self._file.uri}",
                hint="correct the file that --catalog names, or the rights in the catalog",
            )  # fmt: skip
        if _GONE.intersection(names):
            return CatalogGone(
                f"the catalog has failed, or does not answer: {message}", code="CDC-LAKE-CATALOG-GONE",
                where=f"catalog {self._file.uri}", hint="run cdc-lake again once it answers: it continues",
            )  # fmt: skip
        return None

    def _load(self, folder: str) -> Any:
        """Loads a table; None if it does not exist. Raises NotOurs."""
        identifier = self.identifier(folder)
        try:
            table = self._catalog().loadTable(self._parsed(identifier))
        except Py4JError as error:
            names = java_errors(error)[:1]
            if _ABSENT.intersection(names):
                return None
            if _OF_ANOTHER_FORMAT in names:  # Hive has tables of other formats, and views
                raise self._taken(folder, ", which has another format") from error
            raise
        properties = table.properties()
        if properties.get(_LAKE) != self._owner:
            raise self._taken(folder)
        if properties.get(_TABLE) != folder:
            raise NotOurs(
                f"the table is {properties.get(_TABLE)} of this lake, and can't be {folder}, too",
                code="CDC-LAKE-CATALOG-NAMES", where=f"table {identifier} of catalog {self._file.uri}", hint=_RENAME,
            )  # fmt: skip
        return table

    def _taken(self, folder: str, more: str = "") -> NotOurs:
        return NotOurs(
            f"this lake has not made the table{more}", code="CDC-LAKE-CATALOG-TABLE",
            where=f"table {self.identifier(folder)} of catalog {self._file.uri}",
            hint="rename or drop it there, take another namespace for a new lake, or leave it out with --without",
        )  # fmt: skip

    def one_name(self, folders: list[str]) -> dict[str, UserError]:
        """Maps each of the ``folders`` whose table would have the same name in the catalog as another one to the
        reason why it is refused.
        """
        of_name: dict[str, list[str]] = {}
        for folder in folders:
            of_name.setdefault(self.identifier(folder), []).append(folder)
        return {
            folder: NotOurs(
                f"{' and '.join(group)} become one table in the catalog", code="CDC-LAKE-CATALOG-NAMES",
                where=f"table {name} of catalog {self._file.uri}", hint=_RENAME,
            )
            for name, group in of_name.items() if len(group) > 1 for folder in group
        }  # fmt: skip

    def _make_namespace(self, identifier: str) -> None:
        *levels, _ = identifier.split(".")
        for depth in range(1, len(levels) + 1):
            name = ".".join(f"`{level}`" for level in (self.name, *levels[:depth]))
            self._spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name}")

    def _catalog(self) -> Any:
        make_active(self._spark)  # Spark loads a catalog by the settings of the active session
        of_spark = java_class(self._spark, "org.apache.iceberg.spark.Spark3Util")
        return of_spark.loadIcebergCatalog(java_session(self._spark), self.name)

    def _parsed(self, identifier: str) -> Any:
        return java_class(self._spark, "org.apache.iceberg.catalog.TableIdentifier").parse(identifier)


def _of_metastore(causes: list[tuple[str, str]]) -> str:
    """Returns the reason why a Hive metastore has refused what was asked of it; empty if none of the ``causes`` is its
    answer. With most of its own errors a metastore answers with the same exception, whatever the error is.
    """
    names = [name for name, _ in causes]
    if _TRANSPORT in names or _UNKNOWN in names:
        return ""
    texts = (text for name, text in causes if name == _META and _NOT_CONNECTED not in text)
    return next(texts, "")[:300]


_RENAME = "rename one of the tables on the leader, or leave one out with --without"
