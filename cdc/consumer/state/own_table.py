"""Describes a table in the consumer's own database. Such a table may contain rows for several leaders; each row
contains the leader's mysql_resource_name. Pure.
"""

from dataclasses import dataclass

from cdc.consumer.literals.values import quoted

__all__ = ["OwnTable"]

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
        """Writes the statement that creates the table if it is missing."""
        key = ", ".join(("resource", *self.key))
        body = f"\n  {_RESOURCE},\n  {self.columns.strip()},\n  PRIMARY KEY ({key})\n"
        return f"CREATE TABLE IF NOT EXISTS {self.within(schema)} ({body}) ENGINE=InnoDB"

    def exists(self, schema: str) -> str:
        """Writes the query that returns one row if the table exists, and no row otherwise."""
        where = f"TABLE_SCHEMA={quoted(schema)} AND TABLE_NAME={quoted(self.name)}"
        return f"SELECT 1 FROM information_schema.TABLES WHERE {where}"

    def insert(self, schema: str, resource: str, *, now: str, **values: str | int) -> str:
        """Writes the statement that inserts a row; the column ``now`` receives the time at which the statement is
        executed."""
        columns = ", ".join(("resource", *values, now))
        texts = (str(value) if isinstance(value, int) else quoted(value) for value in (resource, *values.values()))
        return f"INSERT INTO {self.within(schema)} ({columns}) VALUES ({', '.join(texts)}, NOW(6))"

    def select(self, schema: str, resource: str, columns: str, *, where: str = "") -> str:
        """Writes the query for ``columns`` of the leader's rows that fulfil ``where``; ``resource`` is the leader's
        name.
        """
        rest = f" AND ({where})" if where else ""
        return f"SELECT {columns} FROM {self.within(schema)} WHERE resource={quoted(resource)}{rest}"

    def delete(self, schema: str, resource: str, *, where: str = "") -> str:
        """Writes the statement that deletes the leader's rows that fulfil ``where``; ``resource`` is the
        leader's name.
        """
        rest = f" AND ({where})" if where else ""
        return f"DELETE FROM {self.within(schema)} WHERE resource={quoted(resource)}{rest}"
