"""Reads what Debezium's messages contain of a leader's tables and no binlog does: the default values of columns, and
the definition of a table after a statement.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pymysql

from cdc.model.position import Position
from cdc.producer.binlog.leader import connected_cursor
from cdc.producer.debezium.defaults import ColumnDefault
from cdc.producer.debezium.schema_changes import ShownColumn, ShownTable
from cdc.producer.decode.changes import Table

__all__ = ["LeaderColumns"]

_COLUMNS = (
    "SELECT COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, IS_NULLABLE, COLUMN_DEFAULT, EXTRA, COLUMN_KEY "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION"
)
_KEYS = (
    "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', 1, SEQ_IN_INDEX"
)
_TABLE = (
    "SELECT CHARACTER_SET_NAME, ENGINE FROM information_schema.TABLES JOIN "
    "information_schema.COLLATION_CHARACTER_SET_APPLICABILITY ON COLLATION_NAME = TABLE_COLLATION "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_NOW = re.compile(r"(?:current_timestamp|now)(?:\(\d*\))?", re.IGNORECASE)
_QUOTED = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?|b'[01]*'", re.IGNORECASE)
_QUOTES = str.maketrans("", "", "`\"'")
_MOST_EVENTS = 5000  # as many are looked through for a later statement


@dataclass(frozen=True, slots=True)
class LeaderColumns:
    """Queries the leader ``name`` for the columns of tables, as they are now. ``settings`` are pymysql's arguments; the
    defaults of columns that ``is_masked`` are left out, and so are columns that are ``is_gone``. Both methods raise
    Disconnected.
    """

    settings: Mapping[str, Any]
    name: str
    is_mariadb: bool
    is_masked: Callable[[Table, str], bool]
    is_gone: Callable[[Table, str], bool] = lambda *_: False

    def defaults(self, table: Table) -> dict[str, ColumnDefault]:
        """Returns the constant defaults of the columns of ``table``."""
        with connected_cursor(dict(self.settings), self.name) as cursor:
            columns, _ = self._columns(cursor, table)
        return {
            column.name: ColumnDefault(column.type, column.default or "", column.is_now) for column in columns
            if column.is_now or column.default is not None
        }  # fmt: skip

    def definition(self, table: Table, position: Position, *, is_statement: bool) -> ShownTable | None:
        """Returns the definition of ``table`` as of the ``position`` in the binlog, after the statement there if
        ``is_statement`` is true. Returns None if the leader has no such table, does not show it exactly, or may have
        changed it since.
        """
        with connected_cursor(dict(self.settings), self.name) as cursor:
            columns, in_key = self._columns(cursor, table)
            cursor.execute(_KEYS, table)
            key = _key(cursor.fetchall(), in_key)
            cursor.execute(_TABLE, table)
            charset, engine = cursor.fetchone() or (None, None)
            # A statement is in the binlog before others see what it did, so the binlog is looked at last. MySQL
            # promises that for InnoDB alone, whose tables change with the commit of the statement.
            is_late = engine != "InnoDB" and not self.is_mariadb
            if not columns or charset is None or is_late or not all(map(_is_exact, columns)):
                return None
            if not _is_newest(cursor, table[1], position, is_statement=is_statement):
                return None
        return ShownTable(charset, key, columns)

    def _columns(self, cursor: Any, table: Table) -> tuple[tuple[ShownColumn, ...], frozenset[str]]:
        """Reads the columns of ``table``, and the names of those in the key by which rows are found."""
        # The server shows the defaults of TIMESTAMP columns in the session's time zone.
        cursor.execute("SET SESSION time_zone = '+00:00'")
        cursor.execute(_COLUMNS, table)
        rows = [row for row in cursor.fetchall() if not self.is_gone(table, row[0])]
        found = []
        for name, type_, charset, nullable, shown, extra, _ in rows:
            text, is_now = (None, False) if self.is_masked(table, name) else self._default(shown, extra)
            numbered = "auto_increment" in extra
            found.append(ShownColumn(name, type_, charset, nullable == "YES", numbered, _text(type_, text), is_now))
        return tuple(found), frozenset(row[0] for row in rows if row[-1] == "PRI")

    def _default(self, text: str | None, extra: str) -> tuple[str | None, bool]:
        """Returns the text of a default, None for an expression, and whether it is CURRENT_TIMESTAMP."""
        if text is None:
            return None, False
        if _NOW.fullmatch(text) and (self.is_mariadb or "DEFAULT_GENERATED" in extra):
            return None, True
        if not self.is_mariadb:
            return (None if "DEFAULT_GENERATED" in extra else text), False
        # MariaDB shows an expression, also of a constant.
        if (quoted := _QUOTED.fullmatch(text)) is not None:
            return quoted[1].replace("''", "'"), False
        return (text if _NUMBER.fullmatch(text) else None), False


def _text(type_: str, text: str | None) -> str | None:
    """Returns a default as a text; None if bytes are no text."""
    if text is None or not text.startswith("0x") or not type_.startswith(("binary", "varbinary")):
        return text
    with suppress(UnicodeDecodeError):
        return bytes.fromhex(text[2:]).decode("ascii")
    return None


def _is_exact(column: ShownColumn) -> bool:
    """Whether the column may be taken as shown: the server shows a question mark for a letter that utf8mb3 lacks."""
    return "?" not in column.type and "?" not in (column.default or "")


def _key(rows: Iterable[tuple[str, str | None]], in_key: frozenset[str]) -> tuple[str, ...]:
    """Chooses, of the unique keys in ``rows``, the one with the columns ``in_key``."""
    keys: dict[str, list[str | None]] = {}
    for index, column in rows:
        keys.setdefault(index, []).append(column)
    found = next((columns for columns in keys.values() if in_key and set(columns) <= in_key), [])
    return tuple(column for column in found if column is not None)


def _is_newest(cursor: Any, table: str, position: Position, *, is_statement: bool) -> bool:
    """Whether the binlog has no statement behind ``position`` that may have changed ``table``; false if that is not
    certain.
    """
    name = table.translate(_QUOTES)
    # A name that is not ASCII may look otherwise in the character set of another session.
    named = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])" if name.isascii() else "", re.IGNORECASE)
    try:
        cursor.execute(f"SHOW BINLOG EVENTS IN %s FROM {position.offset} LIMIT {_MOST_EVENTS}", (position.file,))
        events = cursor.fetchall()
        cursor.execute("SHOW BINARY LOGS")
        newest = cursor.fetchall()[-1][0]
    except pymysql.MySQLError:
        return False  # the binlog is gone, or its events can't be shown
    if len(events) == _MOST_EVENTS or newest != position.file:
        return False
    for _, at, kind, _, _, text in events:
        if kind != "Query" or (is_statement and at <= position.offset):
            continue
        if text not in ("BEGIN", "COMMIT") and named.search(text.translate(_QUOTES)):
            return False
    return True
