"""Decides which rows are copied next, and at which point of the stream each chunk is written."""

import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from cdc.config.filters import FilterChange
from cdc.producer.copy.chunk_request import ChunkRequest, ChunkRequests, Overrun, Place, Snapshot, chunk_of, following
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.producer.copy.keys import has_key
from cdc.producer.copy.progress_log import Copying, ProgressLog, Speed, named
from cdc.producer.copy.reader import Answer, Read, Reader, Wanted
from cdc.producer.copy.requests import RequestQueue, Requests
from cdc.producer.copy.state import Pending, concerns
from cdc.producer.copy.structure import Creations
from cdc.producer.decode.changes import Begin, Beginning, Change, Chunk, Refused, Rows, RowsTransaction, Statement
from cdc.producer.progress import Progress
from cdc.sql.effects import ANY_DATABASE, Effect

__all__ = ["Copier"]

_AHEAD = 2  # number of chunks that are requested before the first of these chunks is written
# The stream waits for a snapshot at most this long, because a lock on the table can delay the snapshot for hours.
_PATIENCE_SECONDS = 0.2
_POLL_SECONDS = 0.05
_TELL_SECONDS = 30.0


class Copier:
    """Copies the ``pending`` tables chunk by chunk, and updates ``pending``.

    ``requests`` contain further tables to copy; tables that the filters (``wants_table``) leave out are not copied.
    ``open_reader`` starts the thread that reads chunks; ``log(event, **fields)`` is called when the copy of a table
    begins or ends, and for each table that can't be copied. ``speed`` counts the copied rows. ``widened`` is set if
    changed filters include more objects. These objects are created first, at the point of the stream from which the new
    filters hold, and copied afterwards.
    """

    def __init__(
        self,
        pending: Pending,
        *,
        requests: Requests,
        open_reader: Callable[[], Reader],
        wants_table: Callable[[str, str], bool],
        log: Callable[..., None],
        widened: FilterChange | None = None,
    ) -> None:
        self.widened = widened
        # The filters may have changed since the request, or the program that wrote the request may have had other
        # filters.
        self.pending = pending.without_pieces().wanted(wants_table)
        self._wants_table = wants_table
        self._requests = requests
        self._progress_log = ProgressLog(log)
        self._chunk_requests = ChunkRequests(open_reader)
        self._gtid: str | None = None  # GTID of the transaction that is being received event by event
        self.snapshot: Snapshot | None = None  # the snapshot of the current table, if it is copied as a whole
        self._queue = RequestQueue()
        self._creations = Creations()
        self.speed = Speed(time.monotonic())
        self.unrepeatable = 0  # number of statements whose tables are copied again
        self._estimated: int | None = None  # estimated number of rows of the current table
        # The key columns in the newest chunk of the current table; empty if this process has written no chunk of the
        # table.
        self._key: tuple[CopiedColumn, ...] = ()

    def copying(self) -> Copying | None:
        """Returns the progress of the table that is being copied, or None if no table is being copied. Other threads
        may call this.
        """
        pending = self.pending
        if pending.current is None:
            return None
        estimated = self._estimated if pending.rows else None
        speed, waits_for = self.speed.per_second(time.monotonic()), self._chunk_requests.waits_for
        return Copying(named(pending.current), pending.rows, estimated, *speed, waits_for)

    @property
    def active(self) -> bool:
        """Whether the copier still has anything to write."""
        return self.pending.active or self._queue.keys is not None or self.widened is not None

    @property
    def wake(self) -> int | None:
        """A file descriptor that becomes readable once there is something to do; None if nothing is being read."""
        return self._chunk_requests.wake

    @property
    def has_requests(self) -> bool:
        """Whether there are new requests."""
        return self._requests.found

    def take_requests(self) -> bool:
        """Adds the new requests to the queue, and processes those that need not wait; returns whether there were new
        requests.
        """
        requests = list(self._requests.new())
        self._queue.add(requests)
        self._take_up()
        return bool(requests)

    def _take_up(self) -> None:
        while (taken := self._queue.next_state(self.pending, self._wants_table, self._progress_log)) is not None:
            before, self.pending = self.pending, taken
            if before.current is not None and taken.current != before.current:
                self._take_back()
        if not self.active:
            self._end_reading()

    def note(self, change: Change) -> None:
        """Notes ``change``, which may affect a table that is being read, or may end the table's copy."""
        match change:
            case RowsTransaction():
                for rows in change.rows:
                    self._chunk_requests.note(rows, change.begin.gtid)
            case Begin():
                self._gtid = change.gtid
            case Rows():
                self._chunk_requests.note(change, self._gtid)
            case Statement():
                self._note_statement(change)
            case Refused():
                self._chunk_requests.note_unknown(change.copies)  # the event is skipped, so its changes are unknown
                self._take_back_creations((ANY_DATABASE,))

    def lacks_rows(self, refused: Refused, transaction: str) -> bool:
        """Whether a record of an earlier transaction states already that the stream lacks rows of all tables that are
        copied in place of the unreadable event ``refused``.

        If so, this event needs no record, because one record is enough until the copy begins. Without this rule, an
        hour of unreadable events would become thousands of records.
        """
        tables = [table for table in refused.copies if self._wants_table(*table)]
        return bool(tables) and all(self.pending.lacks_rows(table, transaction) for table in tables)

    def note_unreadable(self, refused: Refused, transaction: str) -> None:
        """Notes the tables to copy in place of the event ``refused`` of ``transaction``."""
        tables = [table for table in refused.copies if self._wants_table(*table)]
        if new := [table for table in tables if table not in self.pending.waiting]:
            self._progress_log.unreadable(new, refused)
        # The state commits with the record of the event, or before it, so the request is not lost.
        self.pending = self.pending.lacking(tables, transaction)

    def holds(self, change: Change) -> bool:
        """Whether ``change`` must wait: until the whole snapshot of a table is written, or for a moment while a
        snapshot is taken.
        """
        snapshot = self.snapshot
        if snapshot is None or not snapshot.may_end_with(change):
            return False
        if snapshot.pieces is not None:
            if not snapshot.waits:
                snapshot.waits = True
                self._progress_log.held(self.pending.current)
            self._chunk_requests.hurry(hurried=True)
            return True
        # A snapshot is more often exact if no change comes while it is taken, so changes wait for a moment.
        asked = self._chunk_requests.first
        return asked is not None and asked.answer is None and time.monotonic() < asked.at + _PATIENCE_SECONDS

    def wait(self) -> None:
        """Waits a moment, or until there is something to do."""
        self._chunk_requests.wait(_POLL_SECONDS)

    def _note_statement(self, statement: Statement) -> None:
        keys = self._queue.keys
        if keys is not None and any(concerns(effect, keys.table) for effect in statement.effects):
            self._take_back()
        self._take_back_creations(statement.effects)
        if self.pending.is_changed_by(statement.effects):
            self._change(statement)
        wanted = [table for table in statement.copies if self._wants_table(*table)]
        if wanted:
            self.unrepeatable += 1
            self._progress_log.unrepeatable(wanted, statement)
            # The state commits with the statement's record, or before it, so the request is not lost.
            self.pending = self.pending.also(wanted)

    def _change(self, statement: Statement) -> None:
        # A requested chunk's rows may have been read before the statement, and the table's definition after it.
        self._take_back()
        # The filters may leave out the table under its new name.
        pending = self.pending.after_statement(statement.effects).wanted(self._wants_table)
        if pending.current != self.pending.current:
            self._progress_log.replaced(self.pending.current, pending.current)
        self.pending = pending

    def _take_back_creations(self, effects: Iterable[Effect]) -> None:
        """Withdraws the request for the leader's CREATE statements if a statement with these ``effects`` may have
        changed an object that passes the filters.
        """
        if self.widened is None and not self.pending.structure:
            return
        wants_table = self.widened.after.wants_table if self.widened else self._wants_table
        if self._creations.note(effects, wants_table):
            self._take_back()
            if self._creations.is_late(time.monotonic()):
                self._progress_log.unsettled(self._creations.tries)

    def _take_back(self) -> None:
        self._chunk_requests.take_back()
        self.snapshot, self.pending = None, self.pending.without_pieces()

    def due(self, progress: Progress) -> Chunk | Beginning | None:
        """Returns the chunk, or the statements that create the tables, if ``progress`` has reached the place between
        two transactions at which they must be written; otherwise None. Also requests more chunks.

        The caller must then call ``written``. Raises the errors of reading: Disconnected and UserError.
        """
        self._chunk_requests.receive()
        self._ask(progress)
        while (asked := self._chunk_requests.first) is not None and asked.answer is not None:
            if not progress.has_reached(asked.answer.end):
                return None
            if (due := self._due(asked, asked.answer)) is not None:
                return due
            self._ask(progress)
        return None

    def _ask(self, progress: Progress) -> None:
        """Requests chunks ahead, so that a chunk is read while another chunk is written."""
        creates = self.widened is not None or self.pending.structure
        # New requests have to wait, since the reader first answers the withdrawn requests.
        while self.active and len(self._chunk_requests) < _AHEAD and not self._chunk_requests.unwanted:
            last = self._chunk_requests.last
            place: Place | None = (None, None, None)
            if not creates:
                place = following(self.pending, self.snapshot, self._queue.keys, last)
            if place is None or (creates and last):
                return
            changed = self._creations.ask(time.monotonic()) if creates else ()
            table, after, keys = place
            read = Read(progress.gtid_text, progress.position, progress.prepared)
            self._chunk_requests.ask(Wanted(table, after, read, keys, changed))

    def _due(self, asked: ChunkRequest, answer: Answer) -> Chunk | Beginning | None:
        """Builds the chunk or the statements from an answer; None if there is nothing to write yet, if the rows must be
        read again, or if the table can't be copied.
        """
        if answer.structure is not None:
            return Beginning(answer.structure, answer.ts_us, self.widened.after if self.widened else None)
        definition = answer.definition
        is_other = asked.wanted.keys is None and asked.wanted.table != self.pending.current
        if definition is None or is_other:  # the answer is empty, or another table is to be copied than was expected
            self._take_back()
            return None
        if definition.refusal is not None:
            self._leave_out(definition, repair=asked.wanted.keys is not None)
            return None
        if answer.seen is not None:
            self._judge(asked, answer)
            return None
        goes_on = asked.wanted.keys is not None or has_key(definition, self.pending.after, self._key)
        if goes_on:
            with suppress(Overrun):
                return chunk_of(asked, answer, piece=self.snapshot.pieces if self.snapshot else None)
        self._take_back()
        # The key has changed. A logged ALTER would restart the copy when it arrives in the stream; an unlogged ALTER
        # does not arrive, so the copy restarts here.
        if not goes_on:
            self.pending = self.pending.begun_again()
        return None

    def _judge(self, asked: ChunkRequest, answer: Answer) -> None:
        """Keeps the snapshot in ``answer`` if it shows the table as it is at this point of the stream; otherwise
        another snapshot is taken.
        """
        assert asked.wanted.table is not None
        self._chunk_requests.pop()
        if self.snapshot is None:
            self.snapshot = Snapshot(answer.follows | {asked.wanted.table}, asked.at, told=asked.at)
        snapshot = self.snapshot
        snapshot.tries += 1
        if asked.is_exact(answer):
            snapshot.pieces, snapshot.tables = 0, answer.follows | {asked.wanted.table}
            self._chunk_requests.hurry(hurried=False)
            self._progress_log.exact(asked.wanted.table, snapshot.tries)
        elif time.monotonic() > snapshot.told + _TELL_SECONDS:
            snapshot.told = time.monotonic()
            self._progress_log.inexact(asked.wanted.table, snapshot.tries)

    def _leave_out(self, definition: TableDefinition, *, repair: bool) -> None:
        self._progress_log.left_out(definition, repair=repair)
        self._take_back()
        if repair:
            self.pending = self._queue.leave_out(self.pending)
            self._take_up()
        else:
            self.pending = self.pending.without((definition.database, definition.name))

    def after(self, due: Chunk | Beginning) -> Pending:
        """Returns the state of the copies once ``due`` is written."""
        if isinstance(due, Beginning):
            begin = self.pending.let_in if self.widened is not None else self.pending.begun_with
            return begin(due.structure.tables, len(due.structure.creations))
        if due.keys is not None:
            return self._queue.after(self.pending, len(due.keys))
        return self.pending.chunk_written(due.upto, len(due.rows))

    def written(self, due: Chunk | Beginning, *, sequence: int) -> None:
        """Notes that ``due``, which the method ``due`` returned, was written to the stream. ``sequence`` is the
        sequence of its last record.
        """
        answer = self._chunk_requests.pop().answer
        if isinstance(due, Beginning) or due.keys is None:
            self._estimated = answer.estimated if answer else None
            self._key = answer.definition.key_columns if answer and answer.definition else ()
        pending, self.pending = self.pending, self.after(due)
        if self.snapshot is not None and self.snapshot.pieces is not None:
            self.snapshot.pieces += 1
            if self.pending.after is None:
                self.snapshot = None
        if isinstance(due, Beginning):
            self._progress_log.created(due.structure)
            self.let_in()
        elif due.keys is not None:
            self._progress_log.repaired(due)
            self._queue.sent(len(due.keys))
            self._take_up()
        else:
            self._progress_log.written(due, pending, estimated=self._estimated)
        if isinstance(due, Chunk):
            size = sum(map(len, due.rows))
            self.speed.add(len(due.rows), size, now=time.monotonic())
            self._chunk_requests.written(sequence, size)
        if pending.active and not self.pending.active:
            self._progress_log.complete()
        if not self.active:
            self._end_reading()

    def let_in(self) -> None:
        """Applies the new filters from this point of the stream on. The objects that only the new filters include are
        created at this point.
        """
        if self.widened is not None:
            self._wants_table = self.widened.after.wants_table
            self.pending, self.widened = self.pending.wanted(self._wants_table), None

    def adopt(self, pending: Pending) -> None:
        """Continues after a chunk that was written before a crash; ``pending`` is the state after that chunk."""
        self._take_back()
        self.pending = pending.without_pieces().wanted(self._wants_table)
        self._queue.adopt(pending)

    def close(self) -> None:
        """Ends all threads."""
        self._requests.close()
        self._end_reading()

    def _end_reading(self) -> None:
        self._chunk_requests.close()
        self.snapshot = None
