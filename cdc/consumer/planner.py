"""What a batch asks of the follower: its changes in the leader's order, neighbours of one kind put together. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cdc.record import Record, Row, Uri

__all__ = ["Change", "Step", "plan"]


class Change(NamedTuple):
    """One row's change and the record it came in."""

    record: Record
    row: Row


@dataclass(frozen=True, slots=True)
class Step:
    """Neighbouring changes of the same operation, table, columns, key and flags. Never empty."""

    changes: list[Change]

    @property
    def record(self) -> Record:
        """The first record of the step: what it says of the table holds for all of them."""
        return self.changes[0].record


def plan(records: Iterable[Record], *, passes: Callable[[Uri], bool]) -> list[Step]:
    """The steps of rows records, in order; records of tables that do not pass have none.

    The order of changes is the leader's throughout: a step only joins what stands side by side.
    """
    steps: list[Step] = []
    for record in records:
        if not passes(record.uri):
            continue
        changes = [Change(record, row) for row in record.rows]
        if steps and _joins(steps[-1].record, record):
            steps[-1].changes.extend(changes)
        elif changes:
            steps.append(Step(changes))
    return steps


def _joins(first: Record, record: Record) -> bool:
    return (
        first.operation == record.operation
        and first.uri == record.uri
        and first.columns == record.columns
        and first.key == record.key
        and first.flags == record.flags
    )
