"""Batches to the follower: one follower transaction holds a batch's rows and its checkpoint, again until it commits."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from cdc.config.profile import Consumer
from cdc.consumer.apply.ddl_ledger import Ledger
from cdc.consumer.apply.parallel import Lanes, RunFailed
from cdc.consumer.apply.pending_batch import FRONT_BYTES, Work, elsewhere, lost
from cdc.consumer.apply.row_by_row import Replay
from cdc.consumer.apply.row_differences import Differences
from cdc.consumer.apply.serial import Execution
from cdc.consumer.follower.schema_cache import Tables
from cdc.consumer.follower.session import Interrupted, Refused, Session
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.plan.independence import doing, independent
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, packets
from cdc.consumer.plan.planner import Step, plan
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import Shape
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint, Partition
from cdc.errors import PromiseError
from cdc.model.record import Record, Uri
from cdc.service.process import event
from cdc.service.retry import Retry

__all__ = ["Applied", "Applier", "Reread"]

_LOG = logging.getLogger("cdc.consumer")

_ALONE = 64  # batches after a run that failed


class Reread(Exception):
    """What the follower lacks is not in memory any more: parts of a large transaction that it has rolled back, or what
    went with a server of which another one took the place."""


class Applied(NamedTuple):
    """What the follower has committed, ``seconds`` after it was begun: up to record ``last``."""

    last: Record
    offsets: Mapping[Partition, int]
    rows: int
    seconds: float


class Applier:
    """Applies batches from ``checkpoint`` on, over a connected session that holds the lock.

    ``passes(uri)`` says whose tables are replicated, ``settings`` how conflicts are told and settled, and over how many
    connections batches that do not depend on one another go; ``retry`` says how long to go on without progress while
    the follower is away, ``stop`` ends that early. ``filtered`` counts the rows of tables that do not pass.
    """

    def __init__(
        self,
        session: Session,
        ledger: Ledger,
        *,
        checkpoint: Checkpoint,
        passes: Callable[[Uri], bool],
        settings: Consumer,
        retry: Retry,
        stop: threading.Event,
    ) -> None:
        self._session = session
        self._server = session.server  # of the last commit
        self._most = checkpoint.sequence  # that was ever committed
        self._ledger = ledger
        self._tables = Tables(session, Triggers(session, drop=settings.triggers == "drop", passes=passes))
        compares = settings.before_images == "compare"
        self._differences = Differences(session, self._tables) if compares else None
        replay = Replay(
            session,
            self._tables,
            on_conflict=settings.on_conflict,
            differences=self._differences,
            skips=ledger.skips,
            note=ledger.skip,
        )
        self._execution = Execution(session, replay)
        self._lanes = Lanes(session, connections=settings.connections)
        self._doing: dict[Uri, str] | None = None  # what the batch before does, or all of the run, if that can be told
        self._alone = 0  # so many batches are to be in no run
        self._passes = passes
        self._retry = retry
        self._stop = stop
        self._todo: deque[Batch] = deque()  # not known to be committed, in order; of a large transaction the last part
        self._put = 0  # how many of these have all their statements sent
        self._reached = checkpoint  # where that leads
        self._settled: list[Statement] = []  # notes of a statement that commit with its rows
        self._rows = self._passed = 0  # of the transaction that is under way, up to here
        self._done: list[Applied] = []
        self._elsewhere = False  # whether another server answers, on which nothing was committed yet
        self._lacks = False  # whether it lacks what is not in memory any more
        self.checkpoint = checkpoint
        self.filtered = 0

    @property
    def conflicts(self) -> int:
        """How many conflicts were settled in the leader's favour, and are committed."""
        return self._execution.conflicts

    def applied(self, batches: Iterable[Batch | None]) -> Iterator[Applied | None]:
        """Apply each batch exactly once. A None, where there is no more right now, comes after all that was before it.

        Ends early where ``stop`` is set while the follower does not take a batch. Raises PromiseError for a row or
        statement that can't be applied, ServerGone where the follower stays away, Reread where the batches from the
        checkpoint on are needed again.
        """
        for batch in batches:
            if batch is not None:
                self._todo.append(batch)
            if not self._persist(wait=batch is None):
                return
            yield from self._news()
            if batch is None:
                yield None
        self._persist(wait=True)
        yield from self._news()

    def _persist(self, *, wait: bool) -> bool:
        """Send all that is to do and, to ``wait``, hear that it has committed. False where ``stop`` was set before."""
        while True:
            try:
                if not self._session.connected or self._lanes.failed:
                    self._resume()
                while self._put < len(self._todo):
                    self._begin(self._todo[self._put])
                if wait:
                    self._commit()
                    self._session.keep()
                    if not self._todo:
                        # A connection that was lost while there was nothing to do is no trouble once there is another.
                        self._retry.success()
            except RunFailed:
                self._alone, self._doing = _ALONE, None
            except Interrupted as error:
                # A new connection has no half transaction and no session variable of the old one.
                self._session.close()
                self._tables.forget()
                if self._stop.is_set():
                    return False
                self._retry.wait(lost(error, after=self.checkpoint.sequence))
                if self._stop.is_set():
                    return False
            except Refused as error:
                raise PromiseError(
                    f"the follower refuses: {error}",
                    where=f"the batch after sequence {self.checkpoint.sequence}",
                    hint="nothing of the batch was applied; mend the account, its grants or the schema cdc",
                ) from None
            else:
                return True

    def _resume(self) -> None:
        """Connect anew, or end a run that failed: what has not committed is still to do.

        Raises Reread where parts of a transaction are lost that are not here any more, or more than a transaction.
        """
        self._take()  # before another server may answer: this was committed on the former one
        if not self._session.connected:
            # With the lock taken again the former connections have ended at the server, and their commits are decided.
            self._session.connect()
        # Until something is committed on another server, its own checkpoint counts: it may be a replica still at work.
        self._elsewhere = self._elsewhere or self._session.server != self._server
        if self._elsewhere:
            self._lacks = self._moves() or self._lacks
        self._decide()
        self._take()
        self._put = 0
        self._reached = self.checkpoint
        if self._execution.parts or self._lacks:
            self._execution.parts, self._lacks = 0, False
            self._todo.clear()
            raise Reread

    def _decide(self) -> None:
        """Learn which commits came through before the connection was lost, or the run failed."""
        try:
            if self._lanes.running:
                self._lanes.clear(self.checkpoint)
            else:
                self._execution.reconnected(self.checkpoint)
        except PromiseError:
            if not self._elsewhere:
                raise
            raise Interrupted("the server that took the follower's place is still at work on what it got") from None

    def _moves(self) -> bool:
        """Whether the server that took the follower's place, maybe a lagging replica, has another checkpoint."""
        there = elsewhere(self._session, self.checkpoint, most=self._most)
        event(
            _LOG, "another server took the follower's place", level=logging.WARNING, server=self._session.server,
            before=self._server, sequence=there.sequence, lost=self._most - there.sequence,
        )  # fmt: skip
        before, self.checkpoint = self.checkpoint, there
        return before.sequence != there.sequence

    def _begin(self, batch: Batch) -> None:
        """Make the statements of a batch and send them."""
        if batch.begins:
            self._rows = self._passed = 0
            self._settled = []
        records = [record for record in batch.records if self._passes(record.uri)]
        self._rows += batch.rows
        self._passed += sum(len(record.rows) for record in records)
        if batch.statement is not None or not self._tables.know(record.uri for record in records):
            # Its statements must not come before what was before it, nor a question between a packet and its counts.
            self._commit()
        work = self._work(batch, records, begun=time.monotonic())
        shapes = {uri: self._tables.shape(uri) for uri in {record.uri for record in records}}
        # Asked for now: where statements are made, the answer to the packet before them may be due.
        comparable = {uri: self._differences.comparable(uri) for uri in shapes} if self._differences else None
        limit = self._session.max_packet - FRONT_BYTES
        steps = plan(records, shape=shapes.__getitem__)
        rows = statements(
            steps,
            generated=lambda uri: shapes[uri].generated,
            comparable=comparable.__getitem__ if comparable is not None else None,
            size=min(limit, PACKET_BYTES),
        )
        if self._is_apart(batch, steps, shapes):
            if not self._lanes.running:
                self._execution.commit()
            self._lanes.put(work, packets(rows, limit=limit))
        else:
            self._lanes.finish()
            self._execution.put(work, packets(chain(rows, work.tail), limit=limit))
        self._put += 1
        self._take()

    def _is_apart(self, batch: Batch, steps: list[Step], shapes: Mapping[Uri, Shape]) -> bool:
        """Whether the batch can be executed at once with those before it."""
        before, self._doing = self._doing, None
        if not self._lanes.many or not batch.full or self._alone > 0:
            self._alone = max(self._alone - 1, 0)
            return False
        does = self._doing = doing(steps, shapes.__getitem__)
        if does is None or before is None or not independent(before, does):
            return False
        self._doing = before | does
        return True

    def _commit(self) -> None:
        """Commit all that was put, and hear of it."""
        self._lanes.finish()
        self._execution.commit()
        self._take()

    def _work(self, batch: Batch, records: list[Record], *, begun: float) -> Work:
        if batch.statement is not None:
            self._settled = [self._ledger.settle(batch.statement)]
            self._tables.forget()
            if self._differences:
                self._differences.forget()
        self._settled += map(self._ledger.left_out_before, batch.left_out)
        before, tail = self._reached, []
        if batch.ends:
            self._reached = before.advanced(last=batch.last, offsets=batch.offsets)
            tail = [*self._settled, Statement(before.advance(self._reached, last=batch.last).encode(), 1)]
            moved = self._reached.move(batch.offsets)
            tail += [Statement(moved.encode())] if moved else []
        return Work(batch, records, tail, self._reached, self._rows, self._passed, begun)

    def _take(self) -> None:
        """Forget the batches that are needed no more: what is committed, and all parts but the last."""
        for work in chain(self._execution.committed, self._lanes.committed):
            self._retry.success()
            self.checkpoint = work.target
            self._elsewhere = False
            self._server, self._most = self._session.server, max(self._most, work.target.sequence)
            self.filtered += work.rows - work.passed
            seconds = time.monotonic() - work.begun
            self._done.append(Applied(work.batch.last, work.batch.offsets, work.rows, seconds))
            self._forget()
        self._execution.committed.clear()
        self._lanes.committed.clear()
        # A part that is only sent is needed yet: until it is executed a lost connection can be made good from memory.
        while self._execution.parts and len(self._todo) > 1 and not self._todo[0].ends:
            self._forget()

    def _forget(self) -> None:
        self._todo.popleft()
        self._put -= 1

    def _news(self) -> list[Applied]:
        done, self._done = self._done, []
        return done
