"""Batches that do not depend on one another, so that they can be executed at once. Pure.

Two batches that follow one another are independent where, of each table that both change, both only add rows or both
only delete rows. What the leader added in both is there after the second one, all of it, so that no key of the leader's
keeps the ones out before the others are in or out; and what it deleted in both was there before the first one. Neither
holds for a table in which a foreign key makes the follower look at, or change, other rows: it counts only without these
checks. Rows that are only added need no order in tables without a key either, unless the table has columns of its own
on the follower: it may number its rows as they come.

The follower may have keys of its own, and something else may have written to it. Then a statement fails, matches
another number of rows, or waits for a lock, and the batches are executed one after the other after all.
"""

from collections.abc import Callable, Iterable, Mapping

from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Step
from cdc.consumer.plan.table_schema import Shape
from cdc.model.record import Uri

__all__ = ["doing", "independent"]


def doing(steps: Iterable[Step], shape: Callable[[Uri], Shape]) -> dict[Uri, str] | None:
    """What each table's rows do, Add or Delete, where they need no order; None where any do anything else."""
    found: dict[Uri, str] = {}
    for step in steps:
        uri, kind = step.record.uri, step.operation
        if uri in found or not _needs_no_order(step, shape(uri)):
            return None
        found[uri] = kind
    return found or None


def independent(one: Mapping[Uri, str], other: Mapping[Uri, str]) -> bool:
    """Whether batches that do this (``doing``) are independent."""
    return all(other.get(uri, kind) == kind for uri, kind in one.items())


def _needs_no_order(step: Step, shape: Shape) -> bool:
    if shape.related and not step.flags & NO_FOREIGN_KEY_CHECKS:
        return False
    if step.record.key is None:
        return step.operation == "Add" and shape.columns | shape.generated == frozenset(step.record.columns)
    return step.operation in ("Add", "Delete") and shape.holds(step.record.columns, step.record.key)
