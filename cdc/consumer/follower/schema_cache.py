"""Reads the columns, keys and foreign keys of the follower's tables from information_schema, once for each table."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cdc.consumer.follower.session import Session
from cdc.consumer.follower.triggers import Triggers
from cdc.consumer.literals.values import Rounded, identifier, quoted, table_name
from cdc.consumer.plan.inserts import loadable_tags
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.errors import PromiseError
from cdc.model.record import Record, Uri
from cdc.sql.column_types import character_type, members_type, shown_members

__all__ = ["Column", "SchemaCache", "changed_tables", "unpredictable"]

# Matches expressions whose value may differ from the leader's. Some depend on settings of the leader's session that its
# binlog does not contain: the digits of a division, the parsing of a literal (NO_BACKSLASH_ESCAPES,
# default_collation_for_utf8mb4; stored expressions are parsed again), and block_encryption_mode. Others depend on the
# sql_mode: the subtraction of unsigned numbers, and the truncation of seconds. The session may have changed its
# sql_mode after BEGIN, but the binlog contains the sql_mode only at BEGIN. Text that becomes a JSON document depends on
# the server's JSON parser. The names of days and months depend on lc_time_names. The number of a week depends on the
# value that default_week_format had when the column was defined.
_DOUBTFUL = re.compile("/|'|aes_|-|time|date|unix|json|member of|week|dayname|monthname", re.IGNORECASE)
_SECONDS = ("TIME", "DATETIME", "TIMESTAMP")
# the value that an expression reads from a column of these types depends on the session
_READ_OTHERWISE = ("CHAR", "TIMESTAMP")
_PAUSE = 1000  # after a failed batch, this number of the table's next batches use no LOAD DATA


# Seconds. When the cache is older, the next DDL statement empties it, since another client may have altered the tables.
_TRUSTED_SECONDS = 10.0
_OLDEST_SECONDS = 300.0  # the cache is emptied when it is older, even if the leader executes no DDL statement
_MOST_COLUMNS = 300_000  # the most columns in the cache, for all tables; each column needs some 200 bytes


_PASSIVE = ("NO ACTION", "RESTRICT")  # a foreign key with these rules refuses changes, but changes no rows itself

_COLUMNS = (
    "SELECT COLUMN_NAME, GENERATION_EXPRESSION, EXTRA, DATA_TYPE, IS_NULLABLE, COLUMN_TYPE, NUMERIC_PRECISION, "
    "NUMERIC_SCALE, COLLATION_NAME, CHARACTER_SET_NAME FROM information_schema.COLUMNS"
)


class Column(NamedTuple):
    """A row of information_schema.COLUMNS."""

    name: str
    expression: str
    extra: str
    data_type: str
    nullable: str
    type: str
    digits: int | None
    decimals: int | None
    collation: str | None
    charset: str | None

    def definition(self) -> str:
        """Returns the column's type, written as in records."""
        if self.data_type.lower() in ("enum", "set"):
            return members_type(self.data_type.lower(), shown_members(self.type), self.charset or "binary")
        return character_type(self.type, self.charset) if self.charset else self.type

    def has_fractions(self) -> bool:
        """Whether the column stores fractions of seconds."""
        return self.data_type.upper() in _SECONDS and "(" in self.type

    def rounded(self) -> Rounded | None:
        """Returns the type and digits of a column FLOAT(M,D) or DOUBLE(M,D) that is not generated; None for any other
        column."""
        kind, _, more = self.type.upper().partition("(")
        if kind not in ("FLOAT", "DOUBLE") or self.digits is None or self.decimals is None or self.expression:
            return None
        return Rounded(f"{kind} UNSIGNED" if "UNSIGNED" in more else kind, self.digits, self.decimals)


# Visible indexes come first, because a query can force only a visible index.
_VISIBLE_FIRST = "ORDER BY INDEX_NAME <> 'PRIMARY', IS_VISIBLE = 'NO', INDEX_NAME, SEQ_IN_INDEX"


class SchemaCache:
    """Caches table definitions, at most for some minutes. Call ``forget`` when a DDL statement may have changed them.

    ``triggers`` checks each table that is read. ``passes(uri)`` decides which tables are replicated.
    """

    def __init__(self, session: Session, triggers: Triggers, *, passes: Callable[[Uri], bool]) -> None:
        self._session = session
        self._triggers = triggers
        self.passes = passes
        self._shapes: dict[Uri, TableSchema] = {}
        # the number of columns that were read since the last ``forget``, even of tables that ``forget_changed`` has
        # dropped
        self._columns = 0
        self._forgot_at = time.monotonic()
        self._pauses: dict[Uri, int] = {}

    def forget(self) -> None:
        """Drops all tables from the cache, so that they are read again when they are needed."""
        self._shapes.clear()
        self._columns = 0
        self._triggers.forget()
        self._forgot_at = time.monotonic()

    def forget_changed(self, statements: Sequence[Record]) -> None:
        """Drops from the cache the tables that ``statements`` may have changed, and from time to time all tables."""
        names = changed_tables(statements)
        if names is None or time.monotonic() - self._forgot_at > _TRUSTED_SECONDS:
            self.forget()
            return
        for table in [table for table in self._shapes if (table.table or "").lower() in names]:
            del self._shapes[table]

    def know(self, tables: Iterable[Uri]) -> bool:
        """Whether the cache contains all these tables, so that ``shape`` needs no query. An old cache is emptied first,
        since another client may have altered the tables.
        """
        if time.monotonic() - self._forgot_at > _OLDEST_SECONDS:
            self.forget()
        return all(table in self._shapes for table in tables)

    def shape(self, table: Uri) -> TableSchema:
        """Returns the definition of a table; a table that does not exist has no columns.

        Raises Interrupted and Refused, and PromiseError for a table with triggers, or with an engine that has no
        transactions.
        """
        known = self._shapes.get(table)
        if known is None:
            self.check_engine(table)
            self._triggers.check(table)
            known = self._read(table)
            self._columns += len(known.columns) + len(known.generated)
            if self._columns > _MOST_COLUMNS:
                self._shapes.clear()
                self._columns = len(known.columns) + len(known.generated)
            self._shapes[table] = known
        return known

    def learn(self, tables: Iterable[Uri], *, over: Session) -> None:
        """Reads the definitions of tables over another connection, while the cache's own one is in use. Raises the
        errors of ``shape``.
        """
        own = self._session
        self._session = self._triggers.session = over
        try:
            for table in tables:
                self.shape(table)
        finally:
            self._session = self._triggers.session = own

    def loadable(self, table: Uri) -> Mapping[str, frozenset[str]]:
        """Returns the columns that LOAD DATA may fill in the next batch, each with the types (tags in records) of the
        values that it may load. Raises the errors of ``shape``.
        """
        if not self._session.local_infile:
            return {}
        if (pause := self._pauses.get(table, 0)) > 0:
            self._pauses[table] = pause - 1
            return {}
        return self.shape(table).loadable

    def pause_loading(self, tables: Iterable[Uri]) -> None:
        """Makes the next batches of these tables use INSERT. INSERT may accept values for which LOAD DATA reports a
        warning.
        """
        self._pauses |= dict.fromkeys(tables, _PAUSE)

    def _read(self, table: Uri) -> TableSchema:
        columns = self._columns_of(table)
        expressions = {each.name: each.expression for each in columns if each.expression}
        stored = frozenset(each.name for each in columns if "STORED GENERATED" in each.extra)
        unique, indexed, functional = self._keys(table)
        related, cascading = self._relations(table)
        return TableSchema(
            frozenset(each.name for each in columns) - expressions.keys(),
            frozenset(expressions),
            unique,
            related,
            stored,
            stored & unpredictable(columns, expressions),
            functional,
            next((each.name for each in columns if "auto_increment" in each.extra), None),
            indexed,
            {each.name: loadable_tags(each.data_type, nullable=each.nullable == "YES") for each in columns},
            {each.name: kind for each in columns if (kind := each.rounded())},
            {each.name: (each.data_type.lower(), each.collation) for each in columns},
            cascading,
            _definitions(columns),
        )

    def _columns_of(self, table: Uri) -> list[Column]:
        return [Column(*row) for row in self._ask(_COLUMNS, table)]

    def definitions(self, table: Uri) -> dict[str, str]:
        """Returns the types of a table's writable columns, by a query; empty for a table that does not exist."""
        return _definitions(self._columns_of(table))

    def generated(self, table: Uri) -> frozenset[str]:
        """Returns the generated columns of a table. Raises the errors of ``shape``."""
        return self.shape(table).generated

    def check_engine(self, table: Uri) -> None:
        """Raises PromiseError for a table whose rows can't commit together with the checkpoint, and for a view.

        A leader never logs rows of a view, and rows that are written to a view could end up in any table, even in a
        system table.
        """
        what = (
            "SELECT TABLE_TYPE, ENGINE, TRANSACTIONS "
            "FROM information_schema.TABLES LEFT JOIN information_schema.ENGINES USING (ENGINE)"
        )
        for kind, engine, transactions in self._ask(what, table):
            if kind == "VIEW":
                raise PromiseError(
                    "the leader's table is a view on the follower: its rows would go to other tables",
                    code="CDC-FOLLOWER-VIEW",
                    where=str(table),
                    hint="rename the view and make the table, or leave it out with the filters",
                )
            if engine is not None and transactions != "YES":
                raise PromiseError(
                    f"the follower's table has the engine {engine}, which has no transactions: rows could be applied "
                    "twice",
                    code="CDC-FOLLOWER-ENGINE",
                    where=str(table),
                    hint="run on the follower: "
                    + "; ".join(f"ALTER TABLE {table_name(each)} ENGINE = InnoDB" for each in self._like(table))
                    + '; and set consumer.engine = "InnoDB" for tables that are created later',
                )

    def _like(self, table: Uri) -> list[Uri]:
        """Returns all replicated tables with an engine that has no transactions, beginning with ``table``."""
        found = self._session.rows(
            "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES "
            "JOIN information_schema.ENGINES USING (ENGINE) WHERE TABLE_TYPE = 'BASE TABLE' AND TRANSACTIONS <> 'YES' "
            "AND TABLE_SCHEMA NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2"
        )
        uris = [Uri(table.resource, str(database), str(name)) for database, name in found]
        return list(dict.fromkeys([table, *filter(self.passes, uris)]))

    def _keys(self, table: Uri) -> tuple[dict[str, tuple[KeyPart, ...]], frozenset[str], bool]:
        """Returns the unique keys of a table, the columns that are the first column of a key, and whether any key
        contains an expression.
        """
        keys: dict[str, tuple[KeyPart, ...]] = {}
        first: dict[str, str | None] = {}
        functional = False
        what = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE, NON_UNIQUE FROM information_schema.STATISTICS"
        for name, column, length, nullable, many in self._ask(what, table, _VISIBLE_FIRST):
            functional = functional or column is None
            first.setdefault(name, column)
            if not many:
                keys[name] = (*keys.get(name, ()), KeyPart(column, length, nullable == "YES"))
        return keys, frozenset(column for column in first.values() if column is not None), functional

    def _relations(self, table: Uri) -> tuple[bool, bool]:
        """Returns two booleans: whether the table has a foreign key or a foreign key refers to it, and whether a
        foreign key that refers to it changes rows of the referring table.
        """
        database, name = quoted(table.database), quoted(table.table or "")
        of = f"CONSTRAINT_SCHEMA = {database} AND TABLE_NAME = {name}"
        to = f"UNIQUE_CONSTRAINT_SCHEMA = {database} AND REFERENCED_TABLE_NAME = {name}"
        what = "SELECT DELETE_RULE, UPDATE_RULE FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE"
        to_it = self._session.rows(f"{what} {to}")
        cascading = any(rule not in _PASSIVE for rules in to_it for rule in rules)
        return bool(to_it or self._session.rows(f"{what} {of} LIMIT 1")), cascading

    def _ask(self, what: str, table: Uri, more: str = "") -> list[tuple[Any, ...]]:
        where = f"TABLE_SCHEMA = {quoted(table.database)} AND TABLE_NAME = {quoted(table.table or '')}"
        return self._session.rows(f"{what} WHERE {where} {more}")


def _definitions(columns: Iterable[Column]) -> dict[str, str]:
    return {each.name: each.definition() for each in columns if not each.expression}


def unpredictable(columns: Collection[Column], expressions: Mapping[str, str]) -> set[str]:
    """Returns the generated columns whose values may differ from the leader's. Their ``expressions`` are doubtful, or
    contain a column with a doubtful expression.

    A column is doubtful, too, if it is computed from a CHAR, from fractions of seconds, or from a TIMESTAMP: the
    sql_mode may pad a CHAR and truncate seconds, and a TIMESTAMP is read in the session's time zone. A JSON document is
    doubtful, because it may be parsed from text.
    """
    found = {name for name, expression in expressions.items() if _DOUBTFUL.search(expression)}
    found |= {each.name for each in columns if each.name in expressions and each.data_type.upper() == "JSON"}
    given = {each.name for each in columns if each.data_type.upper() in _READ_OTHERWISE or each.has_fractions()}
    while more := {
        name
        for name in expressions.keys() - found
        if any(identifier(each) in expressions[name] for each in found | given)
    }:
        found |= more
    return found


def changed_tables(statements: Sequence[Record]) -> set[str] | None:
    """Returns the names of all tables that the statements may change, in lower case and without database; None if the
    statements may change any table.

    Besides the tables in its ``affects``, a statement can change only tables to which its foreign keys refer. The
    names have no database, since the database may have another name on the follower. The names are in lower case, since
    statements and rows may write a name in different cases.
    """
    if any("REFERENCES" in statement.query.upper() for statement in statements):
        return None
    ends = [affect[end] for statement in statements for affect in statement.affects for end in ("uri", "to")
            if end in affect]  # fmt: skip
    names = [Uri.parse(end).table for end in ends]
    if any(name is None or not name.isascii() for name in names):
        return None
    return {name.lower() for name in names if name is not None}
