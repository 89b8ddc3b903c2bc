"""Plans the records of a batch: the fewest steps after which the follower's tables equal the leader's.

For a table with a key, only the net effect on each row is applied: the change from its image before the batch to its
image after the batch. The exact values of the key identify a row. Net effects need no order among rows, since they lead
from one state of the leader's table to another. First all rows that no longer exist are deleted, then changed rows are
updated, then new rows are inserted. Rows cannot conflict in a secondary unique key, because a row whose value in such a
key changes is not updated, but deleted and inserted. So in these keys, each row that is left after the deletions
already has its final values. A row whose last image equals its first image is also deleted and inserted. If a batch
inserts and deletes the row with the highest AUTO_INCREMENT number, the plan inserts and deletes that row, too, so that
the follower does not assign this number again if it becomes a leader.

In a table without a key, the net effect consists of the images to remove and the images to add; an image occurs in it
as often as in the records. All images are removed before any image is added, so that rows cannot conflict in a nullable
unique key either.

In some tables the changes keep the leader's order, because the result depends on it: tables in which the follower
changes rows because of a foreign key; tables that differ from the leader's; and tables without a key that compute
values, number their rows, or have few changed rows. For these tables, only adjacent changes of the same kind share a
step.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from typing import NamedTuple

from cdc.consumer.literals import own_variables
from cdc.consumer.literals.values import NONE_ROUNDED, Rounded
from cdc.consumer.plan.net_effects import Image, NetEffect, net_effects, net_images, row_identity
from cdc.consumer.plan.rendered_rows import LazySequence, RenderedRows
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Record, Row, Uri
from cdc.model.values import NULL

__all__ = [
    "ALL_LOGGED",
    "NO_FOREIGN_KEY_CHECKS",
    "RELAXED_UNIQUE_CHECKS",
    "Change",
    "RenderedChanges",
    "Step",
    "for_table",
    "in_order",
    "plan",
    "removes",
]

# Flags of a rows event (MySQL source, class Rows_event). The last flag means that the leader also logs the rows that
# its foreign keys have changed in other tables, as MySQL does since 9.6.
NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS, ALL_LOGGED = 0x02, 0x04, 0x10
_CHECKS = NO_FOREIGN_KEY_CHECKS | RELAXED_UNIQUE_CHECKS
# If fewer rows without a key than this are deleted, a separate statement searches for each row, because one search for
# all rows reads the table two or three times.
_FEWEST_REMOVED = 4


class Change(NamedTuple):
    """The change of a row, and its record. If several changes were merged, it is their net effect, with the record of
    the last change.
    """

    record: Record
    row: Row


# Creates a Change as Change() does, but faster, since the __new__ of Change is a Python function.
_change: Callable[[tuple[Record, Row]], Change] = partial(tuple.__new__, Change)


class RenderedChanges(LazySequence[Change]):
    """The changes of ``records``; the rows of all these records are ``RenderedRows``."""

    __slots__ = ("_count", "records")

    def __init__(self, records: Sequence[Record]) -> None:
        self._count = sum(len(record.rows) for record in records)
        self.records = records

    def __len__(self) -> int:
        return self._count

    def computed(self) -> Sequence[Change]:
        """Returns the changes; to compute them, the rows are parsed again."""
        return list(chain.from_iterable(map(_changes, self.records)))


@dataclass(frozen=True, slots=True)
class Step:
    """Changes of one kind in one table, at least one change. ``flags`` determine whether foreign keys and unique keys
    are checked.

    ``operation`` is Add, Update or Delete, as in a record, or one of four other operations. Upsert is an Update that
    does not change the row's key. Absent is a Delete that must find no row with the key of the before-image, because
    the batch itself inserts and deletes that row. Clear is a Delete that may find any number of rows with these keys.
    Remove is a Delete of rows without a key, which must be counted on the follower first. ``prepared`` are the
    statements that are planned after counting, each with the number of rows that it must match (None means any number).
    ``modes`` is the leader's sql_mode (module own_variables) if the server computes values of the table, otherwise
    None. The computed values of the columns ``verified`` must be compared with the leader's values. ``rounded`` are the
    columns whose numbers must be copied from another column (module statements).
    """

    operation: str
    changes: Sequence[Change]
    flags: int = 0
    modes: str | None = None
    verified: frozenset[str] = frozenset()
    prepared: Sequence[tuple[bytes, int | None]] = ()
    rounded: Mapping[str, Rounded] = field(default_factory=lambda: NONE_ROUNDED)

    @property
    def record(self) -> Record:
        """The first record of the step; all its records have the same table, columns and key."""
        return self.changes.records[0] if isinstance(self.changes, RenderedChanges) else self.changes[0].record


def removes(records: Iterable[Record], *, schema: Callable[[Uri], TableSchema]) -> bool:
    """Whether the plan of these records may contain a step Remove, whose rows must be counted on the follower first."""
    keyless = _tables(record for record in records if record.key is None)
    return any(_removed(rows) and _is_net(rows, schema(uri)) for uri, rows in keyless.items())


def plan(records: Iterable[Record], *, schema: Callable[[Uri], TableSchema]) -> list[Step]:
    """Plans records with rows; the records must be in the leader's order. ``schema`` returns the schema of the
    follower's table.
    """
    tables = _tables(records)
    schemas = {uri: schema(uri) for uri in tables}
    ordered = {uri for uri in tables if not _is_net(tables[uri], schemas[uri])}
    if any(schemas[uri].related for uri in ordered):
        # The changes of all tables with foreign keys keep the leader's order.
        ordered |= {uri for uri in tables if schemas[uri].related}
    steps = in_order(record for record in records if record.uri in ordered) if ordered else []
    for uri, rows in tables.items():
        if uri not in ordered:
            steps.extend(_net(rows, schemas[uri]))
    return [for_table(step, schemas[step.record.uri]) for step in steps]


def _tables(records: Iterable[Record]) -> dict[Uri, list[Record]]:
    tables: dict[Uri, list[Record]] = {}
    for record in records:
        tables.setdefault(record.uri, []).append(record)
    return tables


def _removed(records: Iterable[Record]) -> int:
    return sum(len(record.rows) for record in records if record.operation != "Add")


def for_table(step: Step, schema: TableSchema) -> Step:
    """Returns the step with the settings that its table requires.

    If the server computes values of the table, the step gets the leader's sql_mode. If the server rounds values
    (FLOAT(M,D), DOUBLE(M,D)), it gets the columns with these values. If the leader logged the changes made by its
    foreign keys, the follower's foreign keys are switched off.
    """
    if schema.related and step.record.flags & ALL_LOGGED:
        step = replace(step, flags=step.flags | NO_FOREIGN_KEY_CHECKS)
    if schema.rounded:
        step = replace(step, rounded=schema.rounded)
    if not schema.computes:
        return step
    modes = own_variables.leader_modes(step.record)
    verified = schema.stored if own_variables.needs_comparison(modes) else schema.unpredictable
    return replace(step, modes=modes, verified=verified & frozenset(step.record.columns))


def in_order(records: Iterable[Record]) -> list[Step]:
    """Plans steps that keep the leader's order: only adjacent changes of the same kind share a step."""
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


def _is_net(records: Sequence[Record], schema: TableSchema) -> bool:
    first = records[0]
    if first.key is None:
        if schema.computes or schema.numbered is not None or schema.columns != frozenset(first.columns):
            return False
        if 0 < _removed(records) < _FEWEST_REMOVED:
            return False
    elif not schema.matches(first.columns, first.key):
        return False
    # A foreign key changes no rows on the follower if the leader's session did not check foreign keys, or if the leader
    # logged the rows that its foreign keys changed: in both cases the follower does not check foreign keys either.
    if schema.related and not all(record.flags & (NO_FOREIGN_KEY_CHECKS | ALL_LOGGED) for record in records):
        return False
    if schema.computes and any(record.sql_mode != first.sql_mode for record in records):
        return False
    return all(record.columns == first.columns and record.key == first.key for record in records)


def _net(records: Sequence[Record], schema: TableSchema) -> Iterator[Step]:
    """Plans the net effects on the rows of one table; keeps the leader's order if the records contradict one
    another."""
    first = records[0]
    flags = NO_FOREIGN_KEY_CHECKS if schema.related else 0
    alone = first.operation == "Add" or (first.operation == "Delete" and first.key is not None)
    if alone and all(record.operation == first.operation for record in records):
        # If rows are only inserted, or only deleted, the changes already are the net effect.
        rendered = RenderedChanges(records)
        lazy = all(isinstance(record.rows, RenderedRows) for record in records)
        if changes := rendered if lazy else rendered.computed():
            yield Step(first.operation, changes, flags)
        return
    if first.key is None:
        yield from _net_images(records, flags)
        return
    try:
        effects = net_effects(records, row_identity(first))
    except (ValueError, AttributeError, TypeError):
        effects = None  # if a value in a key is invalid, the error is raised later, when its literal is written
    if effects is None:
        yield from in_order(records)
        return
    unique = [index for index, column in enumerate(first.columns) if column in schema.secondary(first.key)]
    # An Upsert sets the columns of the key to themselves, and the server refuses this for a generated column. Also, an
    # Upsert does not find a row whose key is padded.
    computed = not schema.generated.isdisjoint(first.key) or (schema.computes and "PAD" in (first.sql_mode or ""))
    # An Upsert contains numbers as literals, and the server would round literals in columns FLOAT(M,D) or DOUBLE(M,D).
    kinds = _by_operation(effects, None if computed or schema.rounded else unique)
    numbered = _numbered(records, kinds, schema)
    if numbered is not None and (unique or schema.numbered not in first.key):
        # The row with the highest AUTO_INCREMENT value is inserted and deleted before rows are updated. A row that is
        # still to be updated could clash with it in a unique key. So changed rows are deleted and inserted instead.
        kinds = _by_operation(effects, None)
    yield from _in_steps(kinds, numbered, flags)


def _in_steps(kinds: Mapping[str, list[Change]], numbered: Change | None, flags: int) -> Iterator[Step]:
    """Yields a step for each kind. ``numbered`` inserts the row with the highest AUTO_INCREMENT value if no step writes
    it.
    """
    for kind, changes in kinds.items():
        if kind == "Upsert" and numbered is not None:
            # The row with the highest AUTO_INCREMENT value is inserted and deleted only to advance the counter. This
            # happens after all deletions and before all insertions, where it can't conflict with another row.
            record, row = numbered
            yield Step("Add", [numbered], flags)
            yield Step("Delete", [Change(record, Row(row.after, None))], flags)
        if changes:
            yield Step(kind, changes, flags)


def _net_images(records: Sequence[Record], flags: int) -> Iterator[Step]:
    """Plans the steps for a table without a key: first all images are removed, then all new images are added."""
    gone, come = net_images(records)
    if gone:
        yield Step("Remove", [Change(record, Row(image, None)) for record, image in gone], flags)
    if come:
        yield Step("Add", [Change(record, Row(None, image)) for record, image in come], flags)


def _by_operation(effects: Iterable[NetEffect], unique: Sequence[int] | None) -> dict[str, list[Change]]:
    """Groups the net effects by the operation of the step that will apply them; the groups are in the order of the
    steps' execution.

    ``unique`` are the indexes of the columns in unique keys: a row whose value in one of these columns changes is
    deleted and inserted. If ``unique`` is None, each changed row is deleted and inserted.
    """
    kinds: dict[str, list[Change]] = {kind: [] for kind in ("Delete", "Absent", "Upsert", "Add")}
    for record, before, after, image in effects:
        if before is None and after is None:
            kinds["Absent"].append(Change(record, Row(image, None)))
        elif before is None:
            kinds["Add"].append(Change(record, Row(None, after)))
        elif after is None:
            kinds["Delete"].append(Change(record, Row(before, None)))
        elif unique is None or before == after or any(before[index] != after[index] for index in unique):
            # The follower would not log an UPDATE to the same values, and the audit reads the follower's rows only from
            # the follower's binlog.
            kinds["Delete"].append(Change(record, Row(before, None)))
            kinds["Add"].append(Change(record, Row(None, after)))
        else:
            kinds["Upsert"].append(Change(record, Row(before, after)))
    return kinds


def _numbered(records: Sequence[Record], kinds: Mapping[str, Sequence[Change]], schema: TableSchema) -> Change | None:
    """Returns the insertion of the row with the highest AUTO_INCREMENT number if no step writes that row; returns None
    if a step writes a row with a number as high.
    """
    columns = records[0].columns
    if schema.numbered not in columns:
        return None
    column = columns.index(schema.numbered)
    written = [row.after for kind in ("Upsert", "Add") for _, row in kinds[kind]]
    last = max((_number(image, column) for image in written), default=0)
    high: Change | None = None
    for record in records:
        for _, after in record.rows:
            if after is not None and (number := _number(after, column)) > last:
                last, high = number, Change(record, Row(None, after))
    return high


def _number(image: Image | None, column: int) -> float:
    value = image[column] if image else NULL
    content = next(iter(value.values()), 0) if isinstance(value, dict) else 0
    return content if isinstance(content, int | float) else 0
