"""Plans the records of a table that is being copied, so that each row in the records becomes equal to the leader's row.
Pure.

The follower may have an older version of such a row, a newer version, a damaged row, or no row. So the plan deletes all
rows in the records by their keys, and inserts those rows that exist on the leader after the records. Nothing of the
follower's former rows is kept.

If another row on the follower has the same value in a secondary unique key, the insertion fails. The batch is then
applied row by row, which deletes that other row. This loses no row. On the leader, only the inserted row has this value
now, so the deleted row differed from the leader's row. All rows of earlier records and chunks equal the leader's rows,
so the deleted row is not among them. A later record, or the chunk that contains its key, will insert it again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from cdc.consumer.errors import Unapplicable
from cdc.consumer.literals.rounded import Rounded
from cdc.consumer.literals.values import equal, identifier, literal
from cdc.consumer.plan.net_effects import Image, row_identity
from cdc.consumer.plan.planner import ALL_LOGGED, NO_FOREIGN_KEY_CHECKS, Change, Step, for_table, in_order, plan
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.record import Record, Row, Uri
from cdc.model.values import NULL, Value

__all__ = ["check_copying", "clashes", "plan_copying", "plan_overwriting"]


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
    """Returns the record without foreign key checks, because rows to which its rows refer may not exist yet."""
    return replace(record, flags=record.flags | NO_FOREIGN_KEY_CHECKS)


def check_copying(record: Record, schema: TableSchema) -> None:
    """Raises Unapplicable if rows of the record can't be made equal to the leader's rows. The table of the record is
    being copied.
    """
    name = f"{record.uri.database}.{record.uri.table}"
    if not _fits(record, schema):
        raise Unapplicable(
            f"table {name} is being copied, but has other columns or another key on the follower, or is not there",
            code="CDC-COPY-OTHER-COLUMNS",
            record=record,
            hint=f"make it as on the leader (SHOW CREATE TABLE {name} on both), or leave it out with the filters",
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
    # Without a range, the follower's key may cover only the first characters of its columns, because RowByRow finds and
    # deletes a row with the same first characters.
    return schema.is_keyed_by(record.columns, record.key)


def _all_logged(record: Record) -> bool:
    """Whether the leader's foreign keys changed no other rows because of this record, or the leader has logged these
    changes, too.
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
