"""Plans a chunk of a table copy: makes the follower's rows in the chunk's range equal to the chunk's rows. Pure.

One statement deletes the rows in the range that equal no row of the chunk, then the missing rows are inserted. A row
that is equal stays, so that the copy of an intact table writes nothing. Rows are compared by the keys that
``image_keys`` computes for rows without a key: two of these keys are equal if all values of both rows are equal, to the
byte.

The server evaluates the range in the order of the follower's columns, so these must be ordered like the leader's. A
chunk may have some keys instead of a range (``cdc-repair``); the server finds their rows by the same rules.

If a table is copied as a whole, the first piece empties it, and each piece adds its rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cdc.consumer.errors import Unapplicable
from cdc.consumer.literals.values import identifier, literal, table_name
from cdc.consumer.plan.copying import check_copying
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Change, RenderedChanges, Step, for_table
from cdc.consumer.plan.rendered_rows import RenderedRows
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Record, Row
from cdc.sql.key_range import keys_condition, range_condition

__all__ = ["ChunkPlan", "Found", "Repair", "check_chunk", "chunk_plan", "in_range"]

# Maps the tag of a leader's value to the follower's types (DATA_TYPE in the information schema) that order the values
# alike.
_INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
_TEXTS = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
_ORDERED: dict[str, tuple[str, ...]] = {
    "SignedInteger": (*_INTEGERS, "decimal"),
    "UnsignedInteger": (*_INTEGERS, "decimal"),
    "Year": ("year",),
    "Bit": ("bit",),
    "Decimal": ("decimal",),
    "Float": ("float",),
    "Double": ("double",),
    "String": _TEXTS,
    "Text": _TEXTS,
    "Blob": ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"),
    "Date": ("date",),
    "Time": ("time",),
    "DateTime": ("datetime",),
    "Timestamp": ("timestamp",),
}
_AS_ON_LEADER = "make its key as on the leader (ALTER TABLE), or leave the table out with the filters"


@dataclass(slots=True)
class Repair:
    """Counts a chunk's rows that were ``missing`` or ``different`` on the follower, and ``extra`` rows that only the
    follower had.

    ``there`` is the number of rows that the follower had in the range.
    """

    missing: int = 0
    different: int = 0
    extra: int = 0
    there: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The follower's rows for a chunk: ``rows`` is their number in the chunk's range; the sets contain the numbers of
    those rows of the chunk that exist on the follower.

    The rows in ``equal`` need not be written; the rows in ``others`` exist with the same key and other values.
    ``outside`` are the rows of both sets that are not in the range on the follower. ``keys`` are the keys of the
    chunk's rows, in hexadecimal, as the SQL ``expression`` computes them for rows of the table; both are empty if the
    range has no rows.
    """

    rows: int = 0
    equal: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()
    keys: Sequence[str] = ()
    expression: str = ""


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """The plan of a chunk: ``steps`` are executed first; if they fail, ``emptying`` is executed, and then the record
    ``written``.

    ``written`` inserts the rows that are not equal on the follower; ``refused`` is the reason why the chunk can't be
    applied.
    """

    chunk: Record
    written: Record
    emptying: Sequence[Step] = ()
    steps: Sequence[Step] = ()
    repair: Repair = field(default_factory=Repair)
    refused: Unapplicable | None = None


def chunk_plan(chunk: Record, schema: TableSchema, found: Found) -> ChunkPlan:
    """Plans how the follower's table gets the rows of a chunk. Raises ValueError for an invalid value."""
    # In MySQL's default sql_mode, zero dates are neither stored nor found in a table that computes values.
    chunk = replace(chunk, sql_mode=chunk.sql_mode or "")
    flags = NO_FOREIGN_KEY_CHECKS if schema.related else 0
    repair = _repair(len(chunk.rows), found)
    # Copied rows belong to no event, so it is not known in which sql_mode the leader computed their values.
    verified = schema.stored & frozenset(chunk.columns)
    written = replace(chunk, operation="Add", flags=chunk.flags | NO_FOREIGN_KEY_CHECKS, copying=True)
    if found.equal:
        rows = [row for number, row in enumerate(chunk.rows) if number not in found.equal]
        written = replace(written, rows=tuple(rows))
    steps: list[Step] = []
    if chunk.range is not None and chunk.range.piece is not None:
        # No record changed the table since it was emptied, so nothing else must be removed.
        repair.missing, repair.different, repair.extra = len(chunk.rows), 0, found.rows
    inside = found.equal - found.outside
    if found.rows > len(inside):
        sql = f"DELETE FROM {table_name(chunk.uri)} WHERE {in_range(chunk)}{_except(found, inside)}"
        gone = [Change(chunk, Row(None, None))]
        expected = None if chunk.range and chunk.range.piece is not None else found.rows - len(inside)
        steps.append(Step("Delete", gone, flags, prepared=((sql.encode(), expected),)))
    emptying = tuple(for_table(step, schema) for step in steps)
    if away := found.others & found.outside:
        changes = [Change(written, Row(row.after, None)) for number, row in enumerate(chunk.rows) if number in away]
        steps.append(Step("Clear", changes, flags))
    if len(written.rows):
        rendered = RenderedChanges([written])
        steps.append(Step("Add", rendered if isinstance(written.rows, RenderedRows) else rendered.computed(), flags))
    made = [replace(for_table(step, schema), verified=verified) for step in steps]
    return ChunkPlan(chunk, written, emptying, made, repair)


def in_range(chunk: Record) -> str:
    """The SQL condition that a row of the follower's table is in the chunk's range, or has one of the chunk's keys."""
    assert chunk.range is not None
    if chunk.range.piece is not None:
        return "TRUE" if chunk.range.piece == 0 else "FALSE"
    columns = [*map(identifier, chunk.key or ())]
    if chunk.range.keys is not None:
        return keys_condition(columns, ([*map(literal, key)] for key in chunk.range.keys))
    after, through = (None if end is None else [*map(literal, end)] for end in (chunk.range.after, chunk.range.through))
    return range_condition(columns, after, through)


def _except(found: Found, kept: frozenset[int]) -> str:
    listed = ",".join([f"x'{found.keys[number]}'" for number in sorted(kept)])
    return f" AND {found.expression} NOT IN ({listed})" if listed else ""


def _repair(rows: int, found: Found) -> Repair:
    return Repair(
        missing=rows - len(found.equal) - len(found.others),
        different=len(found.others),
        extra=found.rows - len((found.equal | found.others) - found.outside),
        there=found.rows,
    )


def check_chunk(chunk: Record, schema: TableSchema) -> None:
    """Raises Unapplicable if the range may have other rows on the follower than on the leader."""
    check_copying(chunk, schema)
    assert chunk.range is not None
    key = chunk.key or ()
    # A range without ends covers all keys, so their order does not matter.
    for end in (chunk.range.after, chunk.range.through, *(chunk.range.keys or ())):
        for number, (column, value) in enumerate(zip(key, end or (), strict=bool(end))):
            tag = next(iter(value), "") if isinstance(value, dict) else str(value)
            _check_order(chunk, schema, number, column=column, tag=tag)


def _check_order(chunk: Record, schema: TableSchema, number: int, *, column: str, tag: str) -> None:
    kind, collation = schema.types.get(column, ("", None))
    collations = chunk.range.collations if chunk.range else None
    theirs = collations[number] if collations else None
    if tag not in _ORDERED:
        what = f"whose values ({tag}) have no order that a range could name"
    elif kind not in _ORDERED[tag] or column in schema.rounded:
        what = f"which is of the type {kind} here, and whose values are {tag} on the leader: another order"
    elif collation is None:
        return
    elif theirs is None:
        what = "of which the record does not say how the leader orders it (collations)"
    elif _named(theirs) == _named(collation):
        return
    else:
        what = f"which the leader orders by {theirs}, the follower by {collation}"
    raise Unapplicable(
        f"table {chunk.uri.database}.{chunk.uri.table} can't be copied by ranges of its key's column {column}, {what}",
        code="CDC-COPY-KEY-ORDER",
        record=chunk,
        hint=_AS_ON_LEADER,
    )


def _named(collation: str) -> str:
    """The collation's present name: utf8_bin is utf8mb3_bin since MySQL 8.0.30."""
    return collation.replace("utf8_", "utf8mb3_", 1) if collation.startswith("utf8_") else collation
