"""Applies a chunk of a table copy whose planned statements failed: deletes the follower's rows that block rows of the
chunk, and counts the deleted rows.

Two kinds of rows block a row of the chunk. Rows of the first kind have the same value of the record's key, but are
outside of the chunk's range. Rows of the second kind have the same value of another unique key. A row of the second
kind is out of date, since on the leader only the chunk's row has that value; a later chunk or change stores the row
again as it is on the leader (``plan.chunk_plan``).
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from cdc.consumer.apply.row_by_row import RowByRow
from cdc.consumer.errors import Interrupted, Refused, Unapplicable
from cdc.consumer.follower.row_counts import MISPLACED, RangeRows, RowCounts, misplaced
from cdc.consumer.follower.schema_cache import SchemaCache
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.before_images import INCOMPARABLE
from cdc.consumer.plan.chunk_plan import ChunkPlan, Repair
from cdc.consumer.plan.packets import PACKET_BYTES, Mismatch, Statement, check_counts, packets
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Change, Step, for_table, in_order
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import TableSchema
from cdc.consumer.state.skips import Skips
from cdc.model.record import Record, Row
from cdc.model.values import NULL
from cdc.service.logs import event

__all__ = ["Chunks"]

_LOG = logging.getLogger("cdc.consumer")


class Chunks:
    """Applies chunks in the session's open transaction. ``skips`` and ``note`` are described in ``RowByRow``."""

    def __init__(
        self,
        session: Session,
        tables: SchemaCache,
        row_by_row: RowByRow,
        *,
        skips: Skips,
        note: Callable[[Record, Unapplicable], Statement],
    ) -> None:
        self._session = session
        self._tables = tables
        self._row_by_row = row_by_row
        self._skips = skips
        self._note = note
        self._ranges = RangeRows(session, RowCounts(session))

    def apply(self, covering: ChunkPlan) -> None:
        """Applies a chunk whose plan failed and was rolled back. Raises Unapplicable, Interrupted."""
        chunk = covering.chunk
        self._session.run([b"SAVEPOINT chunk"])
        try:
            if covering.refused is not None:
                raise covering.refused
            # From here on the table's rows are inserted without LOAD DATA, which may have caused the failure: it stores
            # some values only with a warning.
            self._tables.pause_loading([chunk.uri])
            if chunk.range is not None and chunk.range.piece is not None:
                self._apply_piece(covering)
            elif not self._apply_whole(covering):
                self._apply_rows(covering)
                if removed := self._row_by_row.removed:
                    _tell_removed(chunk, removed)
                covering.repair.extra += removed
                self._check(chunk)
        except Unapplicable as error:
            if not self._skips.allow(chunk):
                raise
            note = self._note(chunk, error)
            self._back()
            self._session.run([note.sql])
            _forget(covering.repair)

    def _apply_rows(self, covering: ChunkPlan) -> None:
        self._back()
        try:
            self._run(_made(covering.emptying))
        except Refused as error:
            raise misplaced(covering.chunk) if error.code == MISPLACED else error from None
        except Mismatch as error:
            # The chunk is planned again, with the rows that the follower has in its range then.
            raise Interrupted(f"someone else changes rows of a table that is being copied: {error}") from None
        self._row_by_row.apply(in_order([covering.written]))

    def _apply_piece(self, covering: ChunkPlan) -> None:
        """Applies one piece of a table that is copied in pieces. The first piece empties the table, so only rows of
        other pieces can have the same value of a unique key."""
        try:
            self._run(_made(covering.steps, self._tables.shape(covering.chunk.uri)))
        except (Refused, Mismatch) as error:
            _tell_failed(covering.chunk, error)
            self._apply_rows(covering)
            if self._row_by_row.removed:
                raise _clash(covering.chunk, f"{self._row_by_row.removed} rows block other rows") from None

    def _apply_whole(self, covering: ChunkPlan) -> bool:
        """Deletes the rows that block the chunk's rows, and adds the chunk's rows; returns False if that fails."""
        try:
            self._run(_made(covering.emptying))
            removed = 0
            record = covering.written
            if len(record.rows):
                shape = self._tables.shape(record.uri)
                self._run(_made([_with_key(record, record.key or (), shape)]))
                removed = sum(self._run(_made(_clashing(record, shape))))
                self._run(_made([step for step in covering.steps if step.operation == "Add"], shape))
        except (Refused, Mismatch) as error:
            _tell_failed(covering.chunk, error)
            return False
        if removed:
            _tell_removed(covering.chunk, removed)
            covering.repair.extra += removed
        return True

    def _check(self, chunk: Record) -> None:
        """Raises Unapplicable if some rows of the chunk have replaced other rows of the chunk, so that rows are
        missing.
        """
        try:
            lacking = self._ranges.lacks(chunk, self._tables.shape(chunk.uri), size=PACKET_BYTES)
        except (*INCOMPARABLE, Refused) as error:
            raise _clash(chunk, f"and it can't be checked whether all rows are stored ({error})") from None
        if lacking:
            raise _clash(chunk, f"of {len(chunk.rows)} rows {lacking} are missing afterwards")

    def _run(self, made: Iterator[Statement]) -> list[int]:
        """Executes the statements, and returns the row counts of the DELETEs among them. Raises Mismatch for a wrong
        count.
        """
        found = []
        for packet in packets(made, limit=self._session.max_packet):
            counts = self._session.run([statement.sql for statement in packet])
            check_counts(packet, counts)
            found += [count for each, count in zip(packet, counts, strict=True) if each.sql.startswith(b"DELETE")]
        return found

    def _back(self) -> None:
        self._session.reset(savepoint="chunk")


def _made(steps: Sequence[Step], shape: TableSchema | None = None) -> Iterator[Statement]:
    generated = shape.generated if shape else frozenset[str]()
    return statements(steps, generated=lambda _: generated)


def _with_key(record: Record, key: Sequence[str], shape: TableSchema, rows: Sequence[Row] = ()) -> Step:
    """Plans a step that deletes all rows of the follower that have the same values of ``key`` as one of ``rows``. By
    default ``rows`` are all rows of the record.
    """
    named = replace(record, key=tuple(key))
    flags = NO_FOREIGN_KEY_CHECKS if shape.related else 0
    return for_table(Step("Clear", [Change(named, Row(row.after, None)) for row in rows or record.rows], flags), shape)


def _clashing(record: Record, shape: TableSchema) -> list[Step]:
    """Plans steps that delete all rows of the follower that have the same value as a row of the record in a unique key
    other than the record's key.

    Clashes in unique keys with a prefix or an expression are left to ``RowByRow``.
    """
    steps = []
    for parts in shape.unique_keys.values():
        names = [part.column for part in parts if part.column in record.columns and part.length is None]
        if len(names) < len(parts) or set(names) == set(record.key or ()):
            continue
        indexes = [record.columns.index(str(name)) for name in names]
        rows = [row for row in record.rows if row.after and all(row.after[index] != NULL for index in indexes)]
        if rows:
            steps.append(_with_key(record, [str(name) for name in names], shape, rows))
    return steps


def _clash(chunk: Record, what: str) -> Unapplicable:
    return Unapplicable(
        f"rows of table {chunk.uri.database}.{chunk.uri.table}, which is being copied, have the same value of a unique "
        f"key on the follower: {what}",
        code="CDC-COPY-UNIQUE-KEY",
        record=chunk,
        hint="give the table the leader's keys (SHOW CREATE TABLE on both): with the same columns and collations",
    )


def _tell_failed(chunk: Record, reason: Exception) -> None:
    event(_LOG, "chunk failed, retrying row by row", level=logging.DEBUG, sequence=chunk.sequence, reason=reason)


def _tell_removed(chunk: Record, rows: int) -> None:
    """Logs the number of rows that were deleted because they blocked rows of the chunk.

    If the chunk repairs chosen keys, the message is a warning, because no later chunk will restore a deleted row."""
    repaired = chunk.range is not None and chunk.range.keys is not None
    what = "rows removed for rows that are repaired: audit again" if repaired else (
        "rows removed for rows of a table that is being copied"
    )  # fmt: skip
    level = logging.WARNING if repaired else logging.INFO
    event(_LOG, what, level=level, uri=chunk.uri, sequence=chunk.sequence, rows=rows)


def _forget(repair: Repair) -> None:
    repair.missing = repair.different = repair.extra = 0
