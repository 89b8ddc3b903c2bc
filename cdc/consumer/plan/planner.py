"""What a batch asks of the follower, in as few steps as give the same tables. Pure.

Of a table with a key only the net effect on each row counts: what the row was before the batch and what it is after it,
told apart by the exact values of the key. The net effects need no order of their own, since they go from one state of
the leader's to another: first what is gone is deleted, then what is changed is updated, then what is new is inserted.
A secondary unique key is never in the way of that, because a row whose value in one changes is deleted and inserted;
after the deletions no row holds a value that it does not hold in the end. So is a row that is in the end what it was.
A row that has come and gone comes and goes here too where it had the highest AUTO_INCREMENT number: the follower must
not give that number away once it is a leader.

The leader's order is kept, change by change, where rows are not all there is to it: in tables without a key, in those
of which a foreign key makes the follower change rows by itself, and in those that are not on the follower as they are
on the leader. Neighbours of one kind share a step there too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

from cdc.consumer.literals import row_sql_mode
from cdc.consumer.plan.rendered_rows import AddedRows, Anew
from cdc.consumer.plan.table_schema import Shape
from cdc.model.record import Record, Row, Uri
from cdc.model.values import NULL, Value

__all__ = [
    "ALL_LOGGED",
    "NO_FOREIGN_KEY_CHECKS",
    "RELAXED_UNIQUE_CHECKS",
    "AddedChanges",
    "Change",
    "Step",
    "in_order",
    "plan",
]

# Flags of a rows event (MySQL source, class Rows_event). The last says that the leader logged the rows of other tables
# that its foreign keys changed, as it does since 9.6.
NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS, ALL_LOGGED = 0x02, 0x04, 0x10
_CHECKS = NO_FOREIGN_KEY_CHECKS | RELAXED_UNIQUE_CHECKS
_Image = list[Value]
# Values of other types are compared by their text: -0.0 is not 0.0, and a document can be no key of a dict.
_PLAIN = frozenset({"SignedInteger", "UnsignedInteger", "String"})


class Change(NamedTuple):
    """One row's change, or the net effect of many, and the record that it, or the last of them, came in."""

    record: Record
    row: Row


# What Change() does, but it does it in Python, which takes longer.
_change: Callable[[tuple[Record, Row]], Change] = partial(tuple.__new__, Change)


class AddedChanges(Anew[Change]):
    """The changes of ``records`` whose rows are all ``AddedRows``, which have their texts."""

    __slots__ = ("_count", "records")

    def __init__(self, records: Sequence[Record]) -> None:
        self._count = sum(len(record.rows) for record in records)
        self.records = records

    def __len__(self) -> int:
        return self._count

    def made(self) -> Sequence[Change]:
        """The changes, with rows that are read anew."""
        return list(chain.from_iterable(map(_changes, self.records)))


@dataclass(frozen=True, slots=True)
class Step:
    """Changes of one kind in one table, under the checks of ``flags``. Never empty.

    ``operation`` is Add, Update or Delete, as in a record; Upsert: an Update of a row whose key stays; or Absent: the
    row of the before-image must not be there, since it has come and gone. ``modes`` are the leader's under which the
    table computes (module row_modes), None where it does not; what it makes of ``verified`` columns must be looked up.
    """

    operation: str
    changes: Sequence[Change]
    flags: int = 0
    modes: str | None = None
    verified: frozenset[str] = frozenset()

    @property
    def record(self) -> Record:
        """The first record of the step: what it says of the table holds for all of them."""
        return self.changes.records[0] if isinstance(self.changes, AddedChanges) else self.changes[0].record


def plan(records: Iterable[Record], *, shape: Callable[[Uri], Shape]) -> list[Step]:
    """The steps of rows records, which are in the leader's order."""
    tables: dict[Uri, list[Record]] = {}
    for record in records:
        tables.setdefault(record.uri, []).append(record)
    shapes = {uri: shape(uri) for uri in tables}
    ordered = {uri for uri in tables if not _is_net(tables[uri], shapes[uri])}
    if any(shapes[uri].related for uri in ordered):
        # Tables that foreign keys join have one order.
        ordered |= {uri for uri in tables if shapes[uri].related}
    steps = in_order(record for record in records if record.uri in ordered) if ordered else []
    for uri, rows in tables.items():
        if uri not in ordered:
            steps.extend(_net(rows, shapes[uri]))
    return [_computing(step, shapes[step.record.uri]) for step in steps]


def _computing(step: Step, shape: Shape) -> Step:
    """The step under the leader's modes, where the table computes."""
    if not shape.computes:
        return step
    modes = row_sql_mode.computing(step.record)
    verified = shape.stored if row_sql_mode.is_looked_up(modes) else shape.doubtful
    return replace(step, modes=modes, verified=verified & frozenset(step.record.columns))


def in_order(records: Iterable[Record]) -> list[Step]:
    """The steps that keep the leader's order throughout: each only joins what stands side by side."""
    steps: list[Step] = []
    last: list[Change] = []
    for record in records:
        changes = _changes(record)
        if steps and _joins(steps[-1].record, record):
            last.extend(changes)
        elif changes:
            last = changes
            steps.append(Step(record.operation, last, record.flags & _CHECKS))
    return steps


def _changes(record: Record) -> list[Change]:
    return list(map(_change, zip(repeat(record), record.rows, strict=False)))


def _joins(first: Record, record: Record) -> bool:
    return (
        first.operation == record.operation
        and first.uri == record.uri
        and first.columns == record.columns
        and first.key == record.key
        and first.flags == record.flags
        and first.sql_mode == record.sql_mode
    )


def _is_net(records: Sequence[Record], shape: Shape) -> bool:
    first = records[0]
    if not shape.holds(first.columns, first.key):
        return False
    # Without checks, and where the leader logged what its foreign keys did, they do nothing on the follower.
    if shape.related and not all(record.flags & (NO_FOREIGN_KEY_CHECKS | ALL_LOGGED) for record in records):
        return False
    if shape.computes and any(record.sql_mode != first.sql_mode for record in records):
        return False
    return all(record.columns == first.columns and record.key == first.key for record in records)


def _net(records: Sequence[Record], shape: Shape) -> Iterator[Step]:
    """The net effects in one table; in order where its records contradict one another."""
    first = records[0]
    flags = NO_FOREIGN_KEY_CHECKS if shape.related else 0
    if first.operation != "Update" and all(record.operation == first.operation for record in records):
        # Rows that only come, or only go, are their own net effect.
        added = AddedChanges(records)
        changes = added if all(isinstance(record.rows, AddedRows) for record in records) else added.made()
        if changes:
            yield Step(first.operation, changes, flags)
        return
    try:
        effects = _effects(records, _identity(first))
    except (ValueError, AttributeError, TypeError):
        # What is no value in a key is told when its literal is asked for.
        effects = None
    if effects is None:
        yield from in_order(records)
        return
    places = [index for index, column in enumerate(first.columns) if column in shape.secondary(first.key or ())]
    # A column that the follower computes can't be set to itself, as an Upsert does with the key. Neither can a row be
    # found whose texts come padded.
    computed = not shape.generated.isdisjoint(first.key or ()) or (shape.computes and "PAD" in (first.sql_mode or ""))
    kinds = _kinds(effects, None if computed else places)
    numbered = _numbered(records, kinds, shape)
    if numbered is not None and places:
        # A row that stays, but for its values, may have one that the numbered row had in a secondary unique key.
        kinds = _kinds(effects, None)
    for kind, changes in kinds.items():
        if kind == "Upsert" and numbered is not None:
            # Between what goes and what comes nothing is in its way.
            record, row = numbered
            yield Step("Add", [numbered], flags)
            yield Step("Delete", [Change(record, Row(row.after, None))], flags)
        if changes:
            yield Step(kind, changes, flags)


def _kinds(effects: Iterable["_Effect"], places: Sequence[int] | None) -> dict[str, list[Change]]:
    """The changes by the operation of their step, in the order of the steps.

    ``places`` are those of the columns whose rows are deleted and inserted where they change; None: of every column.
    """
    kinds: dict[str, list[Change]] = {kind: [] for kind in ("Delete", "Absent", "Upsert", "Add")}
    for record, before, after, image in effects:
        if before is None and after is None:
            kinds["Absent"].append(Change(record, Row(image, None)))
        elif before is None:
            kinds["Add"].append(Change(record, Row(None, after)))
        elif after is None:
            kinds["Delete"].append(Change(record, Row(before, None)))
        elif places is None or before == after or any(before[place] != after[place] for place in places):
            # An update to the same values would not be in the follower's binlog, by which the audit knows its rows.
            kinds["Delete"].append(Change(record, Row(before, None)))
            kinds["Add"].append(Change(record, Row(None, after)))
        else:
            kinds["Upsert"].append(Change(record, Row(before, after)))
    return kinds


def _numbered(records: Sequence[Record], kinds: Mapping[str, Sequence[Change]], shape: Shape) -> Change | None:
    """The addition of the row with the highest AUTO_INCREMENT number, where none that is written has as high a one."""
    columns = records[0].columns
    if shape.numbered not in columns:
        return None
    place = columns.index(shape.numbered)
    written = [row.after for kind in ("Upsert", "Add") for _, row in kinds[kind]]
    last = max((_number(image, place) for image in written), default=0)
    high: Change | None = None
    for record in records:
        for _, after in record.rows:
            if after is not None and (number := _number(after, place)) > last:
                last, high = number, Change(record, Row(None, after))
    return high


def _number(image: _Image | None, place: int) -> float:
    value = image[place] if image else NULL
    content = next(iter(value.values()), 0) if isinstance(value, dict) else 0
    return content if isinstance(content, int | float) else 0


_Effect = tuple[Record, _Image | None, _Image | None, _Image]


def _effects(records: Iterable[Record], identity: Callable[[_Image], object]) -> Iterable[_Effect] | None:
    """Of each row its last record, its image before the records and after them, and its newest one.

    None where a row comes that is there, or goes that is not: then these are not the records of one table's history.
    """
    rows: dict[object, _Effect] = {}
    for record in records:
        for before, after in record.rows:
            if before is not None:
                place = identity(before)
                known = rows.get(place)
                if known is None:
                    first: _Image | None = before
                elif known[2] is None:
                    return None
                else:
                    first = known[1]
                if after is not None and identity(after) == place:
                    rows[place] = record, first, after, after
                    continue
                rows[place] = record, first, None, before
            if after is not None:
                place = identity(after)
                known = rows.get(place)
                if known is None:
                    rows[place] = record, None, after, after
                elif known[2] is not None:
                    return None
                else:
                    rows[place] = record, known[1], after, after
    return rows.values()


def _identity(record: Record) -> Callable[[_Image], object]:
    """What tells a row of this table from the others: the exact values of its key."""
    places = [record.columns.index(column) for column in record.key or ()]
    if len(places) > 1:
        return lambda image: tuple([_exactly(image[place]) for place in places])
    (place,) = places
    return lambda image: _exactly(image[place])


def _exactly(value: Value) -> object:
    for tag, content in value.items():
        return content if tag in _PLAIN else (tag, repr(content))
    raise ValueError("not a value of a record: {}")
