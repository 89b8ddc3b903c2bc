"""How large tables are, as the leader estimates it."""

from collections.abc import Iterable
from typing import Any, NamedTuple

__all__ = ["Estimate", "estimates"]

Table = tuple[str, str]  # database and name
_AT_ONCE = 500  # tables in one question


class Estimate(NamedTuple):
    """What InnoDB estimates from some pages of a table: its ``rows``, and the ``size`` in bytes that these take."""

    rows: int
    size: int


def estimates(cursor: Any, tables: Iterable[Table]) -> dict[Table, Estimate]:
    """The estimates for those of ``tables`` that there are. Raises pymysql's errors."""
    # As they are now. Otherwise the server would also write them to its dictionary, to answer from there for a day.
    cursor.execute("SET SESSION information_schema_stats_expiry = 0")
    wanted, found = list(tables), {}
    for first in range(0, len(wanted), _AT_ONCE):
        some = wanted[first : first + _AT_ONCE]
        pairs = ", ".join(["(%s, %s)"] * len(some))
        cursor.execute(
            "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_ROWS, DATA_LENGTH FROM information_schema.TABLES "
            f"WHERE (TABLE_SCHEMA, TABLE_NAME) IN ({pairs})",
            [name for table in some for name in table],
        )
        for database, table, rows, size in cursor.fetchall():
            found[database, table] = Estimate(rows or 0, size or 0)
    return found
