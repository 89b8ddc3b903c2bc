"""Finds columns with types that only MariaDB has: in a table map, UUID, INET4 and INET6 look like BINARY.

The leader is queried at the first rows of a table with a BINARY column of 4 or 16 bytes. It answers with the column's
present type: if the column was altered meanwhile, the statement that altered it stops the follower.
"""

from collections.abc import Callable
from typing import Any

from cdc.errors import PromiseError
from cdc.producer.binlog.leader import connected_cursor
from cdc.producer.decode.table_cache import RequireColumns
from cdc.producer.decode.table_map import CHARACTERS, STRING, Table

__all__ = ["MARIADB_CHARACTERS", "asking", "own_columns"]

# MariaDB counts a GEOMETRY (255) among the columns with a collation.
MARIADB_CHARACTERS = CHARACTERS | {255}
_OWN = ("uuid", "inet4", "inet6")
_SIZES = frozenset({4, 16})  # bytes of an address or a UUID

OwnColumns = Callable[[str, str], list[tuple[str, str]]]


def asking(own: OwnColumns) -> RequireColumns:
    """Returns a function that raises PromiseError for a table with columns of MariaDB's own types; ``own`` queries the
    leader for such columns."""

    def require_columns(table: Table) -> None:
        if not any(each.type == STRING and each.charset == "binary" and each.meta in _SIZES for each in table.columns):
            return
        for column, kind in own(table.database, table.name):
            raise PromiseError(
                f"column {column} has a type that is not replicated yet: {kind.upper()} of MariaDB",
                code="CDC-EVENT-TYPE",
                where=f"table {table.database}.{table.name}",
                hint="leave the table out with filters.exclude_tables",
            )

    return require_columns


def own_columns(settings: dict[str, Any], database: str, table: str, *, name: str) -> list[tuple[str, str]]:
    """Queries the leader ``name`` for the table's columns of MariaDB's own types; returns their names and types."""
    with connected_cursor(settings, name) as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND DATA_TYPE IN %s ORDER BY ORDINAL_POSITION",
            (database, table, _OWN),
        )
        return [(row[0], row[1]) for row in cursor.fetchall()]
