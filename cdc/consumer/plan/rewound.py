"""Plans records that are applied again (``--rewind``): each row becomes what it is after them.

The follower's rows are from any later moment, or damaged. So all rows that the records name are deleted by their keys,
as many as there are, and those that exist after the records are inserted: nothing that was there is taken over. A row
that holds a value of a secondary unique key which it gets only later makes the insertion fail; then the batch is
applied row by row, which removes such a row. Its later record brings it back. Pure.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from cdc.consumer.plan.net_effects import Image, row_identity
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Change, Step, for_table
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Record, Row, Uri

__all__ = ["deleting_any_number", "plan_again"]


def plan_again(records: Iterable[Record], *, schema: Callable[[Uri], TableSchema]) -> list[Step]:
    """The steps for rows records of tables with keys, which are in the leader's order."""
    tables: dict[Uri, list[Record]] = {}
    for record in records:
        tables.setdefault(record.uri, []).append(record)
    return [for_table(step, schema(uri)) for uri, rows in tables.items() for step in _steps(rows, schema(uri))]


def _steps(records: list[Record], schema: TableSchema) -> Iterator[Step]:
    last: dict[object, tuple[Record, Image, bool]] = {}  # of each row: the last image, and whether it is there then
    identity = row_identity(records[0])
    for record in records:
        for before, after in record.rows:
            if before is not None:
                last[identity(before)] = record, before, False
            if after is not None:
                last[identity(after)] = record, after, True
    if not last:
        return
    # As in a step of net effects: what foreign keys change is in the records, else there would be no rewind.
    flags = NO_FOREIGN_KEY_CHECKS if schema.related else 0
    yield Step("Delete", [Change(record, Row(image, None)) for record, image, _ in last.values()], flags)
    modes: dict[str | None, list[Change]] = {}
    for record, image, there in last.values():
        if there:
            mode = record.sql_mode if schema.computes else None
            modes.setdefault(mode, []).append(Change(record, Row(None, image)))
    yield from (Step("Add", changes, flags) for changes in modes.values())


def deleting_any_number(statements: Iterable[Statement]) -> Iterator[Statement]:
    """The statements of such a plan; those that delete may find any number of rows."""
    for statement in statements:
        yield replace(statement, rows=None) if statement.sql.startswith(b"DELETE") else statement
