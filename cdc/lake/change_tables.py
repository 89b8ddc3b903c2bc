"""Appends rows to a lake's tables of changes. A table of changes contains one row for each changed row, and one row for
each statement.

There is one table of changes for each name that a table of the leader ever had. Its columns ``before`` and ``after``
contain the row images as the records contain them. So a statement on the leader never changes the columns of a table of
changes, and later records never change its values.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdc.errors import CdcError, UserError
from cdc.lake.commits import Note, Written
from cdc.lake.folder import CHANGES, State, folder
from cdc.lake.formats.iceberg_catalog import NotOurs
from cdc.lake.new_records import Arrived
from cdc.lake.rows import of_error
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import Act, Name, table_name
from cdc.spark.frames.api import of_all_tables
from cdc.spark.input.small_data import local_frame

__all__ = ["Append", "ChangeTables"]

_STATEMENTS = frozenset({"CreateTable", "AlterTable", "RenameTable", "TruncateTable", "DropTable", "DropDatabase"})
_DEFINITION = "changes 1"
_AGAIN = "move its folder out of the lake: the next run makes it again from the records in the topics"
_MAP = "CAST(NULL AS MAP<STRING, STRING>)"
_OF_STATEMENT = (
    "'statement' AS op", f"{_MAP} AS before", f"{_MAP} AS after", "sequence", "row", "gtid",
    "named_struct('file', file, 'offset', offset) AS position", "timestamp_micros(ts_us) AS commit_time",
    "CAST(NULL AS BOOLEAN) AS ends_transaction", "statement",
)  # fmt: skip


class AppendedTables(Protocol):
    """Writes and reads the tables of one format. Each writing method makes exactly one commit, and stores its argument
    ``note`` in the metadata of the commit.
    """

    def written(self, folder: str, since: int | None) -> Written | None: ...

    def replace(self, rows: DataFrame, folder: str, note: Note) -> None: ...

    def append(self, rows: DataFrame, folder: str, note: Note) -> None: ...

    def maintain(self, folder: str, note: Note, version: int) -> None: ...


@dataclass(frozen=True, slots=True)
class Append:
    """The changes of table ``name`` to append: all changes after sequence ``base``. ``base`` is -1 if the table of
    changes does not exist yet.

    ``again`` is true if an earlier run has already read some of the records with these changes, so that they must be
    read again. ``acts`` are the statements among the changes.
    """

    name: Name
    base: int
    again: bool
    acts: tuple[Act, ...]


@dataclass(slots=True)
class ChangeTables:
    """The tables of changes, in the format of ``tables``, of the leader's tables for which ``selects`` is true."""

    tables: AppendedTables
    selects: Callable[[Name], bool]
    # maps each folder to the newest version that was read; older versions need not be read again
    _newest: dict[str, int] = field(default_factory=dict)

    def appends(
        self, arrived: Arrived, state: State, acts: Iterable[Act], refused: dict[Name, CdcError]
    ) -> list[Append]:
        """Finds the changes to append for each table, up to the run's sequence; ``acts`` are all statements up to that
        sequence. Adds to ``refused`` the tables whose table of changes would be one that the catalog has already.

        Raises UserError if the topics lack some of the changes, if a table of changes already contains later changes,
        or if another program has written to it.
        """
        of_name = _by_name(acts)
        found = []
        for uri, last in sorted(arrived.last.items()):
            name = table_name(uri)
            if name is None or not self.selects(name):
                continue
            try:
                base = self._base(name, arrived.upto)
            except NotOurs as error:
                refused[name] = error
                continue
            missing = tuple(act for act in of_name(name) if act.sequence > base)
            if last > base or missing:
                again = state.last.get(uri, -1) > base
                if again and base >= 0 and arrived.source.cut:
                    raise UserError(
                        f"changes after sequence {base} are missing in the lake, and retention has cut the stream",
                        code="CDC-LAKE-CHANGES-MISSING",
                        where=f"changes of table {'.'.join(name)}",
                        hint=_AGAIN,
                    )
                found.append(Append(name, base, again, missing))
        return found

    def append(self, step: Append, arrived: Arrived) -> None:
        """Appends the changes in one commit. The note of the commit contains the sequence up to which the table
        contains all changes.
        """
        # The rows and the note are in one commit. So after a kill the note shows which changes the table already
        # contains.
        messages = (arrived.source.of_tables if step.again else arrived.new_rows_of)([step.name])
        rows = of_all_tables(messages, since=step.base + 1, upto=arrived.upto).drop("database", "table")
        rows = rows.withColumn("statement", F.lit(None).cast("string")).unionByName(_statements(arrived, step.acts))
        note = Note(*step.name, arrived.upto, arrived.transaction, _DEFINITION)
        write = self.tables.replace if step.base < 0 else self.tables.append
        write(rows, _folder(step.name), note)

    def maintain(self) -> None:
        """Maintains the tables that this process has read or appended to, as ``Lake.maintain`` does."""
        for path, version in self._newest.items():
            written = self.tables.written(path, version)
            if written is not None and written.note is not None:
                try:
                    self.tables.maintain(path, written.note, written.version)
                except (PySparkException, Py4JError) as error:
                    raise of_error(error, (CHANGES, path.removeprefix(f"{CHANGES}/"))) from error

    def _base(self, name: Name, upto: int) -> int:
        path = _folder(name)
        written = self.tables.written(path, self._newest.get(path))
        if written is None:
            return -1
        where = f"changes of table {'.'.join(name)}"
        if written.note is None or written.note.definition != _DEFINITION:
            raise UserError(
                "something else wrote to a table of changes", code="CDC-LAKE-CHANGES-MISSING", where=where, hint=_AGAIN
            )
        if written.note.sequence > upto:
            raise UserError(
                f"the lake already has the changes up to sequence {written.note.sequence}, which is after {upto}",
                code="CDC-LAKE-CHANGES-AHEAD",
                where=where,
                hint="a lake only goes forward: name a later moment, or another folder",
            )
        self._newest[path] = written.version
        return written.note.sequence


def _folder(name: Name) -> str:
    return f"{CHANGES}/{folder(*name)}"


def _by_name(acts: Iterable[Act]) -> Callable[[Name], list[Act]]:
    """Returns a function that finds the statements for the name of a table. They are the statements on this table, DROP
    DATABASE of its database, and renames of other tables to this name.
    """
    tables: dict[Name, list[Act]] = {}
    databases: dict[str, list[Act]] = {}
    for act in acts:
        if act.action not in _STATEMENTS:
            continue
        if act.action == "DropDatabase":
            databases.setdefault(Uri.parse(act.uri).database, []).append(act)
        for name in {table_name(act.uri), table_name(act.to) if act.to else None} - {None}:
            assert name is not None
            tables.setdefault(name, []).append(act)
    return lambda name: [*tables.get(name, ()), *databases.get(name[0], ())]


def _statements(arrived: Arrived, acts: Iterable[Act]) -> DataFrame:
    rows = [
        {"sequence": act.sequence, "row": act.place, "gtid": act.transaction, "file": act.file, "offset": act.position,
         "ts_us": act.ts_us, "statement": _told(act)}
        for act in acts
    ]  # fmt: skip
    schema = "sequence BIGINT, row INT, gtid STRING, file STRING, offset BIGINT, ts_us BIGINT, statement STRING"
    return local_frame(arrived.source.spark, rows, schema).selectExpr(*_OF_STATEMENT)


def _told(act: Act) -> str:
    """Describes a statement in the form ``RenameTable shop.a to shop.b``; the statement's text is omitted, since it may
    contain secrets."""
    names = [Uri.parse(each) for each in (act.uri, act.to) if each]
    return f"{act.action} " + " to ".join(".".join(filter(None, (each.database, each.table))) for each in names)
