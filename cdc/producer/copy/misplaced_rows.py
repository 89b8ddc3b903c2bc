"""Finds rows in wrong partitions, which a SELECT by the table's key would miss.

``EXCHANGE PARTITION … WITHOUT VALIDATION`` can put rows into a wrong partition. Looking up each row costs a fraction of
copying it.
"""

from contextlib import closing
from dataclasses import replace
from typing import Any

import pymysql

from cdc.producer.copy.chunk_reader import CHANGED
from cdc.producer.copy.definition import (
    ALL_SHOWN,
    TableDefinition,
    TableKey,
    identifier,
    reading_failed,
    table_keys,
)
from cdc.producer.flavor.copy_settings import copy_settings
from cdc.service.mysql_connection import connected
from cdc.sql.key_range import misplaced_rows

__all__ = ["MisplacedRows"]

# The queries have no time limit: one statement searches a whole partition, and returns nothing until it is done.
_SESSION = "SET SESSION sql_select_limit = DEFAULT, sql_big_selects = 1, sql_mode = '', lock_wait_timeout = 60"
_UNKNOWN_PARTITION = 1735


class MisplacedRows:
    """Searches each table once for misplaced rows, and again after ``forget``. ``settings`` are pymysql's connection
    arguments.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._changes = 0
        self._without: tuple[TableDefinition, int] | None = None
        self.connection: Any = None

    def forget(self) -> None:
        """Makes the next call of ``refused`` search the table again, since a statement may have moved rows. Another
        thread calls this.
        """
        self._changes += 1

    def refused(self, table: TableDefinition) -> TableDefinition:
        """Returns ``table``, with a refusal if it has misplaced rows. Raises Disconnected, and UserError if a grant is
        missing."""
        if table.refusal is not None or "PARTITION BY" not in table.created:
            return table
        looked = table, self._changes
        if looked == self._without:
            return table
        try:
            partition = self._look(table)
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in (*CHANGED, _UNKNOWN_PARTITION):
                return table  # the table was altered or dropped: the reader notices this when it reads the table
            user = str(self._settings.get("user", ""))
            raise reading_failed(error, table.database, table.name, user=user) from None
        if partition is None:
            self._without = looked
            return table
        why = (
            f"its partition {partition} has rows that belong in another one, where conditions on a key don't find "
            f"them: ALTER TABLE {_full_name(table)} REPAIR PARTITION ALL moves them"
        )
        return replace(table, refusal=why)

    def _look(self, table: TableDefinition) -> str | None:
        """Returns the first partition with a misplaced row, None if there is none."""
        self.connection = connected(**self._settings, autocommit=True)
        with closing(self.connection), self.connection.cursor() as cursor:
            cursor.execute(f"{_SESSION}, {copy_settings(self.connection).unlimited_time}")
            cursor.execute(ALL_SHOWN)
            keys = _unique_keys(cursor, table)
            for partition in _partitions(cursor, table) if keys else []:
                for key in keys:
                    cursor.execute(_lookup(table, partition, key))
                    if cursor.fetchone():
                        return partition
        return None


def _full_name(table: TableDefinition) -> str:
    return f"{identifier(table.database)}.{identifier(table.name)}"


def _partitions(cursor: Any, table: TableDefinition) -> list[str]:
    """Returns the names of the partitions that contain rows: the subpartitions, if there are any."""
    cursor.execute(
        "SELECT COALESCE(SUBPARTITION_NAME, PARTITION_NAME) FROM information_schema.PARTITIONS "
        "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND PARTITION_NAME IS NOT NULL",
        (table.database, table.name),
    )
    return [row[0] for row in cursor.fetchall()]


def _unique_keys(cursor: Any, table: TableDefinition) -> list[TableKey]:
    """Returns the keys with which rows are looked up. A table that is copied by its key needs only this key. A table
    without a key is read as a whole: a row that is stored twice would violate a unique key on the follower, where each
    row is in its right partition. So such a table needs all unique keys, except keys with expressions, which can't be
    looked up.
    """
    unique = [key for key in table_keys(cursor, _full_name(table)) if key.unique and None not in key.columns]
    return [key for key in unique if key.name == table.key_index] if table.key else unique


def _lookup(table: TableDefinition, partition: str, key: TableKey) -> str:
    # With this index, rows are read in the same order as they are looked up, so each page is read once.
    index, columns = f"FORCE INDEX ({identifier(key.name)})", [identifier(name or "") for name in key.columns]
    return misplaced_rows(_full_name(table), identifier(partition), columns, index=index, nullable=key.nullable)
