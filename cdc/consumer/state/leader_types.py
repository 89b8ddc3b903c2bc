"""Defines the table with the types of the leader's columns. Records contain them only once for each version of a table,
so a consumer that starts later finds them here. Pure.

A row is written in the transaction of the record that contains the types. No row is deleted: the first record after a
statement on a table contains its types again.
"""

import json
from collections.abc import Mapping

from cdc.consumer.literals.values import quoted
from cdc.consumer.state.own_table import OwnTable
from cdc.model.uri import Uri

__all__ = ["TYPES", "known", "parsed", "remember"]

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
    where = f"database_name={quoted(table.database)} AND table_name={quoted(table.table or '')}"
    return TYPES.select(schema, table.resource, "columns_json", where=where)


def parsed(text: str) -> dict[str, str]:
    """Parses the result of the query."""
    return {str(name): str(kind) for name, kind in json.loads(text).items()}


def remember(schema: str, table: Uri, types: Mapping[str, str]) -> str:
    """Writes the statement that stores the types of a table's columns."""
    text = json.dumps(types, ensure_ascii=False)
    values = {"database_name": table.database, "table_name": table.table or "", "columns_json": text}
    insert = TYPES.insert(schema, table.resource, now="at", **values)
    return f"REPLACE{insert.removeprefix('INSERT')}"
