"""What goes on while both servers are there: changes become records, and commit with the place after them."""

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from cdc.config.profile import Producer as Limits
from cdc.errors import Disconnected, PromiseError
from cdc.model.position import Position
from cdc.producer import commit_policy
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.fast_path import SimpleTransaction
from cdc.producer.decode.changes import Begin, Change, Commit, Idle, Moved, Refused, Rows, Statement, TableShape, Whole
from cdc.producer.decode.decoder import Decoder
from cdc.producer.metrics import Activity
from cdc.producer.progress import Progress
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.router import Router

__all__ = ["Stream"]

Chunk = Sequence[RawEvent | SimpleTransaction]


class Stream:
    """One stay of the leader's events in decoder, router and sink; ``activity`` is told of each Kafka commit."""

    def __init__(
        self, decoder: Decoder, router: Router, sink: KafkaSink, progress: Progress, activity: Activity, limits: Limits
    ) -> None:
        self._decoder = decoder
        self._router = router
        self._sink = sink
        self._progress = progress
        self._activity = activity
        self._limits = limits
        self._one_topic = sink.has_one_topic

    def replicate(
        self,
        chunks: Iterable[Sequence[RawEvent | SimpleTransaction]],
        *,
        target: Position | None,
        stop: threading.Event,
    ) -> None:
        """Until ``chunks`` end, or everything before ``target`` is through.

        Raises PromiseError; then, too, the transactions that are through have been committed, as far as the brokers are
        there. Raises Disconnected; what has not been committed is read again.
        """
        skips = bool(self._router.skips)
        with self._whole_transactions_out():
            for change in self._decoder.decode(chunks):
                self._route(change)
                self._progress.note(change)
                if skips:
                    self._check_skips(change)
                if commit_policy.due(change, self._sink, self._progress, self._limits):
                    records = self._sink.records
                    self._commit(self._router.sent)
                    if isinstance(change, Idle):
                        stop.wait(commit_policy.rest(records))
                if isinstance(change, Idle):
                    self._sink.check()
                    if not change.inside:
                        self._activity.drained()
                # One event can hold millions of changes, so that ``chunks`` is long in hearing of the stop.
                if stop.is_set() or (target is not None and self._progress.has_reached(target)):
                    return

    def _route(self, change: Change) -> None:
        match change:
            case Whole():
                self._make_ready([rows.table for rows in change.rows])
                self._sink.write(self._router.whole(change))
            case Begin():
                self._router.begin(change)
            case Rows():
                self._make_ready([change.table])
                self._sink.write(self._router.rows(change))
            case Statement():
                self._sink.write(self._router.statement(change))
            case Refused():
                self._sink.write(self._router.refused(change))
            case Commit():
                self._sink.write(self._router.commit())

    def _check_skips(self, change: Change) -> None:
        # The rows of a prepared XA transaction are refused when it commits.
        if isinstance(change, Commit | Whole | Moved) and not self._progress.waits:
            self._router.skips.check_passed(self._progress.position)

    def _make_ready(self, tables: list[TableShape]) -> None:
        """Topics are made while no Kafka transaction is open: making many takes longer than one may last."""
        if self._one_topic:
            return
        topics = self._router.topics_of(tables)
        if not self._sink.has_ready(topics):
            if self._sink.records:
                self._commit(self._router.sent)
            self._sink.make_ready(topics)

    def _commit(self, sent: int) -> None:
        """Commit what is written, with the place after it; ``sent`` records are of a transaction that is still open."""
        size, begun = self._sink.bytes, time.monotonic()
        partial = self._router.partial if sent else None
        entry = self._progress.entry(next_sequence=self._router.next_sequence, partial=partial)
        self._sink.commit(entry)
        self._activity.committed(
            entry,
            size=size,
            seconds=time.monotonic() - begun,
            through_us=self._progress.through_us,
            transactions=self._progress.transactions,
            filtered=self._decoder.filtered + self._router.filtered,
        )

    @contextmanager
    def _whole_transactions_out(self) -> Iterator[None]:
        """At the end, in order or at what cannot be replicated, commit the transactions that are through."""
        try:
            yield
        except PromiseError as reason:
            try:
                self._commit_whole()
            except Disconnected:
                # What stops the stream is told; what could not be committed is read again the next time.
                raise reason from None
            raise
        self._commit_whole()

    def _commit_whole(self) -> None:
        # Records of an open transaction that already left cannot be told apart: then all is read again the next time.
        if not self._router.sent:
            self._commit(0)
