"""The table of the names that a follower with ``lower_case_table_names = 1`` has in lower case, as the leader spells
them. Pure.

Its rows commit with the records that first have such a name, or take it away: they are those of the checkpoint.
"""

from collections.abc import Iterable

from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable

__all__ = ["NAMES", "Name", "forget", "known", "remember"]

Name = tuple[str, str]
"""Database and table as the follower has them; without a table the database itself."""

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
    """The query for database, table and the leader's spelling of all names."""
    return NAMES.select(schema, resource, "database_name, table_name, spelled")


def remember(schema: str, resource: str, name: Name, spelled: str) -> str:
    """The statement that notes how the leader spells a name."""
    insert = NAMES.insert(schema, resource, database_name=name[0], table_name=name[1], spelled=spelled, now="at")
    return f"REPLACE{insert.removeprefix('INSERT')}"


def forget(schema: str, resource: str, names: Iterable[Name]) -> str:
    """The statement that removes the notes of ``names``, which the leader does not have any more."""
    pairs = ", ".join(f"({quoted(database)}, {quoted(table)})" for database, table in names)
    return NAMES.delete(schema, resource, where=f"(database_name, table_name) IN ({pairs})")
