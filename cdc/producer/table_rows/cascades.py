"""Which tables' foreign keys may change rows of another table without a trace in the binlog.

MySQL logs what its foreign keys change since 9.6, unless ``innodb_native_foreign_keys`` is ON. With an older leader, a
chunk may have been read before such a change, and nothing in the stream would show it.
"""

import re
from typing import Any

__all__ = ["above", "unlogged_cascades"]

Table = tuple[str, str]  # database and name
_LOGGED_SINCE = (9, 6)
_ACTIONS = "('CASCADE', 'SET NULL', 'SET DEFAULT')"


def unlogged_cascades(cursor: Any) -> dict[Table, set[Table]]:
    """For each table the tables that a foreign key of it follows; empty where the server logs all changes."""
    cursor.execute("SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'innodb_native_foreign_keys')")
    variables = dict(cursor.fetchall())
    version = tuple(map(int, re.findall(r"\d+", variables["version"])[:2]))
    if version >= _LOGGED_SINCE and variables.get("innodb_native_foreign_keys", "OFF") != "ON":
        return {}
    cursor.execute(
        "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
        "FROM information_schema.REFERENTIAL_CONSTRAINTS "
        f"WHERE UPDATE_RULE IN {_ACTIONS} OR DELETE_RULE IN {_ACTIONS}"
    )
    follows: dict[Table, set[Table]] = {}
    for database, table, above_database, above_table in cursor.fetchall():
        follows.setdefault((database, table), set()).add((above_database, above_table))
    return follows


def above(table: Table, follows: dict[Table, set[Table]]) -> frozenset[Table]:
    """All tables that ``table`` follows, by one foreign key or several."""
    found: set[Table] = set()
    waiting = [table]
    while waiting:
        new = follows.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(found)
