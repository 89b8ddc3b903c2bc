"""Describes the tables in the consumer's own database; each may contain rows for several leaders (mysql_resource_name).
Also defines the table of the leader's column types, and the table of the leader's spelling of names. Pure.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cdc.consumer.literals.values import quoted
from cdc.model.names import Uri

__all__ = [
    "NAMES",
    "TYPES",
    "Name",
    "OwnTable",
    "forget_names",
    "forget_types",
    "known_names",
    "known_types",
    "parsed_types",
    "remember_name",
    "remember_types",
]

_RESOURCE = (
    "resource VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL COMMENT "
    "'mysql_resource_name of the leader'"
)


@dataclass(frozen=True, slots=True)
class OwnTable:
    """The table ``name``, with the column ``resource`` and the other ``columns`` (in the form of CREATE TABLE). The
    primary key consists of ``resource`` and the columns ``key``.

    The methods return statements for the table in the database ``schema``.
    """

    name: str
    columns: str
    key: tuple[str, ...] = ()

    def within(self, schema: str) -> str:
        """Returns the qualified name of the table."""
        return f"`{schema}`.`{self.name}`"

    def create(self, schema: str) -> str:
        """Returns the statement that creates the table if it is missing."""
        key = ", ".join(("resource", *self.key))
        body = f"\n  {_RESOURCE},\n  {self.columns.strip()},\n  PRIMARY KEY ({key})\n"
        return f"CREATE TABLE IF NOT EXISTS {self.within(schema)} ({body}) ENGINE=InnoDB"

    def exists(self, schema: str) -> str:
        """Returns a query whose result is one row if the table exists, and no row if it does not."""
        where = f"TABLE_SCHEMA={quoted(schema)} AND TABLE_NAME={quoted(self.name)}"
        return f"SELECT 1 FROM information_schema.TABLES WHERE {where}"

    def insert(self, schema: str, resource: str, *, now: str, **values: str | int) -> str:
        """Returns the statement that inserts a row; the column ``now`` receives the time at which the statement is
        executed."""
        columns = ", ".join(("resource", *values, now))
        texts = (str(value) if isinstance(value, int) else quoted(value) for value in (resource, *values.values()))
        return f"INSERT INTO {self.within(schema)} ({columns}) VALUES ({', '.join(texts)}, NOW(6))"

    def select(self, schema: str, resource: str, columns: str, *, where: str = "") -> str:
        """Returns the query for ``columns`` of the leader's rows that fulfil ``where``; ``resource`` is the leader's
        name.
        """
        rest = f" AND ({where})" if where else ""
        return f"SELECT {columns} FROM {self.within(schema)} WHERE resource={quoted(resource)}{rest}"

    def delete(self, schema: str, resource: str, *, where: str = "") -> str:
        """Returns the statement that deletes the leader's rows that fulfil ``where``; ``resource`` is the leader's
        name.
        """
        rest = f" AND ({where})" if where else ""
        return f"DELETE FROM {self.within(schema)} WHERE resource={quoted(resource)}{rest}"


# Defines the table with the types of the leader's columns. Records contain them only once for each version of a table,
# so a consumer that starts later reads them from this table.
#
# A row is written in the transaction of the record that contains the types, and deleted in the transaction of a
# statement that may change them: the first record after a statement on a table contains its types again.

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


def known_types(schema: str, table: Uri) -> str:
    """Returns the query for the types of a table's columns; it returns no row if they are unknown."""
    return TYPES.select(schema, table.resource, "columns_json", where=_where(table))


def parsed_types(text: str) -> dict[str, str]:
    """Parses the column ``columns_json`` of a row: maps the names of columns to their types."""
    return {str(name): str(kind) for name, kind in json.loads(text).items()}


def forget_types(schema: str, changed: Uri) -> str:
    """Returns the statement that deletes the types of a table, or of all tables of a database."""
    return TYPES.delete(schema, changed.resource, where=_where(changed))


def remember_types(schema: str, table: Uri, types: Mapping[str, str]) -> str:
    """Returns the statement that stores the types of a table's columns."""
    text = json.dumps(types, ensure_ascii=False)
    values = {"database_name": table.database, "table_name": table.table or "", "columns_json": text}
    insert = TYPES.insert(schema, table.resource, now="at", **values)
    return f"REPLACE{insert.removeprefix('INSERT')}"


def _where(uri: Uri) -> str:
    database = f"database_name={quoted(uri.database)}"
    return database if uri.table is None else f"{database} AND table_name={quoted(uri.table)}"


# Defines the table with the leader's spelling of names. A follower with ``lower_case_table_names = 1`` needs it,
# because it stores names in lower case.
#
# A row of this table is inserted in the transaction of the record that first contains the name, and deleted in the
# transaction of the record that removes the name. So the rows always correspond to the checkpoint.

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


def known_names(schema: str, resource: str) -> str:
    """Returns the query for all names: database, table, and the leader's spelling."""
    return NAMES.select(schema, resource, "database_name, table_name, spelled")


def remember_name(schema: str, resource: str, name: Name, spelled: str) -> str:
    """Returns the statement that stores the leader's spelling of a name."""
    insert = NAMES.insert(schema, resource, database_name=name[0], table_name=name[1], spelled=spelled, now="at")
    return f"REPLACE{insert.removeprefix('INSERT')}"


def forget_names(schema: str, resource: str, names: Iterable[Name]) -> str:
    """Returns the statement that deletes the rows of ``names``, because these names no longer exist on the leader."""
    pairs = ", ".join(f"({quoted(database)}, {quoted(table)})" for database, table in names)
    return NAMES.delete(schema, resource, where=f"(database_name, table_name) IN ({pairs})")
