"""Executes prepared batches on the follower: at the same time where they are independent, else one after the other."""

from collections.abc import Sequence
from typing import Protocol

from cdc.consumer.apply.parallel import ParallelExecutor
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.apply.serial import SerialExecutor
from cdc.consumer.plan.planner import independent, row_operations
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.model.record import Uri

__all__ = ["Execution", "Executor"]

_SERIAL_BATCHES = 64  # after a parallel run that failed


class Executor(Protocol):
    """Executes batches in their order, and moves each along (``planned_batch``)."""

    def put(self, batch: PlannedBatch) -> None:
        """Send the batch without waiting for its result, which a later call checks."""

    def commit(self) -> None:
        """Commit all batches that were put, and wait until they have committed."""

    def recover(self, checkpoint: Checkpoint) -> None:
        """Find out which commits were successful, and drop the other batches; ``checkpoint`` is known to be committed.

        Raises PromiseError where the follower's checkpoint is neither this one nor the one after it.
        """


class Execution:
    """Chooses an executor for each batch. Before it changes from one to the other, everything is committed."""

    def __init__(self, serial: SerialExecutor, parallel: ParallelExecutor) -> None:
        self._serial = serial
        self._parallel = parallel
        self._operations: dict[Uri, str] | None = (
            None  # of changes in the run's tables, or in the last batch's; if known
        )
        self._serial_batches = 0  # so many more must be executed serially

    @property
    def conflicts(self) -> int:
        """How many conflicts were resolved in the leader's favour, and are committed."""
        return self._serial.conflicts

    @property
    def failed(self) -> bool:
        """Whether a parallel run has failed, so that ``recover`` is needed."""
        return self._parallel.failed

    def put(self, batch: PlannedBatch) -> None:
        """Send a batch. Raises PromiseError for what can't be applied, RunFailed, Interrupted."""
        chosen: Executor = self._serial
        other: Executor = self._parallel
        if self._is_independent(batch):
            chosen, other = other, chosen
        batch.steps = ()  # as the statements are made of them, each is freed with its own
        other.commit()
        chosen.put(batch)

    def settle(self) -> None:
        """Wait until all batches are executed; the last one may be left to be committed. Raises as ``put``."""
        self._parallel.commit()
        self._serial.settle()

    def commit(self, also: Sequence[bytes] = ()) -> None:
        """Commit all batches and, with the last one that is not committed, these statements; and wait for it.

        Raises as ``put``, Refused for these statements.
        """
        self._parallel.commit()
        self._serial.commit(also)

    def recover(self, checkpoint: Checkpoint) -> None:
        """Find out which commits were successful; see ``Executor.recover``.

        The next batch is serial, so a run never begins before something has committed on a new connection: until then
        the checkpoint of another server is read over the first connection (``Committed``), which a run occupies.
        """
        self._operations = None
        executor: Executor = self._parallel if self._parallel.running else self._serial
        executor.recover(checkpoint)

    def prefer_serial(self) -> None:
        """A parallel run failed: execute the next batches serially."""
        self._serial_batches, self._operations = _SERIAL_BATCHES, None

    def _is_independent(self, batch: PlannedBatch) -> bool:
        """Whether the batch can be executed at the same time as those before it."""
        before, self._operations = self._operations, None
        if not self._parallel.usable or not batch.batch.full or self._serial_batches > 0:
            self._serial_batches = max(self._serial_batches - 1, 0)
            return False
        operations = self._operations = row_operations(batch.steps, batch.shapes.__getitem__)
        if operations is None or before is None or not independent(before, operations):
            return False
        self._operations = before | operations
        return True
