"""Reads the default values of a leader's columns, which no binlog contains, for the schemas in Debezium's messages."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from cdc.producer.binlog.leader import connected_cursor
from cdc.producer.debezium.defaults import ColumnDefault
from cdc.producer.decode.changes import Table

__all__ = ["DefaultsOf", "leader_defaults"]

DefaultsOf = Callable[[Table], Mapping[str, ColumnDefault]]

_COLUMNS = (
    "SELECT COLUMN_NAME, COLUMN_TYPE, COLUMN_DEFAULT, EXTRA FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_DEFAULT IS NOT NULL"
)
_NOW = re.compile(r"(?:current_timestamp|now)(?:\(\d*\))?", re.IGNORECASE)
_QUOTED = re.compile(r"'((?:[^']|'')*)'", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9.]+(?:e[+-]?[0-9]+)?|b'[01]*'", re.IGNORECASE)


def leader_defaults(
    settings: dict[str, Any], *, name: str, is_mariadb: bool, is_masked: Callable[[Table, str], bool]
) -> DefaultsOf:
    """Returns a function that queries the leader ``name`` for the constant defaults of a table's columns, as the table
    is now, without those of masked columns. It raises Disconnected.
    """

    def defaults(table: Table) -> dict[str, ColumnDefault]:
        with connected_cursor(settings, name) as cursor:
            # The server shows the defaults of TIMESTAMP columns in the session's time zone.
            cursor.execute("SET SESSION time_zone = '+00:00'")
            cursor.execute(_COLUMNS, table)
            shown = cursor.fetchall()
        found = {column: _default(type_, text, extra, is_mariadb) for column, type_, text, extra in shown}
        return {
            column: default for column, default in found.items() if default is not None and not is_masked(table, column)
        }

    return defaults


def _default(type_: str, text: str, extra: str, is_mariadb: bool) -> ColumnDefault | None:
    if _NOW.fullmatch(text) and (is_mariadb or "DEFAULT_GENERATED" in extra):
        return ColumnDefault(type_, "", is_now=True)
    if not is_mariadb:
        return None if "DEFAULT_GENERATED" in extra else ColumnDefault(type_, text)
    # MariaDB shows an expression, also of a constant.
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        return ColumnDefault(type_, quoted[1].replace("''", "'"))
    return ColumnDefault(type_, text) if _NUMBER.fullmatch(text) else None
