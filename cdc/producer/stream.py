"""Changes in, Kafka transactions out: each has the records of some changes and the position after them.

Decides when to commit to Kafka: at once while the leader has no more, in large transactions while it is ahead.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cdc.config.filters import Filters
from cdc.config.profile import Producer as Limits
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.model.position import Position
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.copy.chunk import Beginning, Chunk, State
from cdc.producer.copy.copier import Copier
from cdc.producer.decode.changes import (
    Begin,
    Change,
    Commit,
    Idle,
    Moved,
    OtherEvent,
    Refused,
    Rows,
    Statement,
    TableShape,
    Whole,
)
from cdc.producer.decode.decoder import Decoder
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.progress import Progress
from cdc.producer.sink.event_messages import EventMessages
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.router import Router

__all__ = ["Stream", "must_commit"]

_MAX_OPEN_SECONDS = 10.0  # how long a Kafka transaction may stay open inside one leader transaction


def must_commit(change: Change, sink: KafkaSink, progress: Progress, limits: Limits) -> bool:
    """Whether to commit after ``change``: the leader has no more, or a limit is reached at the end of a transaction.

    A leader transaction that alone reaches the limits is split; the commit log counts what of it is committed.
    """
    full, now = sink.records >= limits.commit_records or sink.is_full, time.monotonic()
    if not progress.between_transactions:
        return sink.records > 0 and (full or now - sink.begun_at > _MAX_OPEN_SECONDS)
    if type(change) is Idle:
        return sink.records > 0 or progress.is_stale(now)
    return full or (now - sink.begun_at) * 1000 > limits.commit_ms or progress.is_stale(now)


_FORMER_FILTERS = (
    "here the filters of before still hold, since those of the profile let in tables that are not copied yet: where it "
    "is these that this needs, start once with --accept-filters, then run cdc-producer PROFILE --copy DB.TABLE; or put "
    "the filters back meanwhile"
)
Received = Sequence[RawEvent | SimpleTransaction]


@dataclass(frozen=True, slots=True)
class Stream:
    """Replicates the events of one connection; ``metrics`` counts each Kafka commit, ``limits`` say when to commit."""

    decoder: Decoder
    router: Router
    sink: KafkaSink
    progress: Progress
    metrics: ProducerMetrics
    limits: Limits
    event_messages: EventMessages
    copier: Copier

    def replicate(self, chunks: Iterable[Received], *, target: Position | None, stop: threading.Event) -> None:
        """Replicate until ``chunks`` end, ``stop`` is set, or everything before ``target`` is read and all copied.

        Raises PromiseError, after a commit of all complete transactions before it unless the brokers are away. Raises
        Disconnected; what has not been committed is then read again.
        """
        skips = bool(self.router.skips)
        with self._complete_transactions_committed():
            self._take_requests()
            for change in self.decoder.decode(chunks):
                if self.copier.snapshot is not None:
                    self._copy_before(change, stop)
                    if stop.is_set():
                        return
                # Before a leader's copy begins there is nothing that its changes could be made to.
                if not self.copier.pending.structure:
                    self._write(change)
                if type(change) is OtherEvent:
                    continue  # it moves no position, and commits with the change after it
                self.progress.note(change)
                if self.copier.active or self.sink.has_visible:
                    self._copy(change)
                if skips:
                    self._check_skips(change)
                due = must_commit(change, self.sink, self.progress, self.limits)
                if due:
                    records = self.sink.records
                    self._commit(self.router.sent)
                    if isinstance(change, Idle):
                        stop.wait(self.sink.pause_seconds(records))
                taken = (due or isinstance(change, Idle)) and self._take_requests()
                if taken and self.progress.between_transactions:
                    self._commit(self.router.sent)  # so that --copy-status shows it
                if isinstance(change, Idle):
                    self.sink.check()
                    if not change.inside:
                        self.metrics.drained()
                # One event can hold millions of changes; ``chunks`` ends at the stop only after all of them.
                if stop.is_set() or self._has_reached(target):
                    return

    def _take_requests(self) -> bool:
        # What readers can see already says which requests a run before has taken up. It must be written as it was, with
        # the same mark of what is copied.
        taken = not self.sink.has_visible and self.copier.take_requests()
        self._note_copies()
        return taken

    def _note_copies(self) -> None:
        self.router.incomplete = self.copier.pending.incomplete
        speed = self.copier.speed
        self.metrics.copied(rows=speed.rows, size=speed.size, tables_left=len(self.copier.pending.tables))

    def _has_reached(self, target: Position | None) -> bool:
        return target is not None and self.progress.has_reached(target) and not self.copier.active

    def _write(self, change: Change) -> None:
        match change:
            case Whole():
                self._make_ready([rows.table for rows in change.rows])
                self.sink.write(self.router.whole(change))
            case Begin():
                self.router.begin(change)
            case Rows():
                self._make_ready([change.table])
                self.sink.write(self.router.rows(change))
            case Statement():
                self.sink.write(self.router.statement(change))
            case Refused():
                self.sink.write(self.router.refused(change))
            case Commit():
                self.sink.write(self.router.commit())
            case OtherEvent():
                message = self.event_messages.message(change.event)
                if message is not None:
                    self.sink.write_event(message, change.event.position)

    def _copy(self, change: Change) -> None:
        """Write the chunks of tables whose place in the stream this is."""
        self.copier.note(change)
        self._copy_due()

    def _copy_before(self, change: Change, stop: threading.Event) -> None:
        """Write what must come before ``change``: no change of a table may come between two pieces of it."""
        while self.copier.holds(change) and not stop.is_set():
            self.copier.wait()
            self._copy_due()
            if must_commit(change, self.sink, self.progress, self.limits):
                self._commit(self.router.sent)
            self.sink.check()

    def _copy_due(self) -> None:
        # The rest of a transaction that is partially committed must come first, and what readers can see already.
        if self.progress.between_transactions and not self.progress.has_partial:
            while (text := self.sink.visible_chunk) is not None and self._adopt(State.parse(text)):
                self.sink.count_chunk()
                self.router.next_sequence += 1
            while not self.sink.has_visible and (due := self.copier.due(self.progress)) is not None:
                self._write_copied(due)
                self.copier.written(due, sequence=self.router.next_sequence - 1)
                if self.sink.is_full:
                    self._commit(self.router.sent)
        self._note_copies()

    def _write_copied(self, due: Chunk | Beginning) -> None:
        self._make_topics_ready({due.table} if isinstance(due, Chunk) else set(due.structure.tables))
        now = due.filters if isinstance(due, Beginning) else None
        state = State(self.copier.after(due), now.listed() if now else None, self.progress.gtid_text if now else "")
        self.sink.write_with_entry(self.router.copied(due, self.progress.position, state.text()))
        if now is not None:
            self._use_filters(now)

    def _use_filters(self, filters: Filters) -> None:
        """Have other filters hold from here on, between two transactions."""
        self.decoder.filter_by(filters.wants_table)
        self.router.filter_by(filters)
        self.progress.use_filters(filters.listed())

    def _adopt(self, state: State) -> bool:
        """Go on after a record that readers can see, if its place is reached.

        Without records before it, the place at which other filters hold is found by the transactions before it.
        """
        if state.filters is not None and state.filters != self.progress.filters:
            widened = self.copier.widened
            if widened is None or state.filters != widened.now.listed():
                raise UserError(
                    f"readers see the records that a start with other filters has written: {state.filters}",
                    where="profile key filters",
                    hint="put these filters back; they may be changed once the producer has logged that it replicates",
                )
            if not self.progress.has_executed(state.executed):
                return False
            self._use_filters(widened.now)
            self.copier.let_in()
        self.copier.adopt(state.pending)
        return True

    def _check_skips(self, change: Change) -> None:
        # The rows of a prepared XA transaction are refused when it commits.
        if isinstance(change, Commit | Whole | Moved) and not self.progress.has_prepared:
            self.router.skips.check_passed(self.progress.position)

    def _make_ready(self, tables: list[TableShape]) -> None:
        if not self.sink.has_one_topic:
            self._make_topics_ready({table.names for table in tables})

    def _make_topics_ready(self, tables: set[tuple[str, str]]) -> None:
        """Create the topics of ``tables`` where missing, while no Kafka transaction is open: creating many takes longer
        than one may last."""
        if self.sink.has_one_topic:
            return
        topics = self.router.topics_of(tables)
        if not self.sink.has_ready(topics):
            if self.sink.records:
                self._commit(self.router.sent)
            self.sink.make_ready(topics)

    def _commit(self, sent: int) -> None:
        """Commit the written records with the position after them.

        The last ``sent`` of them are of a leader transaction that is still open.
        """
        size, started = self.sink.bytes, time.monotonic()
        partial = self.router.partial if sent else None
        copy = self.copier.pending.to_json()
        entry = self.progress.entry(next_sequence=self.router.next_sequence, partial=partial, copy=copy)
        self.sink.commit(entry)
        self.metrics.committed(
            entry,
            size=size,
            seconds=time.monotonic() - started,
            through_us=self.progress.through_us,
            transactions=self.progress.transactions,
            filtered=self.decoder.filtered + self.router.filtered,
        )

    @contextmanager
    def _complete_transactions_committed(self) -> Iterator[None]:
        """At the end, also at an event that can't be replicated, commit the complete transactions."""
        try:
            yield
        except PromiseError as reason:
            if self.copier.widened is not None:
                reason.hint = f"{reason.hint} ({_FORMER_FILTERS})"
            try:
                self._commit_complete()
            except Disconnected:
                # The error that stops the stream is reported; what could not be committed is read again next time.
                raise reason from None
            raise
        self._commit_complete()

    def _commit_complete(self) -> None:
        # Written records of an open transaction can't be left out of a commit: then all is read again next time.
        if not self.router.sent:
            self._commit(0)
