"""Plans how a chunk of a table copy is applied: the follower's rows in the chunk's range become equal to the chunk's
rows. Pure.

One statement deletes the rows in the range that equal no row of the chunk; then the missing rows are inserted. Equal
rows are kept, so that the copy of an intact table writes nothing. Rows are compared with the keys that ``image_keys``
computes: two such keys are equal only if all values of both rows are identical.

The follower's server evaluates the range by the order of values in its own columns, so values must have the same order
there as on the leader. A chunk may have a list of keys instead of a range (``cdc-repair``); the same rules apply to it.

If a table is copied as a whole, the first piece empties the table, and each piece adds its rows.
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

# Maps the tag of a leader's value to the follower's column types (DATA_TYPE in information_schema) in which values have
# the same order.
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
    """Counts of rows. ``missing`` rows of the chunk did not exist on the follower, ``different`` rows of the chunk
    existed with other values, and ``extra`` rows existed only on the follower.

    ``there`` is the number of rows that the follower had in the chunk's range.
    """

    missing: int = 0
    different: int = 0
    extra: int = 0
    there: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """The result of comparing the follower's rows with a chunk. ``rows`` is the number of the follower's rows in the
    chunk's range. The sets contain the indexes of the chunk's rows that exist on the follower.

    The rows in ``equal`` exist with equal values, the rows in ``others`` with the same key and other values. The rows
    in ``outside`` belong to one of these sets, but are outside of the range on the follower. ``keys`` are the
    artificial keys of the chunk's rows, in hexadecimal, and the SQL ``expression`` computes such keys for the
    follower's rows; both are empty if the rows were not compared.
    """

    rows: int = 0
    equal: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()
    keys: Sequence[str] = ()
    expression: str = ""


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """The plan of a chunk. ``steps`` are executed first; if they fail, ``emptying`` is executed, and then the record
    ``written`` is applied.

    ``written`` inserts the rows of the chunk that have no equal row on the follower. ``refused`` is the reason why the
    chunk can't be applied.
    """

    chunk: Record
    written: Record
    emptying: Sequence[Step] = ()
    steps: Sequence[Step] = ()
    repair: Repair = field(default_factory=Repair)
    refused: Unapplicable | None = None


def chunk_plan(chunk: Record, schema: TableSchema, found: Found) -> ChunkPlan:
    """Plans how a chunk is applied to the follower's table. Raises ValueError for an invalid value."""
    # An ``sql_mode`` of None would mean MySQL's default, under which zero dates can be neither stored nor found in a
    # table with generated columns.
    chunk = replace(chunk, sql_mode=chunk.sql_mode or "")
    flags = NO_FOREIGN_KEY_CHECKS if schema.related else 0
    repair = _repair(len(chunk.rows), found)
    # Copied rows belong to no binlog event, so the sql_mode under which the leader computed their values is unknown.
    # The stored values are therefore compared with the leader's.
    verified = schema.stored & frozenset(chunk.columns)
    written = replace(chunk, operation="Add", flags=chunk.flags | NO_FOREIGN_KEY_CHECKS, copying=True)
    if found.equal:
        rows = [row for number, row in enumerate(chunk.rows) if number not in found.equal]
        written = replace(written, rows=tuple(rows))
    steps: list[Step] = []
    if chunk.range is not None and chunk.range.piece is not None:
        # The first piece of a table deletes all its rows on the follower, and no record changes the table before the
        # last piece. So all rows of the chunk are missing, and all rows that were found are extra.
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
    """Writes the condition that a row of the follower's table is in the chunk's range, or has one of the chunk's
    keys."""
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
    """Raises Unapplicable if the chunk's range may contain other rows on the follower than on the leader."""
    check_copying(chunk, schema)
    assert chunk.range is not None
    key = chunk.key or ()
    # A range without ends contains all keys, so their order does not matter.
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
    """Returns the present name of a collation. MySQL 8.0.30 has renamed utf8_bin to utf8mb3_bin, for example."""
    return collation.replace("utf8_", "utf8mb3_", 1) if collation.startswith("utf8_") else collation
