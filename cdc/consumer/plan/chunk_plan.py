"""Plans how the records of a table copy are applied: chunks, and changes of a table that is being copied. After a
chunk, the follower's rows in the chunk's range equal the chunk's rows. Pure.

One statement deletes the rows in the range that equal no row of the chunk; then the missing rows are inserted. Equal
rows are kept, so that the copy of an intact table writes nothing. Rows are compared with the keys that ``image_keys``
computes: two such keys are equal only if all values of both rows are identical.

The follower's server evaluates the range by the order of values in its own columns, so values must have the same order
there as on the leader. A chunk may have a list of keys instead of a range (``cdc-repair``); the same rules apply to it.

A table without a usable key is copied from one snapshot, in chunks that are called pieces: the first piece empties the
table, and each piece adds its rows.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cdc.consumer.errors import Unapplicable
from cdc.consumer.literals.values import Rounded, equal, identifier, literal, table_name
from cdc.consumer.plan.net_effects import Image, row_identity
from cdc.consumer.plan.planner import (
    ALL_LOGGED,
    NO_FOREIGN_KEY_CHECKS,
    Change,
    RenderedChanges,
    Step,
    for_table,
    in_order,
    plan,
)
from cdc.consumer.plan.rendered_rows import RenderedRows
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.record import Record, Row, Uri
from cdc.model.values import NULL, Value
from cdc.sql.key_range import keys_condition, range_condition

__all__ = [
    "ChunkPlan",
    "Found",
    "Repair",
    "check_chunk",
    "check_copying",
    "chunk_plan",
    "clashes",
    "in_range",
    "plan_copying",
    "plan_overwriting",
]

# Plans the records of a table that is being copied, so that each row in the records becomes equal to the leader's row.
#
# The follower may have an older version of such a row, a newer version, a damaged row, or no row. So the plan deletes
# all rows in the records by their keys, and inserts those rows that exist on the leader after the records. Nothing of
# the follower's former rows is kept.
#
# If another row on the follower has the same value in a secondary unique key, the insertion fails. The batch is then
# applied row by row, which deletes that other row. This loses no row. On the leader, only the inserted row has this
# value now, so the deleted row differed from the leader's row. All rows of earlier records and chunks equal the
# leader's rows, so the deleted row is not among them. A later record, or the chunk that contains its key, will insert
# it again.


def plan_overwriting(records: Iterable[Record], *, schema: Callable[[Uri], TableSchema]) -> list[Step]:
    """Plans records of tables with keys, in the leader's order. The follower may have any versions of the rows."""
    tables: dict[Uri, list[Record]] = {}
    for record in records:
        tables.setdefault(record.uri, []).append(record)
    return [for_table(step, schema(uri)) for uri, rows in tables.items() for step in _steps(rows, schema(uri))]


def plan_copying(records: Iterable[Record], *, schema: Callable[[Uri], TableSchema]) -> list[Step]:
    """Plans records, some of which belong to tables that are being copied. The records of other tables are planned by
    ``planner.plan``.

    If the follower's foreign keys change rows, and the leader does not log such changes, the changes of all tables with
    foreign keys keep the leader's order.
    """
    records = [_unchecked(record) if record.copying and record.key is None else record for record in records]
    # In a table without a key, a change can't overwrite rows. It is applied to the row with its before-image, and a
    # missing row is no conflict (``row_by_row``). Later the copy replaces all rows of the table.
    copied = {record.uri for record in records if record.copying and record.key is not None}
    if not copied:
        return plan(records, schema=schema)
    related = {uri for uri in {record.uri for record in records} if schema(uri).related}
    logged = all(_all_logged(record) for record in records if record.uri in related)
    together = related if related & copied and not logged else set()
    steps: list[Step] = []
    for step in in_order(record for record in records if record.uri in together):
        uri = step.record.uri
        kept = _steps(_records(step), schema(uri)) if uri in copied else [step]
        steps += [for_table(each, schema(uri)) for each in kept]
    others = [record for record in records if record.uri not in together]
    steps += plan([record for record in others if record.uri not in copied], schema=schema)
    return steps + plan_overwriting([record for record in others if record.uri in copied], schema=schema)


def _unchecked(record: Record) -> Record:
    """Returns the record without foreign key checks, because rows to which its rows refer might not exist yet."""
    return replace(record, flags=record.flags | NO_FOREIGN_KEY_CHECKS)


def check_copying(record: Record, schema: TableSchema) -> None:
    """Raises Unapplicable if rows of the record can't be made equal to the leader's rows. The table of the record is
    being copied.
    """
    name = f"{record.uri.database}.{record.uri.table}"
    if not _fits(record, schema):
        raise Unapplicable(
            f"table {name} is being copied, but has other columns or another key on the follower, or is missing there",
            code="CDC-COPY-OTHER-COLUMNS",
            record=record,
            hint=f"define it as on the leader (SHOW CREATE TABLE {name} on both), or leave it out with the filters",
        )
    if schema.cascading and record.operation in ("Update", "Delete") and not _all_logged(record):
        raise Unapplicable(
            f"table {name} is being copied while foreign keys of other tables change their rows with its rows (ON "
            "DELETE or ON UPDATE), which this leader does not log",
            code="CDC-COPY-CASCADES",
            record=record,
            hint="on the follower drop these foreign keys, start again, and when the copy is complete have those "
            "tables copied, too",
        )


def _fits(record: Record, schema: TableSchema) -> bool:
    if record.key is None:
        return schema.has(record.columns)
    if record.range is not None and record.range.piece is None:
        return schema.matches(record.columns, record.key)
    # Changes, and the pieces of a table that is copied as a whole, have no range of keys. For them the follower's key
    # may cover only the first characters of its columns: if another row has the same first characters, RowByRow finds
    # and deletes that row.
    return schema.is_keyed_by(record.columns, record.key)


def _all_logged(record: Record) -> bool:
    """Whether the binlog contains all rows that the leader changed because of this record: foreign keys were off, or
    their changes are logged.
    """
    return bool(record.flags & (NO_FOREIGN_KEY_CHECKS | ALL_LOGGED))


def _records(step: Step) -> list[Record]:
    """Returns the records of a step that keeps the leader's order; each record occurs once."""
    return list({change.record.sequence: change.record for change in step.changes}.values())


def _steps(records: list[Record], schema: TableSchema) -> Iterator[Step]:
    # maps each row to its last record and image, and whether the row exists after the records
    last: dict[object, tuple[Record, Image, bool]] = {}
    identity = row_identity(records[0])
    for record in records:
        for before, after in record.rows:
            if before is not None:
                last[identity(before)] = record, before, False
            if after is not None:
                last[identity(after)] = record, after, True
    if not last:
        return
    # Foreign keys are off, as for net effects. The rows that foreign keys change are in the records, or are copied with
    # their own tables.
    flags = NO_FOREIGN_KEY_CHECKS if schema.related else 0
    yield Step("Clear", [Change(record, Row(image, None)) for record, image, _ in last.values()], flags)
    modes: dict[str | None, list[Change]] = {}
    for record, image, there in last.values():
        if there:
            mode = record.sql_mode if schema.computes else None
            modes.setdefault(mode, []).append(Change(record, Row(None, image)))
    yield from (Step("Add", changes, flags) for changes in modes.values())


def clashes(record: Record, image: list[Value], shape: TableSchema) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yields, for each unique key, its columns and the condition that finds the rows with the same key as ``image``.

    Keys with an expression, or with a column that the record lacks, are left out; the server reports clashes in these
    keys.
    """
    values = dict(zip(record.columns, image, strict=True))
    # The record's own key comes first. A row with the same value in it is the changed row itself, even if that row also
    # clashes in other keys.
    for _, parts in sorted(shape.unique_keys.items(), key=lambda key: _columns(key[1]) != record.key):
        if any(part.column not in values for part in parts):
            continue
        where = [_same(part, values[part.column], shape.rounded) for part in parts if part.column is not None]
        if not any(values[part.column] == NULL for part in parts if part.column is not None):
            yield _columns(parts), " AND ".join(where)


def _same(part: KeyPart, value: Value, rounded: Mapping[str, Rounded]) -> str:
    if part.length is None:
        return equal(part.column or "", value, rounded)
    return f"LEFT({identifier(part.column or '')}, {part.length})=LEFT({literal(value)}, {part.length})"


def _columns(parts: Iterable[KeyPart]) -> tuple[str, ...]:
    return tuple(part.column for part in parts if part.column is not None)


# Maps the type of a leader's value, as records contain it, to the follower's column types (DATA_TYPE in
# information_schema) in which values have the same order as on the leader.
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
_AS_ON_LEADER = "define its key as on the leader (ALTER TABLE), or leave the table out with the filters"


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

    The rows in ``equal`` exist with equal values; the rows in ``others`` exist with the same key, but other values. The
    rows in ``outside`` are also in ``equal`` or ``others``, but are outside of the range on the follower. ``keys`` are
    the artificial keys (hashes of all values) of the chunk's rows, in hexadecimal, and the SQL ``expression`` computes
    such keys for the follower's rows; both are empty if the rows were not compared. If ``few`` is true, the follower
    has only few rows in the range, and equal ones are written again, too.
    """

    rows: int = 0
    equal: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()
    outside: frozenset[int] = frozenset()
    keys: Sequence[str] = ()
    expression: str = ""
    few: bool = False

    @property
    def kept(self) -> frozenset[int]:
        """The indexes of the chunk's rows that stay on the follower as they are."""
        return frozenset() if self.few else self.equal


@dataclass(frozen=True, slots=True)
class ChunkPlan:
    """The plan of a chunk. Usually ``steps`` apply the whole chunk. If they fail, they are rolled back; then
    ``emptying`` is executed, and the rows of the record ``written`` are inserted.

    ``emptying`` deletes the follower's rows in the chunk's range, except those that are kept since they equal a row of
    the chunk (``Found.kept``). ``written`` contains the other rows of the chunk. ``refused`` is the reason why the
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
    if found.kept:
        rows = [row for number, row in enumerate(chunk.rows) if number not in found.kept]
        written = replace(written, rows=tuple(rows))
    steps: list[Step] = []
    if chunk.range is not None and chunk.range.piece is not None:
        # A table without a usable key is copied in pieces. The first piece deletes all its rows on the follower, and no
        # record changes the table before the last piece. So all rows of the chunk are missing, and all rows that were
        # found are extra.
        repair.missing, repair.different, repair.extra = len(chunk.rows), 0, found.rows
    inside = found.kept - found.outside
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
    """Returns the condition that a row on the follower is in the chunk's range, or has one of the chunk's keys."""
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
        what = f"whose values ({tag}) have no order, so that no range of keys can contain them"
    elif kind not in _ORDERED[tag] or column in schema.rounded:
        what = f"which is of the type {kind} here, and whose values are {tag} on the leader: another order"
    elif collation is None:
        return
    elif theirs is None:
        what = "whose collation on the leader is not in the record"
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
