"""Finds foreign keys through which tables that the filters leave out change rows of tables that pass, on a leader that
does not log such changes (MySQL before 9.6, MariaDB).

A follower has neither the other table's changes, nor a log of what they did.
"""

from collections.abc import Callable
from typing import Any

from cdc.config.filters import Filters
from cdc.producer.binlog.leader import connected_cursor

__all__ = ["changed_silently"]

_QUESTION = (
    "SELECT CONSTRAINT_SCHEMA, TABLE_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME "
    "FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE DELETE_RULE NOT IN ('NO ACTION', 'RESTRICT') "
    "OR UPDATE_RULE NOT IN ('NO ACTION', 'RESTRICT') ORDER BY 1, 2, 3, 4"
)
Named = Callable[[str, str], str]


def changed_silently(settings: dict[str, Any], filters: Filters, *, name: str, named: Named) -> list[str]:
    """Returns the tables of the leader ``name`` that pass, and whose rows such a foreign key changes, each with the
    other table. ``named`` writes the name of a table.
    """
    with connected_cursor(settings, name) as cursor:
        cursor.execute(_QUESTION)
        found = list(cursor.fetchall())
    return [
        f"{named(database, table)} by {named(of, parent)}"
        for database, table, of, parent in dict.fromkeys(found)
        if filters.wants_table(database, table) and not filters.wants_table(of, parent)
    ]
