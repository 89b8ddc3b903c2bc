"""Reads rows of a table from the leader: chunks in the order of its key, or all rows from one snapshot.

A chunk is read in a transaction of its own: it takes the table's metadata lock, checks that the table still has the
known definition, and then reads, so that no row is read with the wrong definition. pymysql connects and sends the
statement; this module reads the rows from pymysql's connection in large blocks.

The function that turns rows of the result into JSON text is generated for each table. It returns, byte for byte, the
text that the decoder of ``decode.row_codegen`` returns for the same rows in the binlog. The server sends a row as a
packet with the length and the bytes of each column (MySQL source documentation, "Text Resultset Row").

A table without a usable key is read from one snapshot (START TRANSACTION WITH CONSISTENT SNAPSHOT), which takes no lock
on rows. The table's metadata lock is held from before the snapshot until the last row: a statement that would replace
the table waits.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from struct import error as StructError
from typing import Any, Self

import pymysql
from pymysql.err import raise_mysql_exception

from cdc.errors import CdcError, Disconnected, PromiseError
from cdc.model.position import Position
from cdc.producer.binlog.leader import end_of_binlog
from cdc.producer.copy.definition import ALL_SHOWN, TableDefinition, identifier, reading_failed, table_text
from cdc.producer.copy.keys import key_literals
from cdc.producer.copy.row_text import ColumnText, column_text, constants
from cdc.producer.flavor.mariadb_leader import begin_snapshot, copy_settings, speaks_mariadb
from cdc.service.mysql_connection import connected
from cdc.sql.key_range import keys_condition, range_condition

__all__ = [
    "CHANGED",
    "ArrivingRows",
    "ChunkReader",
    "ChunkRows",
    "ReadChunk",
    "SnapshotReader",
    "TableChanged",
    "forget_answer",
    "key_of",
    "read_failed",
    "reading_connection",
    "require_unchanged",
]

Rows = Callable[[bytes, str, int, int, list[str]], int]
Row = Callable[[bytes, str], str]
_PACKET = [
    "def rows(d, t, p, end, out):",
    " add = out.append",
    " while end - p > 4:",
    "  n = d[p] | d[p+1] << 8 | d[p+2] << 16",
    "  stop = p + 4 + n",
    "  k = d[p+4]",
    # The loop stops at a packet that is incomplete, is continued in another packet, reports an error, or ends the
    # result.
    "  if stop > end or n == 0xFFFFFF or k == 255 or (k == 254 and n < 9): break",
    "  p += 4",
]
_ROW_ENDS = "if p != stop: raise ValueError('a row ends %d bytes after its packet' % (p - stop))"


@dataclass(frozen=True, slots=True)
class ChunkRows:
    """The generated code that reads a table's rows.

    ``rows(data, text, offset, end, out)`` appends the rows of complete packets to ``out`` and returns the offset of the
    first packet that is incomplete or not a row; ``row(payload, text)`` returns one row of 16 MiB or more. ``text``
    contains the same bytes as latin1 text. Both functions raise ValueError or LookupError if a row can't be read
    exactly.
    """

    definition: TableDefinition
    selected: str
    rows: Rows
    row: Row

    @classmethod
    def of(cls, definition: TableDefinition) -> "ChunkRows":
        """Generates the code for a table that can be copied."""
        known = constants()
        columns = [
            column_text(column, f"t.{identifier(column.name)}", f"x{index}", known)
            for index, column in enumerate(definition.columns)
        ]
        nullable = [column.nullable for column in definition.columns]
        lines, text = _row(columns, nullable)
        source = [*_PACKET, *(f"  {line}" for line in (*lines, _ROW_ENDS)), f"  add(f'{text}')", " return p"]
        source += ["def row(d, t):", " p, stop = 0, len(d)", *(f" {line}" for line in (*lines, _ROW_ENDS))]
        source.append(f" return f'{text}'")
        exec("\n".join(source), known)
        selected = ", ".join(expression for column in columns for expression in column.selected)
        return cls(definition, selected, known.pop("rows"), known.pop("row"))

    def whole_statement(self) -> str:
        """Returns the SELECT statement for all rows, in any order."""
        table = self.definition
        return f"SELECT {self.selected} FROM {identifier(table.database)}.{identifier(table.name)} AS t"

    def statement(self, after: Sequence[str] | None, rows: int) -> str:
        """Returns the SELECT statement for ``rows`` rows after the key ``after``, which contains a literal for each
        column of the key.
        """
        return f"{self._where(range_condition(self._key, after, None))} ORDER BY {', '.join(self._key)} LIMIT {rows}"

    def of_keys(self, keys: Iterable[Sequence[str]]) -> str:
        """Returns the SELECT statement for the rows with one of ``keys``. Each of ``keys`` contains a literal for each
        column of the key.
        """
        return self._where(keys_condition(self._key, keys))

    @property
    def _key(self) -> list[str]:
        return [f"t.{identifier(name)}" for name in self.definition.key]

    def _where(self, condition: str) -> str:
        table = self.definition
        return (
            f"SELECT {self.selected} FROM {identifier(table.database)}.{identifier(table.name)} AS t "
            f"FORCE INDEX ({identifier(table.key_index)}) WHERE {condition}"
        )


def _row(columns: Sequence[ColumnText], nullable: Sequence[bool]) -> tuple[list[str], str]:
    """Generates the lines of code that read a row's columns, and the source of the f-string for the row's JSON text."""
    lines: list[str] = []
    texts = []
    for index, (column, may_be_null) in enumerate(zip(columns, nullable, strict=True)):
        x = f"x{index}"
        text = column.text.replace("X", x)
        convert = [line.replace("X", x) for line in column.lines]
        if len(column.selected) > 1:
            lines += _several(x, len(column.selected))
            lines.append(f"if {x}[0] is None: v{index} = '\"Null\"'")
        elif may_be_null:
            lines.append(f"if d[p] == 251: v{index} = '\"Null\"'; p += 1")
        if len(column.selected) > 1 or may_be_null:
            read = convert if len(column.selected) > 1 else [*_part(x, column.source), *convert]
            lines += ["else:", *(f" {line}" for line in read), f" v{index} = f'{text}'"]
            texts.append(f"{{v{index}}}")
        else:
            lines += [*_part(x, column.source), *convert]
            texts.append(text)
    return lines, '{{"cols":[' + ",".join(texts) + "]}}"


def _part(x: str, source: str) -> Iterator[str]:
    """Yields the lines of code that read one column that is not NULL."""
    yield "l = d[p]"
    yield "if l < 251: p += 1"
    # The byte 251 would mean NULL; it is an error here, since the column can't be NULL.
    yield "elif l == 252: l = d[p+1] | d[p+2] << 8; p += 3"
    yield "elif l == 253: l = d[p+1] | d[p+2] << 8 | d[p+3] << 16; p += 4"
    yield "elif l == 254: l = int.from_bytes(d[p+1:p+9], 'little'); p += 9"
    yield "else: raise ValueError('a column that can not be NULL is, or its length is broken')"
    yield f"{x} = {source}[p:p+l]; p += l"


def _several(x: str, count: int) -> Iterator[str]:
    """Yields the lines of code that read the several selected columns of one value as a list, with None for NULL."""
    yield f"{x} = []"
    yield f"for _ in range({count}):"
    yield f" if d[p] == 251: {x}.append(None); p += 1"
    yield " else:"
    yield from (f"  {line}" for line in _part("part", "d"))
    yield f"  {x}.append(part)"


_BLOCK_BYTES = 1 << 16
_TIMEOUTS = {"read_timeout": 300, "write_timeout": 30}  # seconds without a reply from the leader
_RAW = {"charset": "utf8mb4", "use_unicode": False, "conv": {}, "autocommit": None}
# Whatever the leader's settings are, the session reads all committed rows, all bytes in the table's own character sets,
# and every date that can be stored.
_SESSION = (
    "SET SESSION autocommit = 0, character_set_results = NULL, time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES', "
    "sql_select_limit = 18446744073709551615, sql_big_selects = 1, group_concat_max_len = 4294967295, "
    "net_write_timeout = 600, lock_wait_timeout = 60"
)
CHANGED = frozenset({1049, 1054, 1146, 1176, 1356, 1412})  # 1356: the name now belongs to an invalid view
_LARGEST_PAYLOAD = 0xFFFFFF
_HEADER_BYTES = 4
_ERROR = 0xFF
_KEPT = 100  # number of tables whose generated code is cached


class TableChanged(Disconnected):
    """Raised when the table no longer has the known definition. The caller may read the definition again, or start the
    copy again.
    """


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """The rows of a chunk as JSON texts; ``upto`` are the JSON texts of the last row's key values, None at the table's
    end.

    ``size`` is the number of characters of all rows.
    """

    rows: list[str]
    upto: tuple[str, ...] | None
    size: int


class ChunkReader:
    """Reads chunks over one connection, which is opened when it is needed.

    ``with ChunkReader(settings, name) as reader: …``. ``settings`` are pymysql's connection arguments, ``name`` is the
    server's name in errors.
    """

    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self._settings = settings
        self._name = name
        self._connection: Any = None
        self._code: dict[TableDefinition, ChunkRows] = {}
        self._row_sizes: dict[TableDefinition, int] = {}

    @property
    def connection(self) -> Any:
        """The open connection, None if there is none."""
        return self._connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection at once, without waiting for a running statement."""
        if self._connection is not None:
            forget_answer(self._connection)
            self._connection._force_close()
            self._connection = None

    def read(
        self, definition: TableDefinition, after: tuple[str, ...] | None, *, rows: int, max_bytes: int
    ) -> ReadChunk:
        """Reads ``rows`` rows after the key ``after``; fewer if they reach ``max_bytes`` or the table ends.

        ``after`` contains the JSON text of each key column's value; None means the table's beginning. The result has at
        least one row, and exceeds ``max_bytes`` by at most a row or a block from the network. Raises TableChanged,
        Disconnected, UserError for a missing grant, and PromiseError for a row that can't be read exactly.
        """
        if definition.refusal is not None:
            raise ValueError(f"{definition.database}.{definition.name} can't be copied: {definition.refusal}")
        code = self._code_of(definition)
        bound = None if after is None else key_literals(definition.key_columns, after)
        # Requests the number of rows that would reach ``max_bytes`` with the average row size of the previous chunk, so
        # that a result is seldom cut off.
        rows = min(rows, max(1, max_bytes // self._row_sizes.get(definition, 1)))
        found, size, ended = self._read(definition, code.statement(bound, rows), max_bytes)
        if found:
            self._row_sizes[definition] = size // len(found)
        upto = None if ended and len(found) < rows else key_of(definition, found[-1])
        return ReadChunk(found, upto, size)

    def read_keys(
        self, definition: TableDefinition, keys: Sequence[tuple[str, ...]], *, max_bytes: int
    ) -> ReadChunk | None:
        """Reads the rows with ``keys``; None if the rows have more than ``max_bytes``.

        Each key has the form of ``after`` in ``read``. Raises ValueError for a value that the table's key can't
        contain, and the errors of ``read``.
        """
        literals = [key_literals(definition.key_columns, key) for key in keys]
        found, size, ended = self._read(definition, self._code_of(definition).of_keys(literals), max_bytes)
        return ReadChunk(found, None, size) if ended else None

    def _read(self, definition: TableDefinition, statement: str, max_bytes: int) -> tuple[list[str], int, bool]:
        """Calls ``_rows``, and closes the connection after an error."""
        try:
            return self._rows(self._code_of(definition), statement, max_bytes)
        except pymysql.MySQLError as error:
            failed = read_failed(error, definition, self._settings, self._name)
            self.close()
            raise failed from None
        except OSError as error:
            self.close()
            raise Disconnected(
                f"the connection to the leader failed: {error}", code="CDC-LEADER-CONNECTION", where=self._name
            ) from None
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
        """Executes ``statement``; returns the rows, their size in characters, and whether the result has ended."""
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
            # Closing the connection is cheaper than receiving the rest of the result.
            self.close()
        return found, size, answer.ended

    def _open(self) -> Any:
        if self._connection is None:
            self._connection = reading_connection(self._settings)
        return self._connection


def reading_connection(settings: dict[str, Any]) -> Any:
    """Opens a connection for reading rows, without an open transaction; ``settings`` are pymysql's arguments."""
    connection = connected(**settings | _TIMEOUTS | _RAW)
    with connection.cursor() as cursor:
        own = copy_settings(connection)
        cursor.execute(f"{_SESSION}, {own.unlimited_time}, {own.unlimited_ranges}, {own.reading}")
        cursor.execute(ALL_SHOWN)
    return connection


def require_unchanged(connection: Any, table: TableDefinition) -> None:
    """Takes the table's metadata lock, which the transaction holds until it ends. Raises TableChanged if the table's
    definition has changed."""
    full_name = f"{identifier(table.database)}.{identifier(table.name)}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT 1 FROM {full_name} LIMIT 0")
        cursor.execute(f"SHOW CREATE TABLE {full_name}")
        created = table_text(cursor.fetchone()[1].decode("utf-8", "surrogateescape"))
    if created != table.created:
        raise _changed(table)


def read_failed(error: pymysql.MySQLError, table: TableDefinition, settings: dict[str, Any], name: str) -> CdcError:
    """Translates pymysql's error for a statement that reads ``table`` from the server ``name``."""
    if error.args and error.args[0] in CHANGED:
        return _changed(table)
    if not error.args or not isinstance(error.args[0], int):
        return Disconnected(f"the leader's answer can't be read: {error}", code="CDC-LEADER-CONNECTION", where=name)
    return reading_failed(error, table.database, table.name, user=str(settings.get("user", "")))


class ArrivingRows:
    """Reads the rows of a statement's result as they arrive."""

    def __init__(self, connection: Any, code: ChunkRows) -> None:
        self._read: Callable[[int], bytes] = connection._rfile.read1
        self._code = code
        self._data = b""
        self._found: list[str] = []
        self.ended = False

    def read(self, max_bytes: int) -> tuple[list[str], int]:
        """Reads rows until the result ends or the rows have ``max_bytes``; returns the rows with their size."""
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
        """Parses the rows that have arrived completely, and receives more bytes."""
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
            # Receives the whole packet first: parsing the packet again after each block would take time quadratic in
            # its length.
            self._fill(max(length + _HEADER_BYTES, len(data) + 1))
        elif kind == _ERROR:
            raise_mysql_exception(data[_HEADER_BYTES:])
        else:
            self.ended = True

    def _large(self) -> bytes:
        """Receives the payload of a row in several packets: all packets but the last have the maximum length."""
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
        if self._found and table.key and not table.hides_keys:
            place = f"the row after the key {', '.join(key_of(table, self._found[-1]))}"
        return PromiseError(
            f"{place} of {table.database}.{table.name} can't be copied: {error}",
            code="CDC-COPY-ROW-UNREADABLE",
            where=f"table {table.database}.{table.name}",
            hint="correct the row on the leader, or don't copy the table",
        )


def forget_answer(connection: Any) -> None:
    """Makes pymysql forget an unfinished result; otherwise pymysql would read the rest of it."""
    if connection._result is not None:
        connection._result.unbuffered_active = False
        connection._result = None


def _changed(table: TableDefinition) -> TableChanged:
    return TableChanged(
        "a table that is copied was changed", code="CDC-COPY-TABLE-CHANGED", where=f"{table.database}.{table.name}"
    )


def key_of(table: TableDefinition, row: str) -> tuple[str, ...]:
    """Returns the JSON texts of the key's values in a row's JSON text."""
    values = json.loads(row)["cols"]
    places = {column.name: place for place, column in enumerate(table.columns)}
    return tuple(json.dumps(values[places[name]], ensure_ascii=False, separators=(",", ":")) for name in table.key)


_LOCKED = frozenset({1205, 1213})
# The settings of the session that reads a snapshot. lock_wait_timeout is short because of a possible deadlock. Another
# client's ALTER may wait for the metadata lock that the guard connection of ``open`` holds. This session would then
# wait behind that ALTER, but the guard is closed only after this session has its lock. net_write_timeout is long
# because the server can't send while a throttle pauses the copy between two pieces.
_SNAPSHOT_SESSION = "SET SESSION lock_wait_timeout = 1, net_write_timeout = 86400"


class SnapshotReader:
    """Reads one snapshot at a time. ``settings`` are pymysql's connection arguments, ``name`` is the server's name in
    errors."""

    def __init__(self, settings: dict[str, Any], name: str) -> None:
        self._settings = settings
        self._name = name
        self._rows: ArrivingRows | None = None
        self._table: TableDefinition | None = None
        self.connection: Any = None

    def open(self, table: TableDefinition, executed: str = "") -> tuple[str, Position]:
        """Takes a snapshot. Returns a GTID set and a binlog position: the snapshot certainly sees the transactions in
        the GTID set, and it sees no transaction that was logged after the position. It may see any of the transactions
        between these bounds. ``executed`` are GTIDs of transactions that a SELECT sees already.

        Raises TableChanged, Disconnected, and UserError for a missing grant.
        """
        self.close()
        try:
            # The guard's lock keeps the table's definition unchanged until the snapshot's own transaction holds the
            # lock.
            with closing(reading_connection(self._settings)) as guard:
                require_unchanged(guard, table)
                self.connection = reading_connection(self._settings)
                with self.connection.cursor() as cursor:
                    # The order is essential. The snapshot sees all transactions that were executed before it. All
                    # transactions that it sees were logged before it, and so before the end of the binlog that is read
                    # afterwards.
                    if speaks_mariadb(self.connection):
                        seen = begin_snapshot(cursor, executed)
                    else:
                        cursor.execute("SELECT @@GLOBAL.gtid_executed")
                        seen = cursor.fetchone()[0].decode()
                        cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                    file, offset = _decoded(end_of_binlog(cursor))
                    cursor.execute(_SNAPSHOT_SESSION)
                require_unchanged(self.connection, table)
        except (pymysql.MySQLError, OSError) as error:
            raise self._failed(error, table) from None
        except CdcError:
            self.close()
            raise
        self._table = table
        return seen, Position(file, offset)

    def piece(self, max_bytes: int) -> ReadChunk:
        """Reads the next rows of the table, ``max_bytes`` or a little more.

        ``upto`` of the result is None at the table's end, otherwise ``()``. Raises the errors of ``open``, and
        PromiseError for a row that can't be read exactly.
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
        """Ends the snapshot at once, without reading the rest of the table."""
        self._rows = self._table = None
        if self.connection is not None:
            forget_answer(self.connection)
            self.connection._force_close()
            self.connection = None

    def _failed(self, error: pymysql.MySQLError | OSError, table: TableDefinition) -> CdcError:
        self.close()
        if error.args and error.args[0] in _LOCKED:
            return TableChanged(
                "a table that is copied was changed",
                code="CDC-COPY-TABLE-CHANGED",
                where=f"{table.database}.{table.name}",
            )
        if isinstance(error, pymysql.MySQLError):
            return read_failed(error, table, self._settings, self._name)
        return Disconnected(
            f"the connection to the leader failed: {error}", code="CDC-LEADER-CONNECTION", where=self._name
        )


def _decoded(position: Position) -> tuple[str, int]:
    """Returns the position with its file name as text, since this connection returns bytes."""
    file: Any = position.file
    return file.decode() if isinstance(file, bytes) else file, position.offset
