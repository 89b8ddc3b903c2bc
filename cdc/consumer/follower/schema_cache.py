"""Reads the columns, keys and relations of the follower's tables from its information schema, once for each table."""

import re
from collections.abc import Iterable
from typing import Any

from cdc.consumer.follower.session import Session
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.literals.values import quoted, table_name
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.errors import PromiseError
from cdc.model.record import Uri

__all__ = ["SchemaCache"]

# Expressions whose value depends on settings of the leader's session that are not in its binlog: the digits of a
# division, how a literal is parsed (NO_BACKSLASH_ESCAPES, default_collation_for_utf8mb4; stored expressions are parsed
# again) and block_encryption_mode.
_DOUBTFUL = re.compile("/|'|aes_", re.IGNORECASE)


class SchemaCache:
    """What it has read holds until ``forget``: a DDL statement may change it. ``triggers`` checks each table, too."""

    def __init__(self, session: Session, triggers: Triggers) -> None:
        self._session = session
        self._triggers = triggers
        self._shapes: dict[Uri, TableSchema] = {}

    def forget(self) -> None:
        """Read all tables again when they are needed."""
        self._shapes.clear()
        self._triggers.forget()

    def know(self, tables: Iterable[Uri]) -> bool:
        """Whether ``shape`` returns all of these without a query."""
        return all(table in self._shapes for table in tables)

    def shape(self, table: Uri) -> TableSchema:
        """The table's definition; a table that does not exist has no columns.

        Raises PromiseError for a table without transactions or with triggers, Interrupted or Refused.
        """
        known = self._shapes.get(table)
        if known is None:
            self._check_engine(table)
            self._triggers.check(table)
            known = self._shapes[table] = self._read(table)
        return known

    def _read(self, table: Uri) -> TableSchema:
        columns = self._ask("SELECT COLUMN_NAME, GENERATION_EXPRESSION, EXTRA FROM information_schema.COLUMNS", table)
        expressions = {str(name): str(expression) for name, expression, _ in columns if expression}
        stored = frozenset(str(name) for name, _, extra in columns if "STORED GENERATED" in extra)
        unique, indexed, functional = self._keys(table)
        return TableSchema(
            frozenset(str(name) for name, _, _ in columns) - expressions.keys(),
            frozenset(expressions),
            unique,
            self._related(table),
            stored,
            frozenset(name for name in stored if _DOUBTFUL.search(expressions[name])),
            functional,
            next((str(name) for name, _, extra in columns if "auto_increment" in extra), None),
            indexed,
        )

    def generated(self, table: Uri) -> frozenset[str]:
        """The generated columns. Raises as ``shape``."""
        return self.shape(table).generated

    def _check_engine(self, table: Uri) -> None:
        """Raises PromiseError for a table whose rows cannot commit together with the checkpoint, and for a view.

        No leader logs rows of a view, and rows written to one could end up in any table, even in a system table.
        """
        what = (
            "SELECT TABLE_TYPE, ENGINE, TRANSACTIONS "
            "FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES USING (ENGINE)"
        )
        for kind, engine, transactions in self._ask(what, table):
            if kind == "VIEW":
                raise PromiseError(
                    "the leader's table is a view on the follower: its rows would go to other tables",
                    where=str(table),
                    hint="rename the view and make the table, or leave it out with the filters",
                )
            if engine is not None and transactions != "YES":
                raise PromiseError(
                    f"the follower's table is kept by {engine}, which has no transactions: rows could be applied twice",
                    where=str(table),
                    hint='for tables to come set consumer.engine = "InnoDB"; this one on the follower: '
                    f"ALTER TABLE {table_name(table)} ENGINE = InnoDB",
                )

    def _keys(self, table: Uri) -> tuple[dict[str, tuple[KeyPart, ...]], frozenset[str], bool]:
        """The unique keys, the columns with which a key begins, and whether an expression is in any key."""
        keys: dict[str, tuple[KeyPart, ...]] = {}
        first: dict[str, str | None] = {}
        functional = False
        what = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE, NON_UNIQUE FROM information_schema.STATISTICS"
        for name, column, length, nullable, many in self._ask(what, table, "ORDER BY INDEX_NAME, SEQ_IN_INDEX"):
            functional = functional or column is None
            first.setdefault(name, column)
            if not many:
                keys[name] = (*keys.get(name, ()), KeyPart(column, length, nullable == "YES"))
        return keys, frozenset(column for column in first.values() if column is not None), functional

    def _related(self, table: Uri) -> bool:
        """Whether a foreign key leads from the table, or to it."""
        database, name = quoted(table.database), quoted(table.table or "")
        of = f"CONSTRAINT_SCHEMA = {database} AND TABLE_NAME = {name}"
        to = f"UNIQUE_CONSTRAINT_SCHEMA = {database} AND REFERENCED_TABLE_NAME = {name}"
        what = "SELECT 1 FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE"
        return any(self._session.rows(f"{what} {end} LIMIT 1") for end in (of, to))

    def _ask(self, what: str, table: Uri, more: str = "") -> list[tuple[Any, ...]]:
        where = f"TABLE_SCHEMA = {quoted(table.database)} AND TABLE_NAME = {quoted(table.table or '')}"
        return self._session.rows(f"{what} WHERE {where} {more}")
