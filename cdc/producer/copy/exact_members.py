"""Asks the leader for the members of an ENUM or SET where it shows question marks, which stand for what utf8mb3 lacks.

No query shows them, but a value of the column does. Where no row has it, the column of a recursive query gets it: it
has the type of the table's column, which its first row leaves NULL, and takes numbers of members. Servers before
MySQL 9 make it another type.
"""

from typing import Any

import pymysql

__all__ = ["LOSSY", "exact_members"]

# The character sets with characters that utf8mb3 lacks, or with bytes that are no characters.
LOSSY = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030", "ascii"})
_BMP = "\uffff"


def exact_members(
    cursor: Any, table: str, column: str, *, kind: str, charset: str, shown: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The members of a column, None where the leader does not give those ``shown``; both names are SQL."""
    number = "n + 1" if kind == "enum" else "1 << n"
    # A conversion, too, has question marks for bytes that are no ASCII.
    value = "e" if charset in ("ascii", "utf8mb4") else "CONVERT(e USING utf8mb4)"
    cursor.execute(f"SET SESSION cte_max_recursion_depth = {len(shown) + 10}")
    try:
        cursor.execute(
            f"WITH RECURSIVE m (n, e) AS (SELECT 0, t.{column} FROM (SELECT 1) AS d LEFT JOIN {table} AS t "
            f"ON FALSE UNION ALL SELECT n + 1, {number} FROM m WHERE n < {len(shown)}) "
            f"SELECT HEX({value}) FROM m WHERE n > 0 ORDER BY n"
        )
        found = tuple(
            bytes.fromhex(row[0]).decode("ascii" if charset == "ascii" else "utf-8") for row in cursor.fetchall()
        )
    except (pymysql.DataError, TypeError, ValueError):
        return None
    as_shown = tuple("".join("?" if letter > _BMP else letter for letter in each) for each in found)
    return found if as_shown == shown else None
