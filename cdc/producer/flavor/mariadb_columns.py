"""Finds columns with types that only MariaDB has: in a table map, UUID, INET4 and INET6 look like BINARY.

The leader is queried at the first rows of a table with a BINARY column of 4 or 16 bytes. It returns the present types
of the columns. A column passes only if it still is a BINARY column of this length: if it was altered or dropped, its
type at the time of the rows is unknown, and a follower must not get MariaDB's internal form of a value.
"""

from collections.abc import Callable
from typing import Any

from cdc.errors import PromiseError
from cdc.producer.binlog.leader import connected_cursor
from cdc.producer.decode.table_cache import RequireColumns
from cdc.producer.decode.table_map import CHARACTERS, STRING, Table

__all__ = ["MARIADB_CHARACTERS", "asking", "present_types"]

# MariaDB counts a GEOMETRY (255) among the columns with a collation.
MARIADB_CHARACTERS = CHARACTERS | {255}
_OWN = ("uuid", "inet4", "inet6")
_SIZES = frozenset({4, 16})  # number of bytes of an INET4, or of an INET6 or UUID

PresentTypes = Callable[[str, str], dict[str, tuple[str, int | None]]]


def asking(present: PresentTypes) -> RequireColumns:
    """Returns a function that raises PromiseError for a table with columns that are, or may have been, of MariaDB's own
    types; ``present`` queries the leader for the types of a table's columns."""

    def require_columns(table: Table) -> None:
        doubtful = [each for each in table.columns if each.type == STRING and each.charset == "binary"]
        doubtful = [each for each in doubtful if each.meta in _SIZES]
        if not doubtful:
            return
        types = present(table.database, table.name)
        for column in doubtful:
            kind, size = types.get(column.name, ("", None))
            if (kind, size) == ("binary", column.meta):
                continue
            was = f"{kind.upper()} of MariaDB" if kind in _OWN else "BINARY, or UUID or INET of MariaDB before an ALTER"
            raise PromiseError(
                f"column {column.name} has a type that is not replicated yet: {was}",
                code="CDC-EVENT-TYPE",
                where=f"table {table.database}.{table.name}",
                hint="leave the table out with filters.exclude_tables, and copy it by hand once the stream is past "
                "the rows that were logged with that type",
            )

    return require_columns


def present_types(
    settings: dict[str, Any], database: str, table: str, *, name: str
) -> dict[str, tuple[str, int | None]]:
    """Queries the leader ``name`` for the types and the lengths in bytes of the table's columns."""
    with connected_cursor(settings, name) as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_OCTET_LENGTH FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (database, table),
        )
        return {row[0]: (row[1], row[2]) for row in cursor.fetchall()}
