"""Prepares a batch: filters its records, executes its DDL statements, and plans the SQL for its rows and the new
checkpoint.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Protocol

from cdc.consumer.apply.ddl_ledger import DdlLedger
from cdc.consumer.apply.leader_types import LeaderTypes
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.apply.row_by_row import RowDifferences
from cdc.consumer.errors import Interrupted, Refused, Stopped, Unapplicable
from cdc.consumer.follower.row_counts import RangeRows, RowCounts
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.chunk_plan import ChunkPlan, check_copying, plan_copying
from cdc.consumer.plan.footprint import Footprint, chunk_footprint
from cdc.consumer.plan.net_effects import as_left
from cdc.consumer.plan.packets import FRONT_BYTES, PACKET_BYTES, Statement
from cdc.consumer.plan.planner import removes
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import TableSchema
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.base_copy import BaseCopy
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.ledger_table import Commit
from cdc.errors import CdcError
from cdc.model.record import Record

__all__ = ["LeavesOut", "Preparation"]

_IDLE_SECONDS = 10.0  # seconds after which the connection that looks at rows is closed if it is idle


class LeavesOut(Protocol):
    """Decides which records of parked tables are applied, and how the transactions on the follower end.

    ``apply.parking`` leaves out what touches a parked table; ``apply.replay`` applies what was left out.
    """

    def restart(self) -> None:
        """Forgets what no commit on the follower has."""

    def asks(self, batch: Batch) -> bool:
        """Whether the follower may be asked about this batch, so that all batches before must be committed."""

    def pass_on(self, batch: Batch, records: list[Record]) -> list[Record]:
        """Returns those of the batch's row records that are to be applied."""

    def settle(self, statements: Iterable[Record]) -> None:
        """Notes that the statements are executed, or left out."""

    def notes(self) -> list[Statement]:
        """Returns the statements that bring the follower's table of parked tables up to date."""

    def ending(
        self, batch: Batch, before: Checkpoint, notes: Sequence[Statement]
    ) -> tuple[Sequence[Statement], Checkpoint]:
        """Returns the statements that end a batch's transaction, and the checkpoint that they set; ``before`` is the
        follower's checkpoint before the batch."""

    def refuse(self, error: Unapplicable) -> bool:
        """Whether the transaction with the refused record is left out from now on."""


class Preparation:
    """Prepares batches in order, after ``restart``. Each batch begins at the checkpoint of the previous batch.

    Records whose changes the base copy ``copied``, with which the follower began, already contains are not applied. If
    ``differences`` is set, the before-images of rows are compared with the follower's rows. Records that touch a table
    in ``parking`` are not applied.
    """

    def __init__(
        self,
        session: Session,
        ledger: DdlLedger,
        tables: SchemaCache,
        *,
        types: LeaderTypes,
        differences: RowDifferences | None,
        copied: BaseCopy,
        parking: LeavesOut,
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._parking = parking
        self._tables = tables
        self._counts = RowCounts(session)
        self._ranges = RangeRows(session, self._counts)
        # looks at the rows of a chunk while other batches are under way on the connections that execute batches
        self._looking = session.another()
        self._ranges_beside = RangeRows(self._looking, RowCounts(self._looking))
        self._types = types
        self._differences = differences
        self._copied = copied
        self._reached: Checkpoint  # the checkpoint of the last prepared batch; ``restart`` sets the first one
        # SQL statements that update the ledger for DDL statements and skipped events. They are executed in the same
        # transaction as the rows.
        self._notes: list[Statement] = []
        self._rows = self._filtered = 0  # the rows in the follower's transaction, up to the last prepared batch

    def restart(self, checkpoint: Checkpoint) -> None:
        """Continues after ``checkpoint``: the next batch must begin there."""
        self._reached = checkpoint
        self._types.forget()
        self._parking.restart()

    def forget_tables(self) -> None:
        """Forgets the definitions of all tables, which may have changed. They are read from the follower again."""
        self._tables.forget()

    def parks(self, error: Unapplicable) -> bool:
        """Whether the transaction with the refused record is left out from now on, and its tables are parked."""
        return self._parking.refuse(error)

    def rest(self) -> None:
        """Closes the connections on which DDL statements are executed and rows are looked at, if they are idle. Must be
        called from time to time while there is nothing to prepare.
        """
        self._ledger.rest()
        self._rest_looking()

    def learn(self, batch: Batch) -> None:
        """Reads the definitions of the batch's tables that are unknown, while other batches are under way. After an
        error the tables stay unknown: the error comes again once those batches are committed.
        """
        unknown = {record.uri for record in self._passing(batch)}
        if not self.runs(batch) and not self._tables.know(unknown) and self.looks_beside():
            with suppress(CdcError, Interrupted, Refused):
                self._tables.learn(unknown, over=self._looking)
                self._types.learn(unknown, over=self._looking)

    def covers(self, batch: Batch) -> Footprint | None:
        """Returns the rows that the batch changes, if it is a chunk of a table copy by a range of keys and its table is
        known; otherwise None.
        """
        if batch.chunk is None or not self._tables.know({batch.chunk.uri}) or not self._passing(batch):
            return None
        with suppress(ValueError):  # is raised again when the chunk is planned
            return chunk_footprint(batch.chunk, self._tables.shape(batch.chunk.uri))
        return None

    def looks_beside(self) -> bool:
        """Whether the rows of a chunk can be looked at while other batches are under way: opens a connection for that,
        if the server accepts one more.
        """
        self._rest_looking()  # the server closes a connection that is idle for longer
        if not self._looking.connected:
            try:
                self._looking.connect()
                # Without a transaction, no lock on a table's definition outlasts a query.
                self._looking.run([b"SET SESSION autocommit=1"])
            except Stopped:
                raise
            except (Interrupted, Refused):
                self._looking.close()
                return False
        return True

    def _rest_looking(self) -> None:
        if self._looking.silent_seconds > _IDLE_SECONDS:
            self._looking.close()

    def runs(self, batch: Batch) -> bool:
        """Whether the batch has DDL statements.

        ``prepare`` executes them, and each commits by itself. So all earlier batches must have been executed before
        ``prepare`` is called; it commits them before it executes the first statement.
        """
        return batch.statement is not None

    def needs_commit(self, batch: Batch, *, beside: bool) -> bool:
        """Whether all earlier batches must be committed before this batch is prepared.

        This is so if the preparation must query the follower for a table's definition or rows. A query is not possible
        while the row counts of a packet are awaited; only the rows of a chunk are looked at over another connection, if
        it is independent of all batches under way (``beside``).
        """
        if self.runs(batch):
            return False
        records = self._passing(batch)
        uris = {record.uri for record in records}
        known = self._tables.know(uris) and self._types.know(records, self._tables.shape)
        if (batch.chunk is not None and records and not beside) or self._parking.asks(batch):
            return True
        return not known or removes(records, schema=self._tables.shape)

    def prepare(self, batch: Batch, commit: Commit, *, beside: bool = False) -> PlannedBatch:
        """Executes the DDL statements of the batch, and plans its SQL. Raises PromiseError, Interrupted, Refused, and
        LeftOutLate.

        If the batch has many DDL statements, the result may contain only the first ones. ``commit`` is called before
        the first statement is executed. ``beside`` is true if other batches are under way (``looks_beside``).
        """
        if batch.begins:
            self._rows = self._filtered = 0
            self._notes = []
        records, started = self._not_parked(batch), time.monotonic()
        self._rows += batch.rows
        self._filtered += batch.rows - sum(len(record.rows) for record in records)
        batch = self._run_statements(batch, commit)
        self._notes += map(self._ledger.note_left_out, batch.left_out)
        # Even a record that is not applied, because the base copy contains its changes, may contain the column types
        # for later records.
        self._notes += self._types.note(record for record in batch.records if self._tables.passes(record.uri))
        if batch.ends:
            self._notes += self._ledger.note_names(after=self._reached.sequence, through=batch.last.sequence)
            self._notes += self._parking.notes()
        tail, self._reached = self._parking.ending(batch, self._reached, self._notes)
        planned = PlannedBatch(batch, as_left(records), tail, self._reached, self._rows, self._filtered, started)
        self._plan(planned, self._ranges_beside if beside else self._ranges)
        return planned

    def _plan(self, planned: PlannedBatch, ranges: RangeRows) -> None:
        """Plans the SQL for the rows of the batch; ``ranges`` looks at the rows of a chunk's range."""
        records = planned.records
        shapes = planned.shapes = {uri: self._tables.shape(uri) for uri in {record.uri for record in records}}
        # The follower is queried now, because no query is possible later: while the statements are built, the reply to
        # a packet may be awaited.
        comparable = {uri: self._differences.comparable(uri) for uri in shapes} if self._differences else None
        loadable = {uri: self._tables.loadable(uri) for uri in shapes}
        size = min(self._session.max_packet - FRONT_BYTES, PACKET_BYTES)
        if refused := self._refused(planned, ranges, size):
            # The error is raised only when the statements are executed, so that the retry row by row can skip a single
            # record.
            planned.statements = _raising(refused)
            return
        if planned.chunk is not None:
            planned.steps = planned.chunk.steps
        else:
            schema = shapes.__getitem__
            planned.steps = self._counts.prepared(plan_copying(records, schema=schema), schema=schema, size=size)
        planned.statements = statements(
            planned.steps,
            generated=lambda uri: shapes[uri].generated,
            comparable=comparable.__getitem__ if comparable is not None else None,
            loadable=loadable.__getitem__,
            size=size,
            has_stored=any(record.has_stored for record in records),
        )

    def _refused(self, planned: PlannedBatch, ranges: RangeRows, size: int) -> Unapplicable | None:
        """Returns the error if the batch can't be applied, else None. Also plans the batch if it is a chunk of a table
        copy.
        """
        records, shapes = planned.records, planned.shapes
        if records and planned.batch.chunk is not None:
            planned.chunk = self._covering(records[0], shapes[records[0].uri], ranges, size)
            return planned.chunk.refused
        try:
            for record in {record.uri: record for record in reversed(records)}.values():
                self._types.require_fit(record, shapes[record.uri])
            for record in records:
                if record.copying:
                    check_copying(record, shapes[record.uri])
        except Unapplicable as error:
            return error
        return None

    def _covering(self, chunk: Record, shape: TableSchema, ranges: RangeRows, size: int) -> ChunkPlan:
        self._ledger.skips.see(chunk)
        try:
            self._types.require_fit(chunk, shape)
            return ranges.plan(chunk, shape, size=size)
        except Unapplicable as error:
            return ChunkPlan(chunk, chunk.emptied(), refused=error)

    def _passing(self, batch: Batch) -> list[Record]:
        # A record without rows and range has no effect, and its name may be that of another table on the follower
        # (``Renaming.rows``).
        records = [record for record in batch.records if len(record.rows) or record.range is not None]
        return [record for record in records if self._tables.passes(record.uri) and not self._copied.has(record)]

    def _not_parked(self, batch: Batch) -> list[Record]:
        """Returns the row records that are to be applied."""
        passing = self._passing(batch)
        records = self._parking.pass_on(batch, passing)
        if self._ledger.skips and len(records) < len(passing):
            left_out = {record.sequence for record in passing} - {record.sequence for record in records}
            for sequence in left_out:
                self._ledger.skips.pass_over(sequence)
        return records

    def _run_statements(self, batch: Batch, commit: Commit) -> Batch:
        """Executes the batch's DDL statements; returns a batch with only the executed statements."""
        if not batch.statements:
            return batch
        self._notes = self._ledger.execute(batch.statements, commit)
        commit([])  # commits the rows before the statements; ``execute`` does so only if it executes a statement
        batch, _ = batch.cut(len(self._notes))
        self._parking.settle(batch.statements)
        if self._ledger.skips:
            # Even if a statement is skipped, tables may have changed: the operator may have executed another form of
            # the statement.
            self._tables.forget()
        else:
            self._tables.forget_changed(batch.statements)
        if self._differences:
            self._differences.forget()
        self._notes += self._types.outdated(batch.statements)
        return batch


def _raising(error: Unapplicable) -> Iterator[Statement]:
    raise error
    yield
