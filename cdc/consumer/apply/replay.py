"""Applies the records that were left out of parked tables (``source.parked_replay``), and notes in the same transaction
of the follower how far they are applied.

The checkpoint stays where it is. A batch's transaction moves the ``sequence`` of the parked tables behind its last
record, so after a kill each record is either applied and no longer left out, or neither. Nothing else remembers the
progress: after a lost connection it is read from the follower, which then has the last COMMIT or will never have it.
"""

from collections.abc import Iterable, Iterator, Sequence

from cdc.consumer.apply.execution import Execution
from cdc.consumer.apply.planned_batch import ending_behind
from cdc.consumer.apply.preparation import Preparation
from cdc.consumer.errors import Unapplicable
from cdc.consumer.follower.session import Session
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.assembler import Batch
from cdc.consumer.source.parked_replay import ParkedReplay
from cdc.consumer.state import parked
from cdc.consumer.state.checkpoint import Checkpoint
from cdc.errors import PromiseError
from cdc.model.record import Record

__all__ = ["Replay"]


class Replay:
    """Takes the place of ``Parking`` while records that were left out are applied. ``wanted`` decides which these are;
    the batches contain no others with an effect. ``session`` must hold the consumer's lock.
    """

    def __init__(self, session: Session, resource: str, wanted: ParkedReplay) -> None:
        self._session = session
        self._resource = resource
        self._wanted = wanted

    def restart(self) -> None:
        """Does nothing: the program reads the progress from the follower, and makes a new object."""

    def asks(self, batch: Batch) -> bool:
        """Returns true: each batch is committed before the next one."""
        return True

    def pass_on(self, batch: Batch, records: list[Record]) -> list[Record]:
        """Returns all ``records``."""
        return records

    def settle(self, statements: Iterable[Record]) -> None:
        """Does nothing: there are no statements."""

    def notes(self) -> list[Statement]:
        """Returns nothing: ``ending`` notes the progress."""
        return []

    def refuse(self, error: Unapplicable) -> bool:
        """Returns false: a record that the follower refuses again stops the program."""
        return False

    def ending(
        self, batch: Batch, before: Checkpoint, notes: Sequence[Statement]
    ) -> tuple[Sequence[Statement], Checkpoint]:
        """Returns the statements that end a batch's transaction and move the tables behind its last record, and the
        checkpoint ``before``."""
        if not batch.ends:
            return ending_behind(batch, before, notes)
        last = batch.last.sequence
        progress = parked.advance(self._session.schema, self._resource, last=last)
        return ending_behind(batch, before, [*notes, Statement(progress.encode(), self._wanted.passed(last))])

    def applied(
        self, batches: Iterable[Batch | None], preparation: Preparation, execution: Execution
    ) -> Iterator[Batch]:
        """Applies the batches, each with a commit of its own; yields those that are committed.

        Raises Interrupted, Refused, and PromiseError for a record that can't be applied.
        """
        for batch in batches:
            if batch is None:
                self._session.keep()
                continue
            execution.prefer_serial()
            execution.put(preparation.prepare(batch, execution.commit))
            execution.settle()  # a part of a large transaction: the next one may have questions for the follower
            if batch.ends:
                execution.commit()
                self._require_committed()
                yield batch

    def _require_committed(self) -> None:
        """Raises PromiseError if the follower has other parked tables than those after the last batch.

        The checkpoint, which shows that a COMMIT has succeeded, is the same before and after it.
        """
        rows = self._session.rows(parked.select(self._session.schema, self._resource))
        self._session.commit()
        if parked.parsed(rows) != self._wanted.tables:
            raise PromiseError(
                "the follower has not committed what was left out, or something else has changed its parked tables",
                code="CDC-PARKED-CHANGED",
                where=f"{parked.TABLE.within(self._session.schema)} of {self._resource!r}",
                hint="nothing is lost: start again with --retry-parked, and leave the consumer's schema to it",
            )
