"""Executes prepared batches on the follower: independent batches in parallel, all other batches serially."""

from collections.abc import Sequence
from typing import Protocol

from cdc.consumer.apply.parallel import ParallelExecutor
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.apply.serial import SerialExecutor
from cdc.consumer.plan.planner import independent, row_operations
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.model.record import Uri

__all__ = ["Execution", "Executor"]

_SERIAL_BATCHES = 64  # batches that are executed serially after a failed parallel run


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
        self._operations: dict[Uri, str] | None = (
            None  # maps tables to the operations on them in the present run, or in the last batch; None if unknown
        )
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
        self._operations = None
        executor: Executor = self._parallel if self._parallel.running else self._serial
        executor.recover(checkpoint)

    def prefer_serial(self) -> None:
        """Makes ``put`` execute the next batches serially, because a parallel run has failed."""
        self._serial_batches, self._operations = _SERIAL_BATCHES, None

    def _is_independent(self, batch: PlannedBatch) -> bool:
        """Whether the batch can be executed in parallel with the batches before it."""
        before, self._operations = self._operations, None
        if not self._parallel.usable or not batch.batch.full or self._serial_batches > 0:
            self._serial_batches = max(self._serial_batches - 1, 0)
            return False
        operations = self._operations = row_operations(batch.steps, batch.shapes.__getitem__)
        if operations is None or before is None or not independent(before, operations):
            return False
        self._operations = before | operations
        return True
