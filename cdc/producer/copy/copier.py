"""The changes of the stream in, chunks at their places in it out: what is copied next, and when a chunk is due."""

import logging
import select
import time
from collections import deque
from collections.abc import Callable

from cdc.producer.copy.chunk import Beginning, Chunk, Keys
from cdc.producer.copy.pending import Pending, Table, concerns
from cdc.producer.copy.question import Question
from cdc.producer.copy.reading import Answer, Reading, Wanted
from cdc.producer.copy.repairs import Repairs
from cdc.producer.copy.requests import Requests
from cdc.producer.copy.snapshot import Snapshot
from cdc.producer.copy.window import Overrun
from cdc.producer.decode.changes import Begin, Change, Refused, Rows, Statement, Whole
from cdc.producer.progress import Progress
from cdc.producer.table_rows.chunk_reader import ReadChunk
from cdc.producer.table_rows.definition import TableDefinition

__all__ = ["Copier"]

_AHEAD = 2  # chunks that are asked for before the first of them is written
# How long the stream waits for a snapshot of a table that is changed too often: it may be locked on the leader.
_PATIENCE_SECONDS = 0.2
_POLL_SECONDS = 0.05
_TELL_SECONDS = 30.0


class Copier:
    """Copies what is ``pending``, and brings that on, one chunk after the other.

    ``requests`` are for more tables; none is copied that ``wants_table``, the filters, leaves out. ``open_reading``
    starts the thread that reads; ``log(event, **fields)`` is called for each table that begins and ends, and each that
    can't be copied. ``rows`` counts those copied.
    """

    def __init__(
        self,
        pending: Pending,
        *,
        requests: Requests,
        open_reading: Callable[[], Reading],
        wants_table: Callable[[str, str], bool],
        log: Callable[..., None],
    ) -> None:
        # The filters may have been changed, or be others where a request was made.
        self.pending = pending.without_pieces().wanted(wants_table)
        self._wants_table = wants_table
        self._requests = requests
        self._open_reading = open_reading
        self._log = log
        self._reading: Reading | None = None
        self._asked: deque[Question] = deque()
        self._unwanted = 0  # answers to come to questions that were taken back
        self._gtid: str | None = None  # of the transaction that comes event by event
        self.snapshot: Snapshot | None = None  # of the current table, if it is copied as a whole
        self._repairs = Repairs()
        self.rows = 0

    @property
    def active(self) -> bool:
        """Whether there is anything to write."""
        return self.pending.active or self._repairs.keys is not None

    @property
    def wake(self) -> int | None:
        """A file descriptor that can be read once there is something to do, if something is being read."""
        return self._reading.wake if self._reading else None

    def take_requests(self) -> None:
        """Take up what was asked for since."""
        self._repairs.add(self._requests.new())
        self._take_up()

    def _take_up(self) -> None:
        self._take_tables()
        while (keys := self._repairs.keys) is not None and not self._wants_table(*keys.table):
            self._log("the filters leave out a table whose rows were to be told again", table=_name(keys.table))
            self.pending = self._repairs.leave_out(self.pending)
            self._take_tables()

    def _take_tables(self) -> None:
        for request in self._repairs.for_tables():
            self.pending = self.pending.asked(request.tables, requests=request.offset).wanted(self._wants_table)
            self._log("tables are to be copied", tables=len(request.tables), left=len(self.pending.tables))

    def note(self, change: Change) -> None:
        """Take notice of what changes a table that is read just now, or ends its copy."""
        match change:
            case Whole():
                for rows in change.rows:
                    self._note_rows(rows, change.begin.gtid)
            case Begin():
                self._gtid = change.gtid
            case Rows():
                self._note_rows(change, self._gtid)
            case Statement():
                self._note_statement(change)
            case Refused():
                for asked in self._asked:
                    asked.changers.note(None)  # the operator skips it, and what it did is not known

    def holds(self, change: Change) -> bool:
        """Whether ``change`` must wait: for the pieces of a table, or for a moment for a snapshot of one."""
        snapshot = self.snapshot
        if snapshot is None or not snapshot.may_end_with(change):
            return False
        if snapshot.pieces is not None:
            if not snapshot.waits:
                snapshot.waits = True
                self._log("the stream waits for the copy of a table as a whole", table=_name(self.pending.current))
            if self._reading is not None:
                self._reading.hurried.set()
            return True
        # What comes while it is taken is more often in doubt than what comes after it.
        asked = self._asked[0] if self._asked else None
        return asked is not None and asked.answer is None and time.monotonic() < asked.at + _PATIENCE_SECONDS

    def wait(self) -> None:
        """Wait a moment, or until there is something to do."""
        if self._reading is not None:
            select.select([self._reading.wake], [], [], _POLL_SECONDS)

    def _note_rows(self, rows: Rows, gtid: str | None) -> None:
        for asked in self._asked:
            asked.note(rows, gtid)

    def _note_statement(self, statement: Statement) -> None:
        keys = self._repairs.keys
        if keys is not None and any(concerns(effect, keys.table) for effect in statement.effects):
            self._take_back()
        if not self.pending.is_changed_by(statement.effects):
            return
        # What is being read may be as of before the statement, its definition as of after it.
        self._take_back()
        pending = self.pending.after_statement(statement.effects)
        if pending.current != self.pending.current:
            self._log("another table is copied", table=_name(self.pending.current), now=_name(pending.current))
        self.pending = pending

    def _take_back(self) -> None:
        self._unwanted += sum(asked.answer is None for asked in self._asked)
        self._asked.clear()
        self.snapshot, self.pending = None, self.pending.without_pieces()

    def due(self, progress: Progress) -> Chunk | Beginning | None:
        """What is to be written now, if ``progress``, between two transactions, has reached its place; asks for more.

        Once it is written, ``written`` must be called. Raises Disconnected and UserError as reading does.
        """
        self._receive()
        self._ask(progress)
        while self._asked and (answer := self._asked[0].answer) is not None:
            if not progress.has_reached(answer.end):
                return None
            if (due := self._due(self._asked[0], answer)) is not None:
                return due
            self._ask(progress)
        return None

    def _receive(self) -> None:
        while self._reading is not None and (answer := self._reading.answer()) is not None:
            if self._unwanted:
                self._unwanted -= 1
                continue
            next(asked for asked in self._asked if asked.answer is None).answer = answer

    def _ask(self, progress: Progress) -> None:
        """Ask for chunks, so that one is read while another is written."""
        while (place := self._next()) is not None:
            if self._reading is None:
                self._reading = self._open_reading()
            wanted = Wanted(*place[:2], progress.gtid_text, place[2])
            self._reading.ask(wanted)
            self._asked.append(Question(wanted))

    def _next(self) -> tuple[Table | None, tuple[str, ...] | None, Keys | None] | None:
        """The table, and the key behind which a chunk is wanted, or its keys; None while enough is asked for."""
        pending = self.pending
        if not self.active or len(self._asked) >= _AHEAD:
            return None
        if pending.structure:
            return None if self._asked else (None, None, None)
        snapshot = self.snapshot
        # Nothing comes between the pieces of a table.
        if (keys := self._repairs.keys) is not None and (snapshot is None or snapshot.pieces is None):
            # By itself, so that what is asked for after it goes on where the chunks before it end.
            return None if self._asked else (keys.table, None, keys)
        if not self._asked:
            if snapshot is not None:
                return pending.current, None if snapshot.pieces is None else (), None
            return pending.current, pending.after, None
        newest = self._asked[-1].answer
        if newest is None or newest.chunk is None or newest.chunk.upto is None:
            return None
        return pending.current, newest.chunk.upto, None

    def _due(self, asked: Question, answer: Answer) -> Chunk | Beginning | None:
        """What was read; None where it has to be read again, or the table can't be copied.

        It is read again where too much was changed meanwhile, or a foreign key may have changed rows unseen.
        """
        if answer.structure is not None:
            return Beginning(answer.structure, answer.ts_us)
        definition, read = answer.definition, answer.chunk
        assert definition is not None  # the answer for a table
        if definition.refusal is not None:
            self._leave_out(definition, repair=asked.wanted.keys is not None)
            return None
        if answer.seen is not None:
            self._judge(asked, answer)
            return None
        columns = [column.name for column in definition.columns]
        try:
            if read is None or asked.may_cascade(answer):
                raise Overrun
            if self.snapshot is not None and self.snapshot.pieces is not None:
                if asked.changers.gtids:
                    raise Overrun  # which can't be, since these changes are held back
                return _piece(self.snapshot.pieces, definition, read, answer.ts_us)
            rows = asked.window.apply(read.rows, [columns.index(name) for name in definition.key])
        except Overrun:
            self._take_back()
            return None
        table = definition.database, definition.name
        collations = tuple(column.collation for column in definition.key_columns)
        bounds = asked.wanted.after, read.upto
        return Chunk(table, definition.columns_json, collations, *bounds, rows, answer.ts_us, keys=answer.keys)

    def _judge(self, asked: Question, answer: Answer) -> None:
        """Go on with a snapshot if it shows the table as it is here, else have another one taken."""
        assert asked.wanted.table is not None
        self._asked.popleft()
        if self.snapshot is None:
            self.snapshot = Snapshot(answer.follows | {asked.wanted.table}, asked.at, told=asked.at)
        snapshot = self.snapshot
        snapshot.tries += 1
        if asked.is_exact(answer):
            snapshot.pieces, snapshot.tables = 0, answer.follows | {asked.wanted.table}
            if self._reading is not None:
                self._reading.hurried.clear()
            self._log("copying a table as a whole", table=_name(asked.wanted.table), snapshots=snapshot.tries)
        elif time.monotonic() > snapshot.told + _TELL_SECONDS:
            snapshot.told = time.monotonic()
            self._log(
                "a table that is copied as a whole changes too often", level=logging.WARNING,
                table=_name(asked.wanted.table), snapshots=snapshot.tries,
                hint="it goes on trying; hold the table's writers for a second",
            )  # fmt: skip

    def _leave_out(self, definition: TableDefinition, *, repair: bool) -> None:
        table = definition.database, definition.name
        if repair:
            why, hint = definition.refusal, "audit again, and ask again with the new report"
            self._log("rows can't be repaired", level=logging.ERROR, table=_name(table), why=why, hint=hint)
            self._take_back()
            self.pending = self._repairs.leave_out(self.pending)
            self._take_up()
            return
        hint = f"make it as a copy needs it, then run cdc-producer PROFILE --copy {_name(table)}"
        why = f"{definition.refusal}; its copy is not complete"
        self._log("a table can't be copied", level=logging.ERROR, table=_name(table), why=why, hint=hint)
        self._take_back()
        self.pending = self.pending.without(table)

    def after(self, due: Chunk | Beginning) -> Pending:
        """What is pending once ``due`` is written."""
        if isinstance(due, Beginning):
            return self.pending.begun_with(due.structure.tables, len(due.structure.creations))
        if due.keys is not None:
            return self._repairs.after(self.pending, len(due.keys))
        return self.pending.chunk_written(due.upto, len(due.rows))

    def written(self, due: Chunk | Beginning) -> None:
        """What was due is in the stream."""
        self._asked.popleft()
        pending, self.pending = self.pending, self.after(due)
        if self.snapshot is not None and self.snapshot.pieces is not None:
            self.snapshot.pieces += 1
            if self.pending.after is None:
                self.snapshot = None
        if isinstance(due, Beginning):
            statements = len(due.structure.creations)
            self._log("created what is to be copied", tables=len(due.structure.tables), statements=statements)
            for view in due.structure.invalid:
                self._log("a view is invalid, and left out", level=logging.WARNING, view=_name(view))
        elif due.keys is not None:
            self.rows += len(due.rows)
            self._log("rows are told again", table=_name(due.table), keys=len(due.keys), rows=len(due.rows))
            self._repairs.told(len(due.keys))
            self._take_up()
        else:
            self._log_chunk(due, pending)
        if pending.active and not self.pending.active:
            self._log("all tables are copied")
        if not self.active:
            self._end_reading()

    def _log_chunk(self, chunk: Chunk, before: Pending) -> None:
        self.rows += len(chunk.rows)
        if chunk.after is None:
            self._log("copying a table", table=_name(before.current))
        if chunk.upto is None:
            rows, left = before.rows + len(chunk.rows), len(before.tables) - 1
            self._log("copied a table", table=_name(before.current), rows=rows, left=left)

    def adopt(self, pending: Pending) -> None:
        """Go on after a chunk that was written before a crash."""
        self._take_back()
        self.pending = pending.without_pieces()
        self._repairs.adopt(pending.requests)

    def close(self) -> None:
        """End all threads."""
        self._requests.close()
        self._end_reading()

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None
        self._asked.clear()
        self.snapshot, self._unwanted = None, 0


def _piece(number: int, definition: TableDefinition, read: ReadChunk, ts_us: int) -> Chunk:
    table, after = (definition.database, definition.name), None if number == 0 else ()
    return Chunk(table, definition.columns_json, (), after, read.upto, read.rows, ts_us, number)


def _name(table: Table | None) -> str:
    return ".".join(table) if table else "none"
