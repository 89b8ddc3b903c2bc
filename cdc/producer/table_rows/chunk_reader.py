"""Reads a table from the leader chunk by chunk, in the order of its key, each chunk as of one moment.

A chunk's transaction first takes the table's metadata lock, then looks whether the table still is what its definition
says, and then reads: rows are never read by the definition of another table. pymysql connects and sends the statement;
the rows are read from its connection here, in large blocks.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from struct import error as StructError
from typing import Any, Self

import pymysql
from pymysql.err import raise_mysql_exception

from cdc.errors import CdcError, Disconnected, PromiseError
from cdc.producer.table_rows.chunk_rows import ChunkRows
from cdc.producer.table_rows.definition import ALL_SHOWN, TableDefinition, identifier, reading_failed, table_text
from cdc.producer.table_rows.key_literals import key_literals
from cdc.service.mysql_connection import connected

__all__ = [
    "CHANGED",
    "ArrivingRows",
    "ChunkReader",
    "ReadChunk",
    "TableChanged",
    "forget_answer",
    "read_failed",
    "reading_connection",
    "require_unchanged",
]

_BLOCK_BYTES = 1 << 16
_TIMEOUTS = {"read_timeout": 300, "write_timeout": 30}  # seconds, without anything from the leader
_RAW = {"charset": "utf8mb4", "use_unicode": False, "conv": {}, "autocommit": None}
# Nothing that the leader's administrator may have set must change what is read: all rows that are committed, all their
# bytes in the table's own character sets, every date that can be stored.
_SESSION = (
    "SET SESSION autocommit = 0, character_set_results = NULL, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES', "
    "sql_select_limit = 18446744073709551615, sql_big_selects = 1, max_execution_time = 0, "
    "group_concat_max_len = 4294967295, range_optimizer_max_mem_size = 0, net_write_timeout = 600, "
    "lock_wait_timeout = 60, transaction_isolation = 'REPEATABLE-READ', transaction_read_only = 1"
)
CHANGED = frozenset({1049, 1054, 1146, 1176, 1356, 1412})  # the last but one: an invalid view has its name now
_LARGEST_PAYLOAD = 0xFFFFFF
_HEADER_BYTES = 4
_ERROR = 0xFF
_KEPT = 100  # tables whose generated code is kept


class TableChanged(Disconnected):
    """The table is not what its definition says any more: to read the definition again, or to start again, is safe."""


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """The JSON text of each row, and of each key column's value in the last row; ``upto`` is None at the table's end.

    ``size`` is that of the rows in characters.
    """

    rows: list[str]
    upto: tuple[str, ...] | None
    size: int


class ChunkReader:
    """Reads with one connection, which is made when it is needed. ``with ChunkReader(settings, name) as reader: …``

    ``settings`` are pymysql's connection arguments, ``name`` the server's for errors.
    """

    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self._settings = settings
        self._name = name
        self._connection: Any = None
        self._code: dict[TableDefinition, ChunkRows] = {}
        self._row_sizes: dict[TableDefinition, int] = {}

    @property
    def connection(self) -> Any:
        """The connection of now, None where there is none."""
        return self._connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, at once."""
        if self._connection is not None:
            forget_answer(self._connection)
            self._connection._force_close()
            self._connection = None

    def read(
        self, definition: TableDefinition, after: tuple[str, ...] | None, *, rows: int, max_bytes: int
    ) -> ReadChunk:
        """The first ``rows`` rows behind ``after``, fewer where they have ``max_bytes`` or the table ends.

        ``after`` has the JSON text of each key column's value, None for the table's beginning. At ``max_bytes`` it
        stops, with at least one row and at most a row, or a block from the network, more. Raises TableChanged,
        Disconnected; UserError for a missing grant; PromiseError for a row that can't be read exactly.
        """
        if definition.refusal is not None:
            raise ValueError(f"{definition.database}.{definition.name} can't be copied: {definition.refusal}")
        code = self._code_of(definition)
        bound = None if after is None else key_literals(definition.key_columns, after)
        # As many as last time would have taken that size, so that the answer seldom has to be broken off.
        rows = min(rows, max(1, max_bytes // self._row_sizes.get(definition, 1)))
        found, size, ended = self._read(definition, code.statement(bound, rows), max_bytes)
        if found:
            self._row_sizes[definition] = size // len(found)
        upto = None if ended and len(found) < rows else _key_of(definition, found[-1])
        return ReadChunk(found, upto, size)

    def read_keys(
        self, definition: TableDefinition, keys: Sequence[tuple[str, ...]], *, max_bytes: int
    ) -> ReadChunk | None:
        """The rows with ``keys``, given as ``after`` is in ``read``; None where they have more than ``max_bytes``.

        Raises ValueError for what is no value of the table's key; otherwise as ``read``.
        """
        literals = [key_literals(definition.key_columns, key) for key in keys]
        found, size, ended = self._read(definition, self._code_of(definition).of_keys(literals), max_bytes)
        return ReadChunk(found, None, size) if ended else None

    def _read(self, definition: TableDefinition, statement: str, max_bytes: int) -> tuple[list[str], int, bool]:
        """As ``_rows``; with an error the connection is closed."""
        try:
            return self._rows(self._code_of(definition), statement, max_bytes)
        except pymysql.MySQLError as error:
            failed = read_failed(error, definition, self._settings, self._name)
            self.close()
            raise failed from None
        except OSError as error:
            self.close()
            raise Disconnected(f"the connection to the leader failed: {error}", where=self._name) from None
        except CdcError:
            self.close()
            raise

    def _code_of(self, definition: TableDefinition) -> ChunkRows:
        if definition not in self._code:
            if len(self._code) >= _KEPT:
                self._code.clear()
                self._row_sizes.clear()
            self._code[definition] = ChunkRows.of(definition)
        return self._code[definition]

    def _rows(self, code: ChunkRows, statement: str, max_bytes: int) -> tuple[list[str], int, bool]:
        """The rows, their size, and whether they are all that the statement finds."""
        table = code.definition
        connection = self._open()
        require_unchanged(connection, table)
        connection.query(statement, unbuffered=True)
        answer = ArrivingRows(connection, code)
        found, size = answer.read(max_bytes)
        if answer.ended:
            forget_answer(connection)
            connection.rollback()
        else:
            # Cheaper than to receive the rest.
            self.close()
        return found, size, answer.ended

    def _open(self) -> Any:
        if self._connection is None:
            self._connection = reading_connection(self._settings)
        return self._connection


def reading_connection(settings: dict[str, Any]) -> Any:
    """A new connection for rows, with no transaction open; ``settings`` are pymysql's arguments."""
    connection = connected(**settings | _TIMEOUTS | _RAW)
    with connection.cursor() as cursor:
        cursor.execute(_SESSION)
        cursor.execute(ALL_SHOWN)
    return connection


def require_unchanged(connection: Any, table: TableDefinition) -> None:
    """Take the table's metadata lock, which the transaction has until it ends. Raises TableChanged."""
    full_name = f"{identifier(table.database)}.{identifier(table.name)}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {full_name} LIMIT 0")
        cursor.execute(f"SHOW CREATE TABLE {full_name}")
        created = table_text(cursor.fetchone()[1].decode("utf-8", "surrogateescape"))
    if created != table.created:
        raise _changed(table)


def read_failed(error: pymysql.MySQLError, table: TableDefinition, settings: dict[str, Any], name: str) -> CdcError:
    """An error of a statement that reads ``table`` from the server ``name``, as one of ours."""
    if error.args and error.args[0] in CHANGED:
        return _changed(table)
    if not error.args or not isinstance(error.args[0], int):
        return Disconnected(f"the leader sent what is no answer: {error}", where=name)
    return reading_failed(error, table.database, table.name, user=str(settings.get("user", "")))


class ArrivingRows:
    """The rows that arrive for a statement."""

    def __init__(self, connection: Any, code: ChunkRows) -> None:
        self._read: Callable[[int], bytes] = connection._rfile.read1
        self._code = code
        self._data = b""
        self._found: list[str] = []
        self.ended = False

    def read(self, max_bytes: int) -> tuple[list[str], int]:
        """The next rows until there are no more, or ``max_bytes`` of them, and their size."""
        self._found = []
        size = 0
        while not self.ended and (size < max_bytes or not self._found):
            before = len(self._found)
            try:
                self._take_block()
            except (ValueError, LookupError, StructError) as error:
                raise self._unreadable(error) from None
            size += sum(map(len, self._found[before:]))
        return self._found, size

    def _take_block(self) -> None:
        """Take the rows that have arrived completely, and read more."""
        data = self._data
        at = self._code.rows(data, data.decode("latin1"), 0, len(data), self._found)
        self._data = data = data[at:]
        if len(data) <= _HEADER_BYTES:
            self._data += self._more()
            return
        length, kind = int.from_bytes(data[:3], "little"), data[_HEADER_BYTES]
        if length == _LARGEST_PAYLOAD:
            payload = self._large()
            self._found.append(self._code.row(payload, payload.decode("latin1")))
        elif len(data) < length + _HEADER_BYTES:
            # All of a packet at once: to try it after each block would take time quadratic in its length.
            self._fill(max(length + _HEADER_BYTES, len(data) + 1))
        elif kind == _ERROR:
            raise_mysql_exception(data[_HEADER_BYTES:])
        else:
            self.ended = True

    def _large(self) -> bytes:
        """The payload of several packets: each but the last one has the largest length."""
        parts = []
        length = _LARGEST_PAYLOAD
        while length == _LARGEST_PAYLOAD:
            self._fill(_HEADER_BYTES)
            length = int.from_bytes(self._data[:3], "little")
            self._fill(_HEADER_BYTES + length)
            parts.append(self._data[_HEADER_BYTES : _HEADER_BYTES + length])
            self._data = self._data[_HEADER_BYTES + length :]
        return b"".join(parts)

    def _fill(self, size: int) -> None:
        parts, missing = [self._data], size - len(self._data)
        while missing > 0:
            parts.append(self._more())
            missing -= len(parts[-1])
        self._data = b"".join(parts)

    def _more(self) -> bytes:
        data = self._read(_BLOCK_BYTES)
        if not data:
            raise ConnectionResetError("the leader closed it")
        return data

    def _unreadable(self, error: Exception) -> PromiseError:
        table = self._code.definition
        place = "a row"
        if self._found and table.key:
            place = f"the row after the key {', '.join(_key_of(table, self._found[-1]))}"
        return PromiseError(
            f"{place} of {table.database}.{table.name} can't be copied: {error}",
            where=f"table {table.database}.{table.name}",
            hint="correct the row on the leader, or don't copy the table",
        )


def forget_answer(connection: Any) -> None:
    """Otherwise pymysql would read the rest of it."""
    if connection._result is not None:
        connection._result.unbuffered_active = False
        connection._result = None


def _changed(table: TableDefinition) -> TableChanged:
    return TableChanged("a table that is copied was changed", where=f"{table.database}.{table.name}")


def _key_of(table: TableDefinition, row: str) -> tuple[str, ...]:
    values = json.loads(row)["cols"]
    places = {column.name: place for place, column in enumerate(table.columns)}
    return tuple(json.dumps(values[places[name]], ensure_ascii=False, separators=(",", ":")) for name in table.key)
