"""Determines which rows a batch changes, and whether two batches can be executed at the same time, on different
connections. Pure.

Two consecutive batches are independent if, in each table that both change, both only insert rows or both only delete
rows. If both only insert rows, all these rows exist on the leader after the second batch, so no two of them have the
same unique key. If both only delete rows, all these rows existed on the leader before the first batch. Neither argument
is valid for a table with foreign keys that the follower checks, since the follower then reads or changes other rows,
too. Inserts into a table without a key are independent as well, unless the follower's table has further columns, since
such a column may number the rows in the order in which they arrive.

Batches that change rows of a table in any way are independent if the keys of these rows differ and the table has no
other unique key. A chunk of a table copy changes rows in a range of keys: those of adjacent chunks differ, whatever
their type. A key that a batch changes is compared with a range only if it consists of integers, because only these
have the same order in Python as on the servers.

The follower may have further unique keys, and other clients may have written to it. Then a statement fails, matches
another number of rows, or waits for a lock, and the batches are executed one after another instead.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cdc.consumer.literals.values import literal
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, RenderedChanges, Step
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Record, Uri
from cdc.model.values import Value

__all__ = ["Footprint", "Span", "Touched", "beside", "chunk_footprint", "footprint", "independent"]

_INTEGERS = ("SignedInteger", "UnsignedInteger")

Number = tuple[int, ...]
"""The values of a key whose columns are all integers."""


class Span(NamedTuple):
    """The keys after the key ``after``, up to and including the key ``through``; None means the table's beginning or
    end.

    The keys are tuples of integers, which have an order, if ``numbers`` is true; otherwise they are the SQL literals of
    any values, which have none here.
    """

    after: tuple[Any, ...] | None
    through: tuple[Any, ...] | None
    numbers: bool

    def is_before(self, other: "Span") -> bool:
        """Whether all keys of this range are certainly before all keys of the ``other`` range."""
        if self.through is None or other.after is None:
            return False
        return self.through == other.after or (self.numbers and other.numbers and self.through < other.after)

    def has_none_of(self, keys: frozenset[Number]) -> bool:
        """Whether certainly none of the ``keys`` is in this range."""
        if not self.numbers:
            return not keys
        return not any(
            (self.after is None or key > self.after) and (self.through is None or key <= self.through) for key in keys
        )

    def joined(self, before: "Span") -> "Span":
        """Returns one range for both, if this one begins where the range ``before`` ends; otherwise this one."""
        adjacent = before.through is not None and before.through == self.after
        return self._replace(after=before.after) if adjacent else self


class Touched(NamedTuple):
    """The rows of a table that a batch changes.

    ``kind`` is Add or Delete if the batch only inserts or only deletes rows, and their order does not matter; otherwise
    None. ``keys`` are the keys of the rows, or ``span`` is a range that contains them; both are None if the keys are
    unknown, or do not suffice to distinguish rows.
    """

    kind: str | None = None
    keys: frozenset[Number] | None = None
    span: Span | None = None

    def differs(self, other: "Touched") -> bool:
        """Whether the rows of both can be changed at the same time."""
        if self.kind is not None and self.kind == other.kind:
            return True
        if self.keys is not None and other.keys is not None:
            return self.keys.isdisjoint(other.keys)
        if self.span is not None and other.span is not None:
            return self.span.is_before(other.span) or other.span.is_before(self.span)
        span, keys = self.span or other.span, self.keys if self.keys is not None else other.keys
        return span is not None and keys is not None and span.has_none_of(keys)


Footprint = Mapping[Uri, Touched]
"""The rows that a batch changes, by table."""


def footprint(steps: Iterable[Step], schema: Callable[[Uri], TableSchema], *, by_key: bool) -> Footprint | None:
    """Returns the rows that the planned steps of a batch change; None if nothing else may be executed at the same time.

    With ``by_key``, the keys of the rows are determined, too, which takes time for each row.
    """
    found: dict[Uri, list[Step]] = {}
    for step in steps:
        found.setdefault(step.record.uri, []).append(step)
    touched = {uri: _touched(each, schema(uri), by_key=by_key) for uri, each in found.items()}
    return None if any(each.kind is None and each.keys is None for each in touched.values()) else touched


def _touched(steps: Sequence[Step], schema: TableSchema, *, by_key: bool) -> Touched:
    kind = steps[0].operation if len(steps) == 1 and _needs_no_order(steps[0], schema) else None
    return Touched(kind, _keys(steps, schema) if by_key else None)


def _needs_no_order(step: Step, schema: TableSchema) -> bool:
    if schema.related and not step.flags & NO_FOREIGN_KEY_CHECKS:
        return False
    if step.record.key is None:
        return step.operation == "Add" and schema.columns | schema.generated == frozenset(step.record.columns)
    return step.operation in ("Add", "Delete") and schema.matches(step.record.columns, step.record.key)


def _keys(steps: Sequence[Step], schema: TableSchema) -> frozenset[Number] | None:
    """Returns the keys of all rows that the steps change; None if they do not suffice to distinguish rows, or if
    determining them would mean to parse rows again.
    """
    keys: set[Number] = set()
    for step in steps:
        if not _by_one_key(step.record, schema) or isinstance(step.changes, RenderedChanges):
            return None
        if schema.related and not step.flags & NO_FOREIGN_KEY_CHECKS:
            return None
        places = [step.record.columns.index(column) for column in step.record.key or ()]
        for _, row in step.changes:
            for image in row:
                if image is not None:
                    key = _number([image[place] for place in places])
                    if key is None:
                        return None
                    keys.add(key)
    return frozenset(keys)


def _by_one_key(record: Record, schema: TableSchema) -> bool:
    """Whether rows with different values of the record's key can't conflict with one another on the follower."""
    return len(schema.unique_keys) == 1 and schema.matches(record.columns, record.key)


def _number(key: Sequence[Value]) -> Number | None:
    numbers: list[int] = []
    for value in key:
        tag, content = next(iter(value.items()), ("", None)) if isinstance(value, dict) else ("", None)
        if tag not in _INTEGERS or type(content) is not int:
            return None
        numbers.append(content)
    return tuple(numbers)


def chunk_footprint(chunk: Record, schema: TableSchema) -> Footprint | None:
    """Returns the range of rows that a chunk of a table copy changes; None if it may change others, or if nothing else
    may be executed at the same time. Raises ValueError for an invalid value.
    """
    covered = chunk.range
    if covered is None or covered.piece is not None or covered.keys is not None or not _by_one_key(chunk, schema):
        return None
    ends = covered.after, covered.through
    numbers = [None if end is None else _number(end) for end in ends]
    if any(number is None and end is not None for number, end in zip(numbers, ends, strict=True)):
        literals = [None if end is None else tuple(map(literal, end)) for end in ends]
        return {chunk.uri: Touched(span=Span(literals[0], literals[1], numbers=False))}
    return {chunk.uri: Touched(span=Span(numbers[0], numbers[1], numbers=True))}


def independent(one: Footprint, other: Footprint) -> bool:
    """Whether two batches are independent, so that they can be executed at the same time."""
    return all(touched.differs(other[uri]) for uri, touched in one.items() if uri in other)


def beside(batches: Sequence[Footprint], new: Footprint) -> bool:
    """Whether a batch is independent of all ``batches``, which come before it, in their order."""
    for one in reversed(batches):
        if not independent(one, new):
            return False
        # Ranges that are not of integers have no order, so that of several chunks only the last is known to be before.
        new = {uri: _joined(touched, one.get(uri)) for uri, touched in new.items()}
    return True


def _joined(touched: Touched, before: Touched | None) -> Touched:
    if touched.span is None or before is None or before.span is None:
        return touched
    return touched._replace(span=touched.span.joined(before.span))
