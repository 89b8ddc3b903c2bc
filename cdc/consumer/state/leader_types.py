"""Defines the table with the types of the leader's columns. Records contain them only once for each version of a table,
so a consumer that starts later finds them here. Pure.

A row is written in the transaction of the record that contains the types, and deleted in the transaction of a statement
that may change them: the first record after a statement on a table contains its types again.
"""

import json
from collections.abc import Mapping

from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable
from cdc.model.names import Uri

__all__ = ["TYPES", "forget", "known", "parsed", "remember"]

TYPES = OwnTable(
    "types",
    """
  database_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'here',
  table_name VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT 'here',
  columns_json LONGTEXT CHARACTER SET utf8mb4 NOT NULL COMMENT 'types of the columns on the leader',
  at DATETIME(6) NOT NULL COMMENT 'UTC'
    """,
    key=("database_name", "table_name"),
)


def known(schema: str, table: Uri) -> str:
    """Writes the query for the types of a table's columns; it returns no row if they are unknown."""
    return TYPES.select(schema, table.resource, "columns_json", where=_where(table))


def parsed(text: str) -> dict[str, str]:
    """Parses the result of the query."""
    return {str(name): str(kind) for name, kind in json.loads(text).items()}


def forget(schema: str, changed: Uri) -> str:
    """Writes the statement that deletes the types of a table, or of all tables of a database."""
    return TYPES.delete(schema, changed.resource, where=_where(changed))


def remember(schema: str, table: Uri, types: Mapping[str, str]) -> str:
    """Writes the statement that stores the types of a table's columns."""
    text = json.dumps(types, ensure_ascii=False)
    values = {"database_name": table.database, "table_name": table.table or "", "columns_json": text}
    insert = TYPES.insert(schema, table.resource, now="at", **values)
    return f"REPLACE{insert.removeprefix('INSERT')}"


def _where(uri: Uri) -> str:
    database = f"database_name={quoted(uri.database)}"
    return database if uri.table is None else f"{database} AND table_name={quoted(uri.table)}"
