"""Logs messages about table copies, and measures the progress and speed of the current copy."""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cdc.config.table_globs import copy_command
from cdc.producer.copy.definition import TableDefinition
from cdc.producer.copy.state import Pending, Table
from cdc.producer.decode.changes import Chunk, Refused, Statement, Structure

__all__ = ["Copying", "ProgressLog", "Speed", "named"]

_SECONDS = 60.0
_APART = 1.0  # seconds between two samples


class Copying(NamedTuple):
    """The progress of the table that is being copied: ``rows`` of about ``estimated`` rows are copied; ``estimated`` is
    None if unknown.

    The speed is 0 until it is known. ``waits_for`` is the follower that must apply more rows before the next chunk is
    read.
    """

    table: str
    rows: int
    estimated: int | None
    rows_per_second: float
    bytes_per_second: float
    waits_for: str | None = None

    @property
    def seconds_left(self) -> float | None:
        """The estimated number of seconds until this table is copied; None if unknown."""
        if self.estimated is None or not self.rows_per_second:
            return None
        return max(0, self.estimated - self.rows) / self.rows_per_second


class Speed:
    """Counts copied ``rows`` and their ``size`` in bytes. Other threads may read the counts."""

    def __init__(self, now: float) -> None:
        self.rows = self.size = 0
        self._samples: tuple[tuple[float, int, int], ...] = ((now, 0, 0),)

    def add(self, rows: int, size: int, *, now: float) -> None:
        """Adds ``rows`` that are copied at the time ``now``."""
        self.rows += rows
        self.size += size
        if now - self._samples[-1][0] >= _APART:
            recent = [sample for sample in self._samples if sample[0] >= now - _SECONDS]
            self._samples = (*recent, (now, self.rows, self.size))

    def per_second(self, now: float) -> tuple[float, float]:
        """Returns the copied rows and bytes per second. Both are 0 until they are known."""
        samples = self._samples
        since, rows, size = next((sample for sample in samples if sample[0] >= now - _SECONDS), samples[-1])
        seconds = now - since
        return ((self.rows - rows) / seconds, (self.size - size) / seconds) if seconds >= _APART else (0.0, 0.0)


def named(table: Table | None) -> str:
    """Returns the table's name as the log contains it."""
    return ".".join(table) if table else "none"


class ProgressLog:
    """Logs the events of copies with ``log(event, **fields)``."""

    def __init__(self, log: Callable[..., None]) -> None:
        self._log = log

    def asked(self, tables: int, pending: Pending) -> None:
        """Logs the number of ``tables`` that were requested."""
        self._log("tables are to be copied", tables=tables, left=len(pending.tables))

    def stopped(self, tables: Iterable[Table], before: Pending, after: Pending) -> None:
        """Logs which copies a request to stop the copies of ``tables`` has ended, and which continue."""
        for table in sorted(set(before.tables) - set(after.tables)):
            rows = before.rows if table == before.current else 0
            self._log("the copy of a table was stopped", level=logging.WARNING, table=named(table), rows=rows)
        for table in tables:
            if table in after.tables:
                why = "followers have no other rows of it"
                self._log("a copy can't be stopped", level=logging.WARNING, table=named(table), why=why)

    def filtered(self, table: Table) -> None:
        """Logs that the filters leave out a table whose rows were requested."""
        self._log("the filters leave out a table whose rows were to be sent again", table=named(table))

    def replaced(self, table: Table | None, now: Table | None) -> None:
        """Logs that a statement has made the producer copy the table ``now`` instead of ``table``."""
        self._log("a statement has changed which table is copied", table=named(table), now=named(now))

    def held(self, table: Table | None) -> None:
        """Logs that the stream waits for the copy of a table."""
        self._log("the stream waits for the copy of a table as a whole", table=named(table))

    def unrepeatable(self, tables: Iterable[Table], statement: Statement) -> None:
        """Logs that followers have other rows in ``tables`` after a statement, until these tables are copied again."""
        for table in tables:
            self._log(
                "a follower can't repeat a statement, so its table is copied again", level=logging.WARNING,
                table=named(table), why=statement.unlike, position=statement.event.position,
            )  # fmt: skip

    def unreadable(self, tables: Iterable[Table], refused: Refused) -> None:
        """Logs that the stream lacks changes of ``tables``, until these tables are copied again."""
        for table in tables:
            self._log(
                "the leader has logged rows that can't be read, so their table is copied again", level=logging.WARNING,
                table=named(table), why=refused.error.what, position=refused.event.position,
            )  # fmt: skip

    def exact(self, table: Table, snapshots: int) -> None:
        """Logs that a snapshot shows the table as it is."""
        self._log("copying a table as a whole", table=named(table), snapshots=snapshots)

    def inexact(self, table: Table, snapshots: int) -> None:
        """Logs that a table has had no exact snapshot for a long time."""
        hint = "the producer keeps trying; stop writes to the table for a second"
        what = "a table that is copied as a whole changes too often"
        self._log(what, level=logging.WARNING, table=named(table), snapshots=snapshots, hint=hint)

    def left_out(self, definition: TableDefinition, *, repair: bool) -> None:
        """Logs that a table, or rows of it, can't be copied."""
        table = named((definition.database, definition.name))
        if repair:
            why, hint = definition.refusal, "audit again, and ask again with the new report"
            self._log("rows can't be repaired", level=logging.ERROR, table=table, why=why, hint=hint)
            return
        hint = f"make the table fit for a copy, then run {copy_command((definition.database, definition.name))}"
        if definition.inexact:
            hint = (
                "leave it out with the filters, since a copy of the leader does not create it on followers; or " + hint
            )
        why = f"{definition.refusal}; its copy is not complete"
        self._log("a table can't be copied", level=logging.ERROR, table=table, why=why, hint=hint)

    def unsettled(self, tries: int) -> None:
        """Logs that DDL statements keep changing objects before all definitions are read, after ``tries`` attempts."""
        hint = "the producer keeps trying; avoid statements that create, alter or drop tables until everything is read"
        what = "statements change the objects to create before all of them are read"
        self._log(what, level=logging.WARNING, tries=tries, hint=hint)

    def created(self, structure: Structure) -> None:
        """Logs that the statements that create the tables are in the stream."""
        statements = len(structure.creations)
        self._log("created what is to be copied", tables=len(structure.tables), statements=statements)
        for view in structure.invalid:
            self._log("a view is invalid, and left out", level=logging.WARNING, view=named(view))
        for each in structure.left_out:
            what = "a view, routine, trigger or event names a column that is left out, so it is left out, too"
            self._log(what, level=logging.WARNING, name=named(each))

    def repaired(self, chunk: Chunk) -> None:
        """Logs that the rows of some keys are in the stream."""
        self._log("rows are sent again", table=named(chunk.table), keys=len(chunk.keys or ()), rows=len(chunk.rows))

    def written(self, chunk: Chunk, before: Pending, *, estimated: int | None) -> None:
        """Logs that a chunk is in the stream. ``before`` is the state of the copies without this chunk."""
        if chunk.after is None:
            self._log("copying a table", table=named(before.current), rows_estimated=estimated)
        if chunk.upto is None:
            rows, left = before.rows + len(chunk.rows), len(before.tables) - 1
            self._log("copied a table", table=named(before.current), rows=rows, left=left)

    def complete(self) -> None:
        """Logs that nothing is left to copy."""
        self._log("all tables are copied")
