"""Makes a batch's SQL: filters its records, executes its DDL statement, plans its rows, and moves the checkpoint."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from cdc.consumer.apply.committed import FRONT_BYTES, PendingBatch
from cdc.consumer.apply.ddl_ledger import DdlLedger
from cdc.consumer.apply.execution import PreparedBatch
from cdc.consumer.apply.row_differences import RowDifferences
from cdc.consumer.errors import Unapplicable
from cdc.consumer.follower.range_rows import RangeRows
from cdc.consumer.follower.row_counts import RowCounts
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.copying import check_copying, plan_copying
from cdc.consumer.plan.covering import Covering
from cdc.consumer.plan.net_effects import as_left
from cdc.consumer.plan.packets import PACKET_BYTES, Statement
from cdc.consumer.plan.planner import Step, removes
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import TableSchema
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.consumer.state.ledger_table import Commit
from cdc.model.record import Record, Uri

__all__ = ["Preparation"]


class Preparation:
    """Prepares batches in their order, each from the checkpoint that the one before it sets.

    ``passes(record)`` says whether the record's rows are for this follower. With ``differences`` the before-images of
    rows are compared.
    """

    def __init__(
        self,
        session: Session,
        ledger: DdlLedger,
        tables: SchemaCache,
        *,
        differences: RowDifferences | None,
        passes: Callable[[Record], bool],
        checkpoint: Checkpoint,
    ) -> None:
        self._session = session
        self._ledger = ledger
        self._tables = tables
        self._counts = RowCounts(session)
        self._ranges = RangeRows(session, self._counts)
        self._differences = differences
        self._passes = passes
        self._reached = checkpoint  # by the last batch that was prepared
        self._notes: list[Statement] = []  # of the DDL statement and left out events; they commit with the rows
        self._rows = self._filtered = 0  # of the follower transaction, up to the last batch

    def restart(self, checkpoint: Checkpoint) -> None:
        """The next batch follows ``checkpoint``."""
        self._reached = checkpoint

    def forget_tables(self) -> None:
        """Tables may have changed: ask the follower about them again."""
        self._tables.forget()

    def rest(self) -> None:
        """There is nothing to prepare for now."""
        self._ledger.rest()

    def runs(self, batch: Batch) -> bool:
        """Whether the batch has DDL statements to execute. They commit by themselves, and ``prepare`` executes them:
        all batches before must be executed by then, and are committed before the first one runs.
        """
        return batch.statement is not None

    def needs_commit(self, batch: Batch) -> bool:
        """Whether all batches before must be committed before this one is prepared.

        The follower cannot be asked about a table, or for its rows, while the counts of a packet are outstanding.
        """
        if self.runs(batch):
            return False
        records = self._passing(batch)
        if batch.chunk is not None and records:
            return True
        return not self._tables.know(record.uri for record in records) or removes(records, schema=self._tables.shape)

    def prepare(self, batch: Batch, commit: Commit) -> PreparedBatch:
        """The batch with its SQL; DDL statements are executed. Raises PromiseError, Interrupted, Refused.

        Of a batch of many statements it may be the first ones only: the prepared batch says which. ``commit`` is called
        before the first one runs.
        """
        if batch.begins:
            self._rows = self._filtered = 0
            self._notes = []
        records = self._passing(batch)
        self._rows += batch.rows
        self._filtered += batch.rows - sum(len(record.rows) for record in records)
        pending = self._pending(batch, as_left(records), commit, started=time.monotonic())
        shapes = {uri: self._tables.shape(uri) for uri in {record.uri for record in records}}
        # Asked now: by the time the statements are made, the reply to a packet may be outstanding.
        comparable = {uri: self._differences.comparable(uri) for uri in shapes} if self._differences else None
        loadable = {uri: self._tables.loadable(uri) for uri in shapes}
        size = min(self._session.max_packet - FRONT_BYTES, PACKET_BYTES)
        pending, steps, refused = self._planned(pending, shapes, size)
        if refused is not None:
            # Told where a single row is refused, and its record can be skipped.
            return PreparedBatch(pending, [], _raising(refused), shapes)
        made = statements(
            steps,
            generated=lambda uri: shapes[uri].generated,
            comparable=comparable.__getitem__ if comparable is not None else None,
            loadable=loadable.__getitem__,
            size=size,
            has_stored=any(record.has_stored for record in pending.records),
        )
        return PreparedBatch(pending, steps, made, shapes)

    def _planned(
        self, pending: PendingBatch, shapes: Mapping[Uri, TableSchema], size: int
    ) -> tuple[PendingBatch, Sequence[Step], Unapplicable | None]:
        """The batch, with what it does if it is a chunk of a table, its steps, and why it can't be applied."""
        records, schema = pending.records, shapes.__getitem__
        if records and pending.batch.chunk is not None:
            chunk = self._covering(records[0], shapes[records[0].uri], size)
            return replace(pending, chunk=chunk), chunk.steps, chunk.refused
        try:
            for record in records:
                if record.copying:
                    check_copying(record, schema(record.uri))
        except Unapplicable as error:
            return pending, [], error
        planned = plan_copying(records, schema=schema)
        return pending, self._counts.prepared(planned, schema=schema, size=size), None

    def _covering(self, chunk: Record, shape: TableSchema, size: int) -> Covering:
        self._ledger.skips.see(chunk)
        try:
            return self._ranges.covering(chunk, shape, size=size)
        except Unapplicable as error:
            return Covering(chunk, chunk.emptied(), refused=error)

    def _passing(self, batch: Batch) -> list[Record]:
        return [record for record in batch.records if self._passes(record)]

    def _pending(self, batch: Batch, records: Sequence[Record], commit: Commit, *, started: float) -> PendingBatch:
        if batch.statements:
            self._notes = self._ledger.execute(batch.statements, commit)
            commit([])  # where none had to run
            batch, _ = batch.cut(len(self._notes))
            if self._ledger.skips:
                # One that is skipped was perhaps run by hand in another form.
                self._tables.forget()
            else:
                self._tables.forget_changed(batch.statements)
            if self._differences:
                self._differences.forget()
        self._notes += map(self._ledger.note_left_out, batch.left_out)
        tail = self._finish(batch) if batch.ends else []
        return PendingBatch(batch, records, tail, self._reached, self._rows, self._filtered, started)

    def _finish(self, batch: Batch) -> list[Statement]:
        """The statements that end a follower transaction: the notes, and the move of the checkpoint."""
        before, self._reached = self._reached, self._reached.advanced(last=batch.last, offsets=batch.offsets)
        tail = [*self._notes, Statement(before.advance(self._reached, last=batch.last).encode(), 1)]
        moved = self._reached.move(batch.offsets)
        return [*tail, Statement(moved.encode())] if moved else tail


def _raising(error: Unapplicable) -> Iterator[Statement]:
    raise error
    yield
