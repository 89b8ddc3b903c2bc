"""Reads chunks of tables from the leader in a thread, each between a low and a high watermark of the binlog; finds rows
in wrong partitions.

A transaction is written to the binlog first, then other sessions see its rows, and then it is in ``gtid_executed``. The
low watermark is the end of the stream at the request. The SELECT waits until all transactions before the low watermark
are in ``gtid_executed``, so all transactions that the SELECT perhaps does not see come later in the stream. The high
watermark is the end of the binlog, which is queried after the SELECT: all transactions that the SELECT sees are before
the high watermark (DBLog, arXiv 2010.12597).

A table that can't be read in ranges of its key is read from one snapshot. The first answer contains the GTIDs that the
snapshot sees. Each further request, whose key has no columns, is answered with the next piece of the table's rows.
"""

import logging
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pymysql

from cdc.config.filters import Mask
from cdc.errors import Disconnected, PromiseError, UserError
from cdc.model.gtid import GtidSet
from cdc.model.position import Position
from cdc.producer.binlog.leader import end_of_binlog, translated
from cdc.producer.copy.chunk_reader import CHANGED, ChunkReader, ReadChunk, SnapshotReader, TableChanged
from cdc.producer.copy.definition import (
    ALL_SHOWN,
    TableDefinition,
    TableKey,
    followed,
    identifier,
    read_definition,
    reading_failed,
    table_keys,
)
from cdc.producer.copy.keys import Keys, has_key, unfit
from cdc.producer.copy.requests import Estimate, estimates
from cdc.producer.copy.row_selection import RowSelection
from cdc.producer.copy.state import Table
from cdc.producer.copy.throttle import Throttles
from cdc.producer.decode.changes import Structure
from cdc.producer.flavor.mariadb_leader import Visibility, copy_settings, speaks_mariadb
from cdc.producer.table_checks import mask_problem
from cdc.service.logs import event
from cdc.service.mysql_connection import connected
from cdc.sql.effects import Effect
from cdc.sql.key_range import misplaced_rows

__all__ = ["Answer", "MisplacedRows", "Read", "Reader", "Spent", "Wanted"]

# Finds rows in wrong partitions, which a SELECT by the table's key would miss.
#
# ``EXCHANGE PARTITION … WITHOUT VALIDATION`` can put rows into a wrong partition. So each row of a partition is looked
# up by its key before the table is copied; this costs a fraction of the copy.

# The queries have no time limit: one statement searches a whole partition, and returns nothing until it is done.
_SESSION = "SET SESSION sql_select_limit = DEFAULT, sql_big_selects = 1, sql_mode = '', lock_wait_timeout = 60"
_UNKNOWN_PARTITION = 1735


class MisplacedRows:
    """Searches each table once for rows in wrong partitions (misplaced rows), and again after ``forget``. ``settings``
    are pymysql's connection arguments.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._changes = 0
        self._without: tuple[TableDefinition, int] | None = None
        self.connection: Any = None

    def forget(self) -> None:
        """Makes ``refused`` search each table again, since a statement may have moved rows to a wrong partition.
        Another thread than that of ``refused`` may call this.
        """
        self._changes += 1

    def refused(self, table: TableDefinition) -> TableDefinition:
        """Returns ``table``, with a refusal if rows are in wrong partitions. Raises Disconnected, and UserError if a
        grant is missing."""
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
            f"its partition {partition} has rows that belong in another partition, so that conditions on a key don't "
            f"find them: ALTER TABLE {_full_name(table)} REPAIR PARTITION ALL moves them"
        )
        return replace(table, refusal=why)

    def _look(self, table: TableDefinition) -> str | None:
        """Returns the first partition with a row that belongs in another partition; None if there is none."""
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
    # The index makes the scan and the lookups run in the same order, so each page is read once.
    index, columns = f"FORCE INDEX ({identifier(key.name)})", [identifier(name or "") for name in key.columns]
    return misplaced_rows(_full_name(table), identifier(partition), columns, index=index, nullable=key.nullable)


_LOG = logging.getLogger("cdc.producer")
_FEWEST_FIRST, _MOST_FIRST, _MOST_ROWS = 500, 5000, 20_000
_LONGER = 2  # times as many bytes the JSON texts of a row have as the leader stores, in most tables
_CHUNK_BYTES = 800_000
_MOST_KEYS = 500  # the maximum number of keys in a chunk: for more alternatives the server might read the whole table
_END_SECONDS = 0.5  # seconds for the thread to end by itself; a locked table can block it
_TRIES = 5
_WAIT_SECONDS = 1  # seconds for which one query waits until the leader has executed a GTID set


@dataclass(frozen=True, slots=True)
class Read:
    """The part of the binlog that the stream had read when a request (``Wanted``) was made: the GTIDs ``executed``,
    the end ``position``, and the XA transactions that are ``prepared`` at this position. With MySQL only the GTIDs
    matter."""

    executed: str
    position: Position
    prepared: frozenset[str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request for a chunk of ``table`` after the key ``after``. The chunk is read once a SELECT sees everything that
    the stream has ``read``.

    Without ``table`` this is a request for the statements that create the leader's objects; ``changed`` are the effects
    of the statements in the stream since the last such request. An ``after`` without columns requests the next piece of
    the snapshot that was taken before. If ``keys`` is set, this is a request for the rows with these keys; the answer
    contains the rows of as many of the first keys as fit into a chunk.
    """

    table: Table | None
    after: tuple[str, ...] | None
    read: Read
    keys: Keys | None = None
    changed: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that were read; ``end`` is a position of the binlog after all transactions that they show, ``ts_us`` is
    the time of reading, in µs since 1970.

    ``chunk`` is None if the table can't be copied or was altered after the request, and if ``structure`` or ``seen`` is
    set. ``chunk``, ``structure`` and ``seen`` are all None if an XA transaction that ended before the requested place
    may still be invisible to a SELECT. ``follows`` are the tables from which changes may cascade to this table without
    a trace in the binlog. ``seen`` is set if a snapshot was taken of a table that is copied as a whole: it contains the
    transactions that the snapshot certainly sees. All other transactions that it may see are before ``end``. ``keys``
    are the requested keys whose rows the chunk contains. ``estimated`` is the leader's estimate of the table's rows,
    None if unknown.
    """

    end: Position
    ts_us: int
    follows: frozenset[Table] = frozenset()
    structure: Structure | None = None
    definition: TableDefinition | None = None
    chunk: ReadChunk | None = None
    seen: GtidSet | None = None
    keys: tuple[tuple[str, ...], ...] | None = None
    estimated: int | None = None


@dataclass(slots=True)
class Spent:
    """How long the thread of a copy waited until the stream ``asked`` for a chunk, until the throttles let it read
    (``held``), until a SELECT saw what the stream had read (``visible``), and how long it was ``reading``, in seconds.
    """

    chunks: int = 0
    rows: int = 0
    asked: float = 0.0
    held: float = 0.0
    visible: float = 0.0
    reading: float = 0.0
    _since: float = field(default_factory=time.monotonic)

    def lap(self) -> float:
        """Returns the seconds since the last call, or since the beginning."""
        before, self._since = self._since, time.monotonic()
        return self._since - before

    def add(self, answer: Answer) -> None:
        """Counts an answer whose reading has ended now."""
        self.reading += self.lap()
        if answer.chunk is not None:
            self.chunks += 1
            self.rows += len(answer.chunk.rows)

    def log(self) -> None:
        """Logs the counters."""
        seconds = {name: f"{getattr(self, name):.2f}" for name in ("asked", "held", "visible", "reading")}
        event(_LOG, "chunks were read", level=logging.DEBUG, chunks=self.chunks, rows=self.rows, **seconds)


class Reader:
    """Answers requests in order; ``throttles`` hold back the next chunk.

    ``hurried`` is set while the stream waits for an answer. ``wake`` is a file descriptor that becomes readable once
    there is an answer. ``read_structure`` reads the statements that create the leader's objects; its argument contains
    the effects of the statements in the stream since it was last called. ``mask(database, table, column)`` returns how
    a column is masked; ``mask`` is None if no column is masked. ``selection`` decides which rows pass the filters.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        *,
        name: str,
        throttles: Throttles,
        read_structure: Callable[[Iterable[Effect]], Structure],
        mask: Callable[[str, str, str], Mask | None] | None = None,
        selection: RowSelection | None = None,
    ) -> None:
        self._settings = settings
        self._name = name
        self._throttles = throttles
        self._read_structure = read_structure
        self._mask = mask
        self._selection = selection or RowSelection()
        self._rows = _FEWEST_FIRST
        self._spent = Spent()
        self._known: TableDefinition | None = None  # the definition with which the newest chunk was read
        self._estimated: tuple[Table | None, Estimate | None] = None, None
        self._wanted: queue.SimpleQueue[Wanted | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer | Exception] = queue.SimpleQueue()
        self._chunk_reader = ChunkReader(settings, name)
        self._snapshots = SnapshotReader(settings, name)
        self._snapshot: Answer | None = None
        self._misplaced = MisplacedRows(settings)
        self._marks: Any = None
        self.wake, self._awake = os.pipe()
        self._stopped = threading.Event()
        self._visibility = Visibility(name, self._stopped)
        self.hurried = threading.Event()
        self._thread = threading.Thread(target=self._run, name="copy", daemon=True)
        self._thread.start()

    def ask(self, wanted: Wanted) -> None:
        """Adds a request after all others."""
        self._wanted.put(wanted)

    def answer(self) -> Answer | None:
        """Returns the next answer, None if there is none yet. Raises Disconnected or UserError if nothing can be
        read.
        """
        try:
            answer = self._answers.get_nowait()
        except queue.Empty:
            return None
        os.read(self.wake, 1)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def written(self, sequence: int, size: int) -> None:
        """Reports to the throttle that a chunk of ``size`` bytes, with the last record ``sequence``, was written."""
        self._throttles.followers.written(sequence, size)

    def forget(self) -> None:
        """Makes the thread search for misplaced rows again, since a statement may have moved rows; to be called once
        all requests are withdrawn."""
        self._misplaced.forget()

    @property
    def waits_for(self) -> str | None:
        """The follower that the reader waits for at the moment; None if there is none."""
        return self._throttles.followers.waits_for

    def close(self) -> None:
        """Ends the thread, whatever it waits for: a table may be locked on the leader for hours."""
        self._stopped.set()
        self.hurried.set()
        self._throttles.stop()
        self._wanted.put(None)
        self._thread.join(_END_SECONDS)
        for _ in range(_TRIES):
            if not self._thread.is_alive():
                os.close(self.wake)
                os.close(self._awake)
                return
            for used in (self._chunk_reader, self._snapshots, self._misplaced):
                _break(used.connection)
            _break(self._marks)
            self._thread.join(_END_SECONDS)
        # The thread is still waiting for a definition, over a connection that is not closed here. The thread ends with
        # the process. The pipe stays open, since the thread will write to it.

    def _run(self) -> None:
        try:
            with closing(connected(**self._settings, autocommit=True)) as marks, closing(self._chunk_reader) as rows:
                self._marks = marks
                with closing(self._snapshots), closing(self._throttles):
                    self._answer_all(marks, rows)
        except pymysql.MySQLError as error:
            self._give(translated(error, self._name))
        except Exception as error:  # noqa: BLE001 - ``answer`` raises it in the other thread
            self._give(error)

    def _answer_all(self, marks: Any, rows: ChunkReader) -> None:
        spent = self._spent
        try:
            while (wanted := self._wanted.get()) is not None and not self._stopped.is_set():
                spent.asked += spent.lap()
                answer = self._read_piece() if wanted.after == () else self._read(marks, rows, wanted)
                spent.add(answer)
                self._give(answer)
        finally:
            if spent.chunks:
                spent.log()

    def _give(self, answer: Answer | Exception) -> None:
        self._answers.put(answer)
        with suppress(OSError):
            os.write(self._awake, b".")

    def _read(self, marks: Any, reader: ChunkReader, wanted: Wanted) -> Answer:
        self._snapshots.close()
        with marks.cursor() as cursor:
            self._throttles.await_turn(cursor)
            self._spent.held += self._spent.lap()
            visible = self._await_visible(cursor, wanted.read)
            self._spent.visible += self._spent.lap()
            if wanted.table is None:
                structure = self._read_structure(wanted.changed)
                # The stream begins at this position, without the changes before it. An XA transaction that was prepared
                # earlier stops the stream if it commits later. If it committed before this position, the copy must see
                # its rows, so the stream does not begin while they are invisible.
                begins = structure if visible else None
                return Answer(end_of_binlog(cursor), time.time_ns() // 1000, structure=begins)
            if wanted.keys is not None:
                return self._read_keys(marks, reader, wanted.keys, visible=visible)
            definition = self._known_definition(wanted) or self._definition(marks, wanted.table)
            follows = followed(cursor, definition)
            if not visible and definition.refusal is None:
                return Answer(end_of_binlog(cursor), time.time_ns() // 1000, follows, definition=definition)
            if wanted.after is None:
                definition = self._misplaced.refused(definition)
            estimate = self._estimate(cursor, wanted.table)
            estimated = estimate and estimate.rows
            if definition.whole and definition.refusal is None and wanted.after is None:
                return self._open_snapshot(definition, wanted.read.executed, follows, estimated)
            if wanted.after is None:
                self._rows = _first_rows(estimate)
            chunk = self._read_chunk(cursor, reader, definition, wanted.after)
            self._known = definition if chunk is not None else None
            end, ts_us = end_of_binlog(cursor), time.time_ns() // 1000
        return Answer(end, ts_us, follows=follows, definition=definition, chunk=chunk, estimated=estimated)

    def _known_definition(self, wanted: Wanted) -> TableDefinition | None:
        """Returns the definition with which the chunk before the ``wanted`` one was read; None if it must be read
        again.

        The reader of chunks compares the statement that creates the table, under the table's metadata lock. That is
        enough unless the statement shows different members of an ENUM or SET in the same way, or the leader is asked
        about masked columns or a condition, too.
        """
        known = self._known
        if not wanted.after or known is None or (known.database, known.name) != wanted.table:
            return None
        is_shown = "?" not in known.created and not known.respelled
        return known if is_shown and self._mask is None and not known.hides_keys else None

    def _definition(self, marks: Any, table: Table) -> TableDefinition:
        """Reads the table's definition, with the masks of its columns. A table of which rows can't be left out as in
        the profile has a refusal.
        """
        definition = self._masked(marks, table)
        with marks.cursor() as cursor:
            return self._selection.checked(cursor, definition)

    def _masked(self, marks: Any, table: Table) -> TableDefinition:
        definition = read_definition(marks, *table)
        if self._mask is None or definition.refusal is not None:
            return definition
        mask = partial(self._mask, *table)
        if all(mask(column.name) is None for column in definition.columns):
            return definition
        with marks.cursor() as cursor:
            refusal = mask_problem(cursor, *table, mask) or None
        return replace(definition if refusal else definition.masked(mask), refusal=refusal)

    def _estimate(self, cursor: Any, table: Table) -> Estimate | None:
        """Returns the estimates for the table; the leader is queried when the table is first read."""
        if self._estimated[0] != table:
            self._estimated = table, estimates(cursor, [table]).get(table)
        return self._estimated[1]

    def _read_keys(self, marks: Any, reader: ChunkReader, wanted: Keys, *, visible: bool) -> Answer:
        definition, chunk, keys = self._misplaced.refused(self._definition(marks, wanted.table)), None, wanted.values
        if visible or definition.refusal is not None:
            definition, chunk, keys = _rows_of(definition, reader, wanted, max_bytes=_CHUNK_BYTES)
        with marks.cursor() as cursor:
            follows = followed(cursor, definition)
            end, ts_us = end_of_binlog(cursor), time.time_ns() // 1000
        if chunk is not None:
            self._throttles.rate.read(len(chunk.rows))
            chunk = self._selection.of(definition, chunk)
        return Answer(end, ts_us, follows=follows, definition=definition, chunk=chunk, keys=keys)

    def _read_chunk(
        self, marks: Any, reader: ChunkReader, definition: TableDefinition, after: tuple[str, ...] | None
    ) -> ReadChunk | None:
        # Nothing is read if the table's key has changed since the previous chunk: the stream contains the ALTER later.
        if definition.refusal is not None or definition.whole or not has_key(definition, after):
            return None
        try:
            while True:
                rows = self._throttles.rate.most(self._rows)
                chunk = reader.read(definition, after, rows=rows, max_bytes=_CHUNK_BYTES)
                self._rows = _next_rows(chunk)
                self._throttles.rate.read(len(chunk.rows))
                selected = self._selection.of(definition, chunk)
                if selected.rows or selected.upto is None:
                    return selected
                # No row of these passes the filters, and the key of a row that does not pass must be in no record. So
                # rows are read until the chunk can end with a row that passes.
                after = chunk.upto
                self._throttles.await_turn(marks)
                self._require_running()
        except TableChanged:
            return None

    def _require_running(self) -> None:
        if self._stopped.is_set():
            raise Disconnected("stopped while a table was copied", code="CDC-STOPPED-IN-COPY", where=self._name)

    def _open_snapshot(
        self, definition: TableDefinition, executed: str, follows: frozenset[Table], estimated: int | None
    ) -> Answer:
        # The open snapshot holds the table's metadata lock, so an ALTER of the table waits for the snapshot. Until the
        # snapshot's rows are read, this thread must make no query that would wait behind such an ALTER.
        try:
            seen, end = self._snapshots.open(definition, executed)
        except TableChanged:
            return Answer(self._end(), time.time_ns() // 1000, follows, definition=definition)
        ts_us, known = time.time_ns() // 1000, GtidSet.parse(seen)
        self._snapshot = Answer(end, ts_us, follows, definition=definition, seen=known, estimated=estimated)
        return self._snapshot

    def _read_piece(self) -> Answer:
        assert self._snapshot is not None  # an earlier request has taken the snapshot
        with self._marks.cursor() as cursor:
            self._throttles.await_turn(cursor, until=self.hurried)
        self._spent.held += self._spent.lap()
        chunk = self._snapshots.piece(_CHUNK_BYTES)
        if not self.hurried.is_set():
            self._throttles.rate.read(len(chunk.rows))
        assert self._snapshot.definition is not None  # a snapshot is of a table that can be copied
        return replace(self._snapshot, chunk=self._selection.of(self._snapshot.definition, chunk), seen=None)

    def _end(self) -> Position:
        with self._marks.cursor() as cursor:
            return end_of_binlog(cursor)

    def _await_visible(self, marks: Any, read: Read) -> bool:
        """Waits until a SELECT sees all that the stream has ``read``. Returns False if it is unknown when a SELECT will
        see all of it: the rows must then be requested again, at a later point of the stream."""
        if speaks_mariadb(marks.connection):
            return self._visibility.await_all(marks, read.position, read.prepared)
        while not self._stopped.is_set():
            marks.execute("SELECT WAIT_FOR_EXECUTED_GTID_SET(%s, %s)", (read.executed, _WAIT_SECONDS))
            if marks.fetchone()[0] == 0:
                return True
        self._require_running()
        return False


Found = tuple[TableDefinition, ReadChunk | None, tuple[tuple[str, ...], ...]]


def _rows_of(definition: TableDefinition, reader: ChunkReader, keys: Keys, *, max_bytes: int) -> Found:
    """Reads the rows of the first of ``keys``, about ``max_bytes`` in all; returns the table's ``definition``, these
    rows, and the keys of these rows.

    The rows are None if the table was altered after its definition was read, or can't be read by these keys; in the
    second case the definition has a refusal. Raises Disconnected.
    """
    refusal = definition.refusal or unfit(definition, keys)
    part = keys.values[:_MOST_KEYS]
    if refusal is not None:
        return replace(definition, refusal=refusal), None, part
    try:
        while (chunk := reader.read_keys(definition, part, max_bytes=max_bytes if len(part) > 1 else 1 << 62)) is None:
            part = part[: len(part) // 2]
    except TableChanged:
        return definition, None, part
    except (ValueError, OverflowError, UserError, PromiseError) as error:
        # Another request for the same rows would fail in the same way, again and again; so the rows are refused.
        return replace(definition, refusal=str(error)), None, part
    return definition, chunk, part


def _break(connection: Any) -> None:
    """Shuts the connection down, so that another thread's wait on it fails."""
    with suppress(OSError, AttributeError):  # the connection may be closed, or not be open yet
        connection._sock.shutdown(socket.SHUT_RDWR)


def _first_rows(estimate: Estimate | None) -> int:
    """Returns the number of rows for a table's first chunk, whose size is only estimated."""
    size = _LONGER * estimate.size // max(estimate.rows, 1) if estimate else 0
    return min(max(_CHUNK_BYTES // size, _FEWEST_FIRST), _MOST_FIRST) if size else _FEWEST_FIRST


def _next_rows(chunk: ReadChunk) -> int:
    """Returns the number of rows for the next chunk."""
    size = chunk.size / max(len(chunk.rows), 1)
    return int(min(max(_CHUNK_BYTES / max(size, 1), 1), _MOST_ROWS))
