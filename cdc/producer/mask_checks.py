"""Refuses masks under which a follower could not store the table's rows, or another column would show the masked value.

The binlog shows only the primary key of a table. The leader is queried for everything else: at the start, at the first
rows of a table, and again after each statement. A column in the binlog that the leader's table no longer has may have
been computed from a masked column, so it needs a mask, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdc.config.filters import HASH, HASHED_BYTES, HASHED_TEXTS, NULL, Filters, Mask
from cdc.errors import PromiseError, UserError
from cdc.producer.binlog.leader import connected_cursor
from cdc.producer.decode.table_map import Table

__all__ = ["asking", "check_masks", "problem"]

_HINT = "mask it otherwise or not at all (filters.mask_columns), or leave the table out with filters.exclude_tables"
MaskOf = Callable[[str], Mask | None]


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    kind: str
    nullable: bool
    expression: str  # the expression of a generated column or of a default; empty if there is none


def asking(settings: dict[str, Any], filters: Filters, *, name: str) -> Callable[[Table], None]:
    """Returns a function that raises PromiseError for a table in the binlog whose rows can't be masked; it queries the
    leader ``name`` about tables with masked columns.
    """

    def require(table: Table) -> None:
        mask_of = partial(filters.mask, table.database, table.name)
        columns = [column.name for column in table.columns]
        if not any(map(mask_of, columns)):
            return
        masked = [column for column in table.key or () if mask_of(column)]
        why = f"column {masked[0]} can't be masked: it is in the key" if masked else ""
        if not why:
            with connected_cursor(settings, name) as cursor:
                why = problem(cursor, table.database, table.name, mask_of, logged=columns)
        if why:
            raise PromiseError(
                why, code="CDC-MASK-ROWS-UNFIT", where=f"table {table.database}.{table.name}", hint=_HINT
            )

    return require


def check_masks(settings: dict[str, Any], filters: Filters, *, name: str) -> list[str]:
    """Raises UserError for the first table of the leader ``name`` that passes the filters and has a column that can't
    be masked as configured. Returns the globs that match no column of the leader.
    """
    if not filters.masks:
        return []
    with connected_cursor(settings, name) as cursor:
        cursor.execute("SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS ORDER BY 1, 2")
        columns = list(cursor.fetchall())
        named = {(database, table) for database, table, column in columns
                 if filters.mask(database, table, column) and filters.wants_table(database, table)}  # fmt: skip
        for database, table in sorted(named):
            if why := problem(cursor, database, table, partial(filters.mask, database, table)):
                raise UserError(why, code="CDC-MASK-UNFIT", where=f"table {database}.{table}", hint=_HINT)
    return filters.masks.unused(columns)


def problem(cursor: Any, database: str, table: str, mask_of: MaskOf, *, logged: Iterable[str] = ()) -> str:
    """Returns the reason why a column of the leader's table can't be masked; empty if all can. ``logged`` are the
    columns of the table's rows in the binlog.
    """
    columns = list(_columns(cursor, database, table))
    names = {column.name.casefold() for column in columns}
    for name in logged:
        if name.casefold() not in names and mask_of(name) is None:
            return f"column {name} may have been computed from a masked one: the leader's table has it no more"
    uses = list(_uses(cursor, database, table))
    for column in columns:
        mask = mask_of(column.name)
        if mask is not None and (why := _why(column, mask) or _used(column.name, uses, columns, mask_of)):
            return f"column {column.name} can't be masked: {why}"
    return ""


def _why(column: _Column, mask: Mask) -> str:
    if mask.mode == HASH and column.kind not in HASHED_TEXTS | HASHED_BYTES:
        return f"only text and bytes are hashed, and it is {column.kind.upper()}"
    if mask.mode == NULL and not column.nullable:
        return "it is NOT NULL"
    return ""


def _used(name: str, uses: Iterable[tuple[str, str]], columns: Iterable[_Column], mask_of: MaskOf) -> str:
    names = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.I)
    for what, expression in uses:
        if names.search(expression):
            return f"it is in {what}"
    for other in columns:
        if other.name != name and names.search(other.expression) and mask_of(other.name) is None:
            return f"column {other.name} is computed from it"
    return ""


def _columns(cursor: Any, database: str, table: str) -> Iterator[_Column]:
    cursor.execute(
        "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, GENERATION_EXPRESSION "
        "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (database, table),
    )
    for name, kind, nullable, default, extra, generated in cursor.fetchall():
        computed = default if "DEFAULT_GENERATED" in extra else generated
        yield _Column(name, kind.lower(), nullable == "YES", computed or "")


_USES = {
    "the unique key": "SELECT CONCAT(INDEX_NAME, ' (', COALESCE(COLUMN_NAME, EXPRESSION), ')') "
    "FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0",
    "the partitioning": "SELECT CONCAT_WS(', ', PARTITION_EXPRESSION, SUBPARTITION_EXPRESSION) "
    "FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND PARTITION_NAME IS NOT NULL",
    "a foreign key": "SELECT COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND REFERENCED_TABLE_NAME IS NOT NULL",
    "a foreign key of another table": "SELECT REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE "
    "WHERE REFERENCED_TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME = %s",
    "a CHECK": "SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS JOIN "
    "information_schema.TABLE_CONSTRAINTS USING (CONSTRAINT_SCHEMA, CONSTRAINT_NAME) "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
}


def _uses(cursor: Any, database: str, table: str) -> Iterator[tuple[str, str]]:
    """Yields each use that a table makes of its columns and that masked values could violate, such as a unique key: its
    description, and its columns or its expression.
    """
    for what, statement in _USES.items():
        cursor.execute(statement, (database, table))
        for text in {row[0] for row in cursor.fetchall()}:
            yield what, text or ""
