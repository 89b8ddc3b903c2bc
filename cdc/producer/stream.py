"""Writes changes to Kafka in transactions. Each transaction contains the records of some changes, and the position
after these changes.

Decides when to commit to Kafka: at once while the leader has no more events, in large transactions while the leader is
ahead.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cdc.config.profile import Producer as Limits
from cdc.errors import Disconnected, PromiseError
from cdc.producer.decode.changes import (
    Change,
    Commit,
    Copied,
    Held,
    Idle,
    OtherEvent,
    PositionAdvanced,
    RowsTransaction,
)
from cdc.producer.decode.decoder import Decoder
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.pause import Pause
from cdc.producer.progress import Progress
from cdc.producer.sink.debezium_sink import DebeziumSink
from cdc.producer.sink.event_messages import EventMessages
from cdc.producer.sink.kafka_sink import KafkaSink
from cdc.producer.sink.router import Router
from cdc.service.logs import event

__all__ = ["Stream", "must_commit"]

_LOG = logging.getLogger("cdc.producer")
_LOOK_SECONDS = 0.1

_MAX_OPEN_SECONDS = 10.0  # how long a Kafka transaction may stay open inside one leader transaction


def must_commit(change: Change, sink: KafkaSink, progress: Progress, limits: Limits) -> bool:
    """Whether to commit after ``change``, because the leader has no more events, or because a limit is reached at the
    end of a transaction.

    A leader transaction that alone reaches the limits is split; the commit log counts its committed part. With
    ``limits.dedupe_ms`` a Kafka transaction stays open for so long, also while the leader has no more events.
    """
    full, now = sink.records >= limits.commit_records or sink.is_full, time.monotonic()
    if not progress.between_transactions:
        return sink.records > 0 and (full or now - sink.begun_at > _MAX_OPEN_SECONDS)
    open_ms, due = (now - sink.begun_at) * 1000, progress.is_stale(now) or sink.is_heartbeat_due
    if limits.dedupe_ms:
        return full or open_ms >= limits.dedupe_ms or progress.is_due_at_once or (due and not sink.records)
    if type(change) is Idle:
        return sink.records > 0 or due
    return full or open_ms > limits.commit_ms or due


@dataclass(frozen=True, slots=True)
class Stream:
    """Writes the changes of one connection; ``metrics`` counts each Kafka commit, ``limits`` decide when to commit, and
    ``pause`` when nothing is read or written.

    ``decoder`` counts the events that it has filtered.
    """

    decoder: Decoder
    router: Router
    sink: KafkaSink
    progress: Progress
    metrics: ProducerMetrics
    limits: Limits
    event_messages: EventMessages
    pause: Pause = field(default_factory=Pause)

    def replicate(self, changes: Iterable[Change], *, until: Callable[[], bool], stop: threading.Event) -> None:
        """Replicates until ``changes`` end, ``stop`` is set, or ``until`` returns true.

        Raises PromiseError after it has committed all complete transactions before the refused change, unless the
        brokers are away. Raises Disconnected; then everything that is not committed is read again.
        """
        skips, committed = bool(self.router.skips), self.progress.transactions
        with self._complete_transactions_committed():
            for change in changes:
                if self.pause.wanted:
                    self._hold(stop)
                    if stop.is_set():
                        return
                self._write(change)
                if type(change) is OtherEvent:
                    continue  # such an event does not advance the position; its message becomes part of the next commit
                self.progress.note(change)
                if skips:
                    self._check_skips(change)
                if must_commit(change, self.sink, self.progress, self.limits):
                    records, changed = self.sink.records, self.progress.transactions > committed
                    self._commit(self.router.sent)
                    committed = self.progress.transactions
                    if isinstance(change, Idle):
                        copying = changed and bool(self.router.incomplete)
                        stop.wait(self.sink.pause_seconds(records, copying=copying))
                if isinstance(change, Idle | Held):
                    self.sink.check()
                if isinstance(change, Idle) and not change.inside and not self.sink.records:
                    self.metrics.drained()
                # One event can contain millions of changes, and ``changes`` end at ``stop`` only after all of them: so
                # ``stop`` is checked here, too.
                if stop.is_set() or until():
                    return

    def _hold(self, stop: threading.Event) -> None:
        """Writes nothing more until the pause ends, but entries that show that the producer is alive. Does nothing
        inside a leader transaction.

        The leader may end the connection meanwhile, since nothing is read from it.
        """
        if not self.progress.between_transactions or self.router.sent:
            return
        if self.sink.records:
            self._commit(0)
        self.pause.holding = True
        event(_LOG, "paused until cdc-producer --resume", position=self.progress.position)
        try:
            while self.pause.wanted and not stop.wait(_LOOK_SECONDS):
                self.sink.check()
                if self.progress.is_stale(time.monotonic()) or self.sink.is_heartbeat_due:
                    self._commit(0)
        finally:
            self.pause.holding = False
        if not stop.is_set():
            event(_LOG, "resumed after the pause")

    def window_end(self) -> float:
        """Returns the time at which the open Kafka transaction is to be committed although the leader has no more
        events (``time.monotonic()``), infinity if there is none. A pause begins at once.
        """
        if self.pause.wanted and self.progress.between_transactions:
            return 0.0
        if not self.limits.dedupe_ms or not self.progress.between_transactions:
            return math.inf
        return self.sink.begun_at + self.limits.dedupe_ms / 1000

    def _write(self, change: Change) -> None:
        if isinstance(change, OtherEvent):
            message = self.event_messages.message(change.event)
            if message is not None:
                self.sink.write_event(message, change.event.position)
            return
        if not self.sink.has_one_topic:
            self._make_ready(self.router.topics(change))
        if self.sink.debezium is not None:
            self._prepare(self.sink.debezium, change)
        write = self.sink.write_with_entry if isinstance(change, Copied) else self.sink.write
        write(self.router.route(change))

    def _make_ready(self, topics: set[str]) -> None:
        """Creates missing ``topics``, while no Kafka transaction is open: creating many topics takes longer than a
        transaction may last."""
        if not self.sink.has_ready(topics):
            if self.sink.records:
                self._commit(self.router.sent)
            self.sink.make_ready(topics)

    def _prepare(self, debezium: DebeziumSink, change: Change) -> None:
        """Passes the next change to ``debezium``. Creates missing topics, while no Kafka transaction is open."""
        debezium.note(change)
        if missing := debezium.missing(change):
            if self.sink.records:
                self._commit(self.router.sent)
            debezium.open(missing)

    def _check_skips(self, change: Change) -> None:
        # While an XA transaction is prepared, nothing is checked: its events are before this position, but they are
        # decoded, and can be refused, only when the transaction commits.
        if isinstance(change, Commit | RowsTransaction | PositionAdvanced) and not self.progress.has_prepared:
            self.router.skips.check_passed(self.progress.position)

    def _commit(self, sent: int) -> None:
        """Commits the written records with the position after them.

        The last ``sent`` records belong to a leader transaction that is still open.
        """
        size, started = self.sink.bytes, time.monotonic()
        partial = self.router.partial if sent else None
        entry = self.progress.entry(next_sequence=self.router.next_sequence, partial=partial)
        self.sink.commit(entry)
        self.metrics.committed(
            entry,
            size=size,
            seconds=time.monotonic() - started,
            through_us=self.progress.through_us,
            transactions=self.progress.transactions,
            filtered=self.decoder.filtered + self.router.filtered,
        )
        if self.sink.debezium is not None:
            self.metrics.merged(self.sink.debezium.deduplicated)

    @contextmanager
    def _complete_transactions_committed(self) -> Iterator[None]:
        """Commits the complete transactions at the end of the block, even if an event can't be replicated."""
        try:
            yield
        except PromiseError as reason:
            try:
                self._commit_complete()
            except Disconnected:
                # The error that stops the stream is reported; the uncommitted changes are read again next time.
                raise reason from None
            raise
        self._commit_complete()

    def _commit_complete(self) -> None:
        # A commit can't leave out the records that an open transaction has written already: if there are such records,
        # nothing is committed, and everything is read again after the next start.
        if not self.router.sent:
            self._commit(0)
