"""Reads a table from the leader as a whole, as of one moment, piece by piece.

The moment is that of a snapshot (START TRANSACTION WITH CONSISTENT SNAPSHOT), which takes no lock on rows. The table's
metadata lock is held from before the snapshot until the last row: no statement can put another table in its place, and
one that tries to waits.
"""

from contextlib import closing
from typing import Any

import pymysql

from cdc.errors import CdcError, Disconnected
from cdc.model.position import Position
from cdc.producer.binlog.leader import end_of_binlog
from cdc.producer.table_rows.chunk_reader import (
    ArrivingRows,
    ReadChunk,
    TableChanged,
    forget_answer,
    read_failed,
    reading_connection,
    require_unchanged,
)
from cdc.producer.table_rows.chunk_rows import ChunkRows
from cdc.producer.table_rows.definition import TableDefinition

__all__ = ["SnapshotReader"]

_LOCKED = frozenset({1205, 1213})
# A statement that waits for the guard, and which this waits for, would make all wait. Between two pieces the server
# waits as long as the pace has it.
_SESSION = "SET SESSION lock_wait_timeout = 1, net_write_timeout = 86400"


class SnapshotReader:
    """Has one snapshot at a time. ``settings`` are pymysql's connection arguments, ``name`` the server's for errors."""

    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self._settings = settings
        self._name = name
        self._rows: ArrivingRows | None = None
        self._table: TableDefinition | None = None
        self.connection: Any = None

    def open(self, table: TableDefinition) -> tuple[str, Position]:
        """Take a snapshot; the GTIDs of transactions that it sees for certain, and a position that is behind all others
        that it may see.

        Raises TableChanged, Disconnected; UserError for a missing grant.
        """
        self.close()
        try:
            # Keeps the table as it is until the snapshot's own transaction does.
            with closing(reading_connection(self._settings)) as guard:
                require_unchanged(guard, table)
                self.connection = reading_connection(self._settings)
                with self.connection.cursor() as cursor:
                    # The order is what counts: what was executed before, the snapshot sees; what it sees was logged
                    # before it, and is before the end that is asked for after it.
                    cursor.execute("SELECT @@GLOBAL.gtid_executed")
                    seen = cursor.fetchone()[0].decode()
                    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                    file, offset = _decoded(end_of_binlog(cursor))
                    cursor.execute(_SESSION)
                require_unchanged(self.connection, table)
        except (pymysql.MySQLError, OSError) as error:
            raise self._failed(error, table) from None
        except CdcError:
            self.close()
            raise
        self._table = table
        return seen, Position(file, offset)

    def piece(self, max_bytes: int) -> ReadChunk:
        """The next rows of the table, ``max_bytes`` or a little more; ``upto`` is None with the last ones, else empty.

        Raises as ``open``, PromiseError for a row that can't be read exactly.
        """
        table = self._table
        if table is None:
            raise ValueError("no snapshot is open")
        try:
            if self._rows is None:
                code = ChunkRows.of(table)
                self.connection.query(code.whole_statement(), unbuffered=True)
                self._rows = ArrivingRows(self.connection, code)
            found, size = self._rows.read(max_bytes)
        except (pymysql.MySQLError, OSError) as error:
            raise self._failed(error, table) from None
        except CdcError:
            self.close()
            raise
        ended = self._rows.ended
        if ended:
            self.close()
        return ReadChunk(found, None if ended else (), size)

    def close(self) -> None:
        """End the snapshot, at once."""
        self._rows = self._table = None
        if self.connection is not None:
            forget_answer(self.connection)
            self.connection._force_close()
            self.connection = None

    def _failed(self, error: pymysql.MySQLError | OSError, table: TableDefinition) -> CdcError:
        self.close()
        if error.args and error.args[0] in _LOCKED:
            return TableChanged("a table that is copied was changed", where=f"{table.database}.{table.name}")
        if isinstance(error, pymysql.MySQLError):
            return read_failed(error, table, self._settings, self._name)
        return Disconnected(f"the connection to the leader failed: {error}", where=self._name)


def _decoded(position: Position) -> tuple[str, int]:
    """The connection gives bytes."""
    file: Any = position.file
    return file.decode() if isinstance(file, bytes) else file, position.offset
