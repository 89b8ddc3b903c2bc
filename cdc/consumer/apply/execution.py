"""Executes prepared batches on the follower: independent batches in parallel, all other batches serially."""

from collections.abc import Sequence
from typing import Protocol

from cdc.consumer.apply.parallel import ParallelExecutor
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.apply.serial import SerialExecutor
from cdc.consumer.plan.footprint import Footprint, beside, chunk_footprint, footprint
from cdc.consumer.state.checkpoint import Checkpoint

__all__ = ["Execution", "Executor"]

_SERIAL_BATCHES = 64  # batches that are executed serially after a failed parallel run
# After a chunk of a table copy, this many batches may be executed in parallel although they are not full. Otherwise the
# changes that come between two chunks would end the parallel run.
_AFTER_CHUNK = 8


class Executor(Protocol):
    """Executes batches in their order, and moves each batch from state to state (``planned_batch``)."""

    def put(self, batch: PlannedBatch) -> None:
        """Sends the batch without waiting for its result; a later call checks the result."""

    def commit(self) -> None:
        """Commits all sent batches, and waits for the commits."""

    def recover(self, checkpoint: Checkpoint) -> None:
        """Finds out which commits have succeeded, and drops the other batches; ``checkpoint`` is known to be committed.

        Raises PromiseError if the follower's checkpoint is neither ``checkpoint`` nor the checkpoint of the next batch.
        """


class Execution:
    """Chooses the executor for each batch, and commits all batches before it changes from one executor to the other."""

    def __init__(self, serial: SerialExecutor, parallel: ParallelExecutor) -> None:
        self._serial = serial
        self._parallel = parallel
        self._before: Footprint | None = None  # the rows that the last batch changes; None if they are unknown
        self._after_chunk = 0  # the number of next batches that may be executed in parallel although they are not full
        self._serial_batches = 0  # the number of batches that must still be executed serially

    @property
    def conflicts(self) -> int:
        """The number of committed conflicts that were resolved in the leader's favour."""
        return self._serial.conflicts

    @property
    def failed(self) -> bool:
        """Whether a parallel run has failed, so that ``recover`` is needed."""
        return self._parallel.failed

    def put(self, batch: PlannedBatch) -> None:
        """Sends a batch. Raises RunFailed, Interrupted, and PromiseError for an inapplicable row or statement."""
        chosen: Executor = self._serial
        other: Executor = self._parallel
        if self._is_independent(batch):
            chosen, other = other, chosen
        # Drops this reference to the steps, so that each step is freed as soon as ``batch.statements`` has built its
        # SQL.
        batch.steps = ()
        other.commit()
        chosen.put(batch)

    def settle(self) -> None:
        """Waits until all batches are executed; the last of them may still be uncommitted. Raises the errors of
        ``put``.
        """
        self._parallel.commit()
        self._serial.settle()

    def commit(self, also: Sequence[bytes] = ()) -> None:
        """Commits all batches, and waits for the commits. The last batch is committed together with the statements
        ``also``.

        Raises the errors of ``put``, and Refused if the server refuses one of the statements ``also``.
        """
        self._parallel.commit()
        self._serial.commit(also)

    def recover(self, checkpoint: Checkpoint) -> None:
        """Finds out which commits have succeeded; see ``Executor.recover``.

        The next batch is executed serially, so that it commits on the new connection before a parallel run begins.
        Until such a commit, ``Committed`` may have to read the checkpoint of another server over the first connection,
        but a parallel run would occupy this connection.
        """
        self._before = None
        executor: Executor = self._parallel if self._parallel.running else self._serial
        executor.recover(checkpoint)

    def prefer_serial(self) -> None:
        """Makes ``put`` execute the next batches serially, because a parallel run has failed."""
        self._serial_batches, self._before = _SERIAL_BATCHES, None

    @property
    def running(self) -> bool:
        """Whether batches are under way that are executed in parallel."""
        return self._parallel.running

    def admits(self, rows: Footprint | None) -> bool:
        """Whether a batch that changes only these ``rows`` is independent of all batches under way, so that its rows
        may be looked at on the follower before these have committed. There is no such batch while batches are executed
        serially.
        """
        return rows is not None and self.running and beside(self._parallel.under_way, rows)

    def rest(self) -> None:
        """Closes the additional connections if they are idle for a while; must be called from time to time."""
        self._parallel.rest()

    def _is_independent(self, batch: PlannedBatch) -> bool:
        """Whether the batch can be executed in parallel with the batches before it."""
        before, self._before = self._before, None
        is_chunk = batch.chunk is not None
        self._after_chunk = _AFTER_CHUNK if is_chunk else max(self._after_chunk - 1, 0)
        is_worth_it = batch.batch.full or (batch.batch.small and self._after_chunk > 0)
        if not self._parallel.usable or not is_worth_it or self._serial_batches > 0:
            self._serial_batches = max(self._serial_batches - 1, 0)
            return False
        batch.footprint = self._before = self._footprint(batch)
        if batch.footprint is None:
            return False
        if self._parallel.running:
            return beside(self._parallel.under_way, batch.footprint)
        return before is not None and beside([before], batch.footprint)

    def _footprint(self, batch: PlannedBatch) -> Footprint | None:
        if not batch.steps and batch.records:
            return None  # the batch is refused, or has only to be noted
        if batch.chunk is not None:
            return chunk_footprint(batch.chunk.chunk, batch.shapes[batch.chunk.chunk.uri])
        return footprint(batch.steps, batch.shapes.__getitem__, by_key=self._after_chunk > 0)
