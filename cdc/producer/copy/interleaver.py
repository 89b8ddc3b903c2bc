"""Interleaves the chunks of table copies with the changes of the binlog.

Each yielded change is written, and counted in ``Progress``, before the next change is requested. So ``Copier`` only
sees changes that are in the stream, and a chunk follows these changes before the next change is decoded.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from cdc.config.filters import Filters
from cdc.errors import UserError
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.state import Pending, RecordState
from cdc.producer.decode.changes import (
    Beginning,
    Change,
    Chunk,
    Copied,
    CopyState,
    Held,
    Idle,
    OtherEvent,
    Refused,
    Rows,
    RowsTransaction,
    Statement,
)
from cdc.producer.decode.decoder import Decoder
from cdc.producer.progress import Progress
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.router import Router

__all__ = ["Interleaver"]


class Interleaver:
    """Yields each change of ``decoder`` and, between two transactions, the chunks of ``copier`` that are due.

    ``progress``, ``router`` and ``sink`` show how far the stream is written. The caller updates them when it handles a
    yielded change; this class only reads them. There is one exception: if readers can already see chunks of an earlier
    run, this class counts them itself, in ``sink`` and in the ``next_sequence`` of ``router``. ``count(rows=…, size=…,
    tables_left=…, unrepeatable=…)`` is called when the state of the copies has changed.
    """

    def __init__(
        self,
        copier: Copier,
        *,
        decoder: Decoder,
        progress: Progress,
        router: Router,
        sink: KafkaSink,
        count: Callable[..., None],
    ) -> None:
        self._copier = copier
        self._decoder = decoder
        self._progress = progress
        self._router = router
        self._sink = sink
        self._count = count
        self._known = Pending.from_json(progress.copy)  # the state that is in the stream
        self._copies = True  # whether there is anything to copy, or a chunk of an earlier run to count

    def changes(self, received: Iterable[Sequence[RawEvent | SimpleTransaction]]) -> Iterator[Change]:
        """Yields the changes in ``received``, with chunks of tables between them. Raises the errors of the decoder and
        of the copier.
        """
        copier = self._copier
        yield from self._take_requests()
        for change in self._decoder.decode(received):
            is_idle = type(change) is Idle
            if is_idle or copier.has_requests:
                yield from self._take_requests()
            if is_idle:
                # Chunks come before the Idle, because an Idle commits everything that is written.
                yield from self._due()
                yield change
            elif type(change) is Refused and change.copies:
                yield from self._unreadable(change)
            elif self._copies or (type(change) is Statement and change.copies):
                yield from self._among_copies(change)
            else:
                yield change

    def _take_requests(self) -> Iterator[CopyState]:
        # A request changes the state of the copies. Records that readers already see contain this state, and must be
        # written again unchanged, so no request is processed before that. The same holds for a transaction whose first
        # records may be committed.
        if not self._sink.has_visible and self._progress.between_transactions:
            self._copier.take_requests()
        yield from self._new_state()

    def _among_copies(self, change: Change) -> Iterator[Change]:
        """Yields the chunks that must come before ``change``, then ``change``, and then the chunks that are due after
        it.
        """
        while self._copier.holds(change):
            # A table's changes must not come between two pieces of its snapshot.
            self._copier.wait()
            yield from self._due()
            yield Held()
        if not self._copier.pending.structure:
            yield change
        elif type(change) is RowsTransaction:
            yield change._replace(rows=[])
        elif not isinstance(change, Rows | Statement | Refused | OtherEvent):
            # Before the copy of the leader begins, followers have no tables to which changes could be applied. So only
            # the bounds of transactions are passed on.
            yield change
        if type(change) is not OtherEvent:
            self._copier.note(change)
            yield from self._due() if self._copies else self._new_state()

    def _unreadable(self, change: Refused) -> Iterator[Change]:
        """Handles an event whose rows can't be read: its tables must be copied again.

        Yields ``change``, so that a record states that rows are lacking, and then the new state of the copies. The
        change is left out if an earlier record already states this, or if the first copy of the leader has not begun.
        """
        transaction = self._progress.transaction
        self._copier.note(change)
        if not self._copier.lacks_rows(change, transaction):
            if not self._copier.pending.structure:
                yield change
            self._copier.note_unreadable(change, transaction)
        yield from self._new_state()

    def _due(self) -> Iterator[Change]:
        """Yields the chunks and states that are due at this point of the stream."""
        copier, sink, progress = self._copier, self._sink, self._progress
        if not self._copies:
            return
        # The rest of a partially committed transaction, and all records that readers already see, must come first.
        if progress.between_transactions and not progress.has_partial:
            while (text := sink.visible_chunk) is not None:
                state = self._adopted(RecordState.parse(text))
                if state is None:
                    break
                sink.count_chunk()
                self._router.next_sequence += 1
                yield state
            while not sink.has_visible and (due := copier.due(progress)) is not None:
                yield self._copied(due)
                if isinstance(due, Beginning) and due.filters is not None:
                    self._decoder.filter_by(due.filters.wants_table, due.filters.condition)
                copier.written(due, sequence=self._router.next_sequence - 1)
        yield from self._new_state()

    def _copied(self, due: Chunk | Beginning) -> Copied:
        now = due.filters if isinstance(due, Beginning) else None
        self._known = after = self._copier.after(due)
        header = RecordState(after, now.listed() if now else None, self._progress.gtid_text if now else "").text()
        return Copied(due, self._progress.position, header, _state(after, now))

    def _adopted(self, state: RecordState) -> CopyState | None:
        """Adopts the ``state`` of the copies from a record that an earlier run wrote and that readers can see. Returns
        None if the stream has not reached the record.

        If other filters hold from that record on, its sequence alone does not show where that is in the binlog, so the
        state also contains the GTIDs of the transactions before it.
        """
        now: Filters | None = None
        if state.filters is not None and state.filters != self._progress.filters:
            widened = self._copier.widened
            if widened is None or state.filters != widened.after.listed():
                raise UserError(
                    f"an earlier start has already changed the filters in the topic to {state.filters}",
                    code="CDC-FILTERS-CHANGED-AGAIN",
                    where="profile key filters",
                    hint='put these filters back, wait until the producer logs "replicating", then change them',
                )
            if not self._progress.has_executed(state.executed):
                return None
            now = widened.after
            self._decoder.filter_by(now.wants_table, now.condition)
            self._copier.let_in()
        self._copier.adopt(state.pending)
        self._known = self._copier.pending
        return _state(self._known, now)

    def _new_state(self) -> Iterator[CopyState]:
        """Yields the state of the copies if it differs from the state in the stream; the sink commits such a state at
        once.
        """
        copier = self._copier
        pending, speed = copier.pending, copier.speed
        self._copies = copier.active or self._sink.has_visible
        self._count(
            rows=speed.rows, size=speed.size, tables_left=len(pending.tables), unrepeatable=copier.unrepeatable
        )  # fmt: skip
        if pending is not self._known:
            known, self._known = self._known, pending
            if pending != known:
                yield _state(pending, at_once=True)


def _state(pending: Pending, filters: Filters | None = None, *, at_once: bool = False) -> CopyState:
    return CopyState(pending.to_json(), pending.incomplete, filters, at_once)
