"""Defines the table with the leader's spelling of names. A follower with ``lower_case_table_names = 1`` needs it,
because it stores names in lower case. Pure.

A row of this table is inserted in the transaction of the record that first contains the name, and deleted in the
transaction of the record that removes the name. So the rows always correspond to the checkpoint.
"""

from collections.abc import Iterable

from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable

__all__ = ["NAMES", "Name", "forget", "known", "remember"]

Name = tuple[str, str]
"""Database and table in the follower's spelling; the table is empty if this is the name of a database."""

NAMES = OwnTable(
    "names",
    """
  database_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'here, before [renames]',
  table_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'here; empty: of the database',
  spelled VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'on the leader',
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
    key=("database_name", "table_name"),
)


def known(schema: str, resource: str) -> str:
    """Writes the query for all names: database, table, and the leader's spelling."""
    return NAMES.select(schema, resource, "database_name, table_name, spelled")


def remember(schema: str, resource: str, name: Name, spelled: str) -> str:
    """Writes the statement that stores the leader's spelling of a name."""
    insert = NAMES.insert(schema, resource, database_name=name[0], table_name=name[1], spelled=spelled, now="at")
    return f"REPLACE{insert.removeprefix('INSERT')}"


def forget(schema: str, resource: str, names: Iterable[Name]) -> str:
    """Writes the statement that deletes the rows of ``names``, because these names no longer exist on the leader."""
    pairs = ", ".join(f"({quoted(database)}, {quoted(table)})" for database, table in names)
    return NAMES.delete(schema, resource, where=f"(database_name, table_name) IN ({pairs})")
