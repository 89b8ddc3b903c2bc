"""Decides from the steps of two batches whether both can be executed at once, on different connections.

Two consecutive batches are independent if, in each table that both change, both only insert rows or both only delete
rows. All rows that both insert exist on the leader after the second batch, so no two of them share a unique key; all
rows that both delete existed there before the first one. Neither argument holds for a table with foreign keys that the
follower checks, since then the follower reads or changes other rows. Inserts into a table without a key are
independent, too, unless the follower's table has further columns: one of them may number the rows in the order in which
they arrive.

The follower may have further unique keys, and other clients may have written to it. Then a statement fails, matches
another number of rows, or waits for a lock, and the batches are executed one after the other instead.
"""

from collections.abc import Callable, Iterable, Mapping

from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Step
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Uri

__all__ = ["independent", "row_operations"]


def row_operations(steps: Iterable[Step], schema: Callable[[Uri], TableSchema]) -> dict[Uri, str] | None:
    """For each table the only operation on its rows, Add or Delete; None if the batch does anything else."""
    found: dict[Uri, str] = {}
    for step in steps:
        uri, kind = step.record.uri, step.operation
        if uri in found or not _needs_no_order(step, schema(uri)):
            return None
        found[uri] = kind
    return found or None


def independent(one: Mapping[Uri, str], other: Mapping[Uri, str]) -> bool:
    """Whether two batches with these ``row_operations`` are independent."""
    return all(other.get(uri, kind) == kind for uri, kind in one.items())


def _needs_no_order(step: Step, schema: TableSchema) -> bool:
    if schema.related and not step.flags & NO_FOREIGN_KEY_CHECKS:
        return False
    if step.record.key is None:
        return step.operation == "Add" and schema.columns | schema.generated == frozenset(step.record.columns)
    return step.operation in ("Add", "Delete") and schema.matches(step.record.columns, step.record.key)
