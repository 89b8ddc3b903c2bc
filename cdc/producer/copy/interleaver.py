"""Interleaves the chunks of table copies with the changes of the binlog.

Each change that is yielded is written, and counted in ``Progress``, before the next one is asked for. So ``Copier`` is
told of a change that is in the stream, and a chunk comes behind it, before the next change is decoded.
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
    """Yields each change of ``decoder`` and, between two transactions, what ``copier`` has for that place.

    ``progress``, ``router`` and ``sink`` are only asked how far the stream is; they get all else with the changes. But
    a chunk of a run before that readers can see is counted here. ``count(rows=…, size=…, tables_left=…)`` is called
    when the state of the copies has changed.
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
        self._known = Pending.from_json(progress.copy)  # the state that the stream has been told
        self._copies = True  # whether there is anything to copy, or a chunk of a run before to be counted

    def changes(self, received: Iterable[Sequence[RawEvent | SimpleTransaction]]) -> Iterator[Change]:
        """The changes in ``received``, with chunks of tables between them. Raises as the decoder and copies do."""
        copier = self._copier
        yield from self._take_requests()
        for change in self._decoder.decode(received):
            is_idle = type(change) is Idle
            if is_idle or copier.has_requests:
                yield from self._take_requests()
            if is_idle:
                # Before it, since it has what is written committed.
                yield from self._due()
                yield change
            elif self._copies:
                yield from self._among_copies(change)
            else:
                yield change

    def _take_requests(self) -> Iterator[CopyState]:
        # What readers can see already says which requests a run before has taken up. It must be written as it was, with
        # the same mark of what is copied. So must the records of a transaction, whose first ones may be committed.
        if not self._sink.has_visible and self._progress.between_transactions:
            self._copier.take_requests()
        yield from self._new_state()

    def _among_copies(self, change: Change) -> Iterator[Change]:
        """``change`` between what must come before it and what comes after it."""
        while self._copier.holds(change):
            # No change of a table may come between two pieces of it.
            self._copier.wait()
            yield from self._due()
            yield Held()
        if not self._copier.pending.structure:
            yield change
        elif type(change) is RowsTransaction:
            yield change._replace(rows=[])
        elif not isinstance(change, Rows | Statement | Refused | OtherEvent):
            # Before the copy of a leader begins there is nothing that its changes could be made to: its transactions
            # are empty.
            yield change
        if type(change) is not OtherEvent:
            self._copier.note(change)
            yield from self._due()

    def _due(self) -> Iterator[Change]:
        """Gives the chunks and states whose place in the stream is here."""
        copier, sink, progress = self._copier, self._sink, self._progress
        if not self._copies:
            return
        # The rest of a transaction that is partially committed must come first, and what readers can see already.
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
                    self._decoder.filter_by(due.filters.wants_table)
                copier.written(due, sequence=self._router.next_sequence - 1)
        yield from self._new_state()

    def _copied(self, due: Chunk | Beginning) -> Copied:
        now = due.filters if isinstance(due, Beginning) else None
        self._known = after = self._copier.after(due)
        header = RecordState(after, now.listed() if now else None, self._progress.gtid_text if now else "").text()
        return Copied(due, self._progress.position, header, _state(after, now))

    def _adopted(self, state: RecordState) -> CopyState | None:
        """The state after a record that readers can see, None where its place is not reached.

        Without records before it, the place at which other filters hold is found by the transactions before it.
        """
        now: Filters | None = None
        if state.filters is not None and state.filters != self._progress.filters:
            widened = self._copier.widened
            if widened is None or state.filters != widened.after.listed():
                raise UserError(
                    f"readers see the records that a start with other filters has written: {state.filters}",
                    code="CDC-FILTERS-CHANGED-AGAIN",
                    where="profile key filters",
                    hint="put these filters back; they may be changed once the producer has logged that it replicates",
                )
            if not self._progress.has_executed(state.executed):
                return None
            now = widened.after
            self._decoder.filter_by(now.wants_table)
            self._copier.let_in()
        self._copier.adopt(state.pending)
        self._known = self._copier.pending
        return _state(self._known, now)

    def _new_state(self) -> Iterator[CopyState]:
        """The state of the copies, where it is another than the stream has been told: it is committed at once."""
        copier = self._copier
        pending, speed = copier.pending, copier.speed
        self._copies = copier.active or self._sink.has_visible
        self._count(rows=speed.rows, size=speed.size, tables_left=len(pending.tables))
        if pending is not self._known:
            known, self._known = self._known, pending
            if pending != known:
                yield _state(pending, at_once=True)


def _state(pending: Pending, filters: Filters | None = None, *, at_once: bool = False) -> CopyState:
    return CopyState(pending.to_json(), pending.incomplete, filters, at_once)
