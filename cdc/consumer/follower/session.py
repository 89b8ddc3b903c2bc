"""Implements a session on the follower: sends packets of SQL, and receives the counts of matched rows and the rows of
results.

The module also checks whether the server answers a new connection, translates the server's errors, and reads from the
socket without blocking for long.

A server can answer any statement with a request for any file of the client. This program never opens a file: the data
of a LOAD DATA LOCAL come from memory, and the file name in the request is ignored. If the server requests a file for
another statement, pymysql refuses.
"""

import re
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Self
from weakref import WeakSet

import pymysql
from pymysql.constants import CLIENT, COMMAND

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.profile import Database
from cdc.consumer.errors import UNREACHABLE, Interrupted, Refused, Stopped, server_error
from cdc.consumer.follower.address import FollowerAddress
from cdc.consumer.follower.locks import SILENT_SECONDS, lock_name, outlast, take
from cdc.consumer.literals.json_documents import EXACT
from cdc.consumer.literals.own_variables import own_variables
from cdc.errors import Disconnected, UserError
from cdc.service.mysql_connection import connected

__all__ = [
    "LOCK_WAIT_SECONDS",
    "NOT_TAKEN",
    "SWITCH_ON",
    "SentPacket",
    "Session",
    "SocketReader",
    "ask",
    "require_mysql",
    "responds",
    "stored_rows",
    "translated",
    "version_number",
    "version_text",
]

_RECEIVED_BYTES = 65_536
_POLL_SECONDS = 0.1


class SocketReader:
    """Replaces the file object from which a pymysql connection reads.

    While nothing arrives, ``waiting(seconds)`` is called several times a second, with the duration of the wait so far.
    To end the wait, it may raise any exception except OSError, which pymysql would translate.
    """

    def __init__(self, connected: socket.socket, waiting: Callable[[float], None]) -> None:
        self._socket = connected
        self._waiting = waiting
        self._buffer = bytearray()
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    def read(self, size: int) -> bytes:
        """Reads ``size`` bytes, or fewer if the connection ends. Raises OSError, and the exceptions of ``waiting``."""
        while len(self._buffer) < size:
            self._wait()
            data = self._socket.recv(_RECEIVED_BYTES)
            if not data:
                break
            self._buffer += data
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def arrived(self, seconds: float) -> bool:
        """Whether data can be read, or the connection has ended; waits at most ``seconds`` for that."""
        return bool(self._buffer) or self._readable(seconds)

    def abort(self) -> None:
        """Closes the socket at once, so that nothing more is sent or received over it."""
        self._socket.close()

    def close(self) -> None:
        """Does nothing, because the connection closes its socket itself."""

    def _wait(self) -> None:
        started = time.monotonic()
        while not self._readable(_POLL_SECONDS):
            self._waiting(time.monotonic() - started)

    def _readable(self, seconds: float) -> bool:
        # The TLS layer may have read data from the socket that it has not returned yet. poll does not report such data.
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        return bool(self._poll.poll(seconds * 1000))


_PROBE_SECONDS = 3.0
_OLDEST = 8


def ask(database: Database, *, seconds: float) -> None:
    """Executes a query over a new connection. Raises Interrupted or Refused if no result arrives within ``seconds``."""
    limits = {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
    try:
        with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Disconnected as error:  # raised if the command that prints the password fails
        raise Interrupted(str(error)) from None
    except (pymysql.MySQLError, OSError) as error:
        raise translated(error) from None


def responds(database: Database) -> bool:
    """Whether the server answers a new connection; an error is an answer, too."""
    try:
        ask(database, seconds=_PROBE_SECONDS)
    except Interrupted as error:
        return error.code not in UNREACHABLE
    except Refused:
        pass
    return True


def translated(error: Exception) -> Interrupted | Refused:
    """Translates an error of pymysql or of the socket into an error of this program."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    # pymysql raises InterfaceError 0 if the connection is already closed.
    failed = isinstance(error, (OSError, pymysql.InterfaceError))
    return server_error(code, text or ("" if code else repr(error)), connection_failed=failed)


def require_mysql(version: str, *, where: str) -> None:
    """Raises UserError if a server with this ``VERSION()`` is not MySQL, or is too old."""
    if "mariadb" in version.lower() or int(re.findall(r"\d+", version)[0]) < _OLDEST:
        raise UserError(
            f"the follower is {version}",
            code="CDC-FOLLOWER-SETTINGS",
            where=where,
            hint="MySQL 8.0 or newer is needed, not MariaDB",
        )


def version_text(number: int) -> str:
    """Formats a ``version_number`` as text, such as 9.7.4."""
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


def version_number(version: str) -> int:
    """Converts the version of a server to a number in the form of executable comments: 90704 for 9.7.4."""
    major, minor, patch = re.findall(r"\d+", version)[:3]
    return int(major) * 10_000 + int(minor) * 100 + int(patch)


# Seconds. Each wait for a lock is short and then repeated, because the consumer can neither log nor react to a signal
# during a wait.
LOCK_WAIT_SECONDS = 10
_SETUP = f"SET SESSION {own_variables(lock_wait_seconds=LOCK_WAIT_SECONDS)}"
_KEPT = f", wait_timeout={SILENT_SECONDS}".encode()
# The read timeout applies only until the connection is set up; afterwards ``_check_wait`` limits the waits. The write
# timeout applies to a whole packet.
_TIMEOUTS = {"read_timeout": 10, "write_timeout": 300}
_STOP_SECONDS, _LONG_SECONDS = 2.0, 10.0
_RESET_CONNECTION = 0x1F  # the command COM_RESET_CONNECTION, which pymysql does not define
# While a statement runs for hours, a firewall may forget the silent connection, and the reply would never arrive.
# Keepalive packets prevent this.
_KEEPALIVE = {socket.TCP_KEEPIDLE: 60, socket.TCP_KEEPINTVL: 15, socket.TCP_KEEPCNT: 4}

Data = Mapping[int, bytes]


class Session:
    """A connection to the follower. ``connect`` opens it, and opens it again after it was lost.

    With a ``FollowerAddress``, each ``connect`` first finds the server that is the follower now.

    If ``lock`` is the name of a leader, the session acquires the lock of that leader's consumer; the server releases
    the lock when the connection ends. ``number`` is 0, or the number of an additional connection, which has its own
    lock. Once ``stop`` is set, statements that take long are interrupted. A session with a ``parent`` executes single
    statements, because the server refuses several statements in one text; while the session waits, it keeps the
    parent's connection alive. ``meanwhile`` is called several times a second while a statement runs, with the number of
    seconds since the statement began.
    """

    def __init__(
        self,
        database: Database | FollowerAddress,
        *,
        lock: str | None = None,
        number: int = 0,
        stop: threading.Event | None = None,
        parent: "Session | None" = None,
        schema: str = CHECKPOINT_DATABASE,
    ) -> None:
        self.address = database if isinstance(database, FollowerAddress) else FollowerAddress(database)
        self.schema = schema
        self._parent = parent
        self._first = parent  # the session from which this one was created
        self._lock = lock
        self._number = number
        self._stop = stop
        self.meanwhile: Callable[[float], None] = lambda _: None
        self._probed_at = 0.0  # the second of the present wait at which a new connection was last tried
        self._connection: Any = None
        self._replies: SocketReader | None = None
        # maps the UUID of each server to the id of the newest connection to that server
        self._thread_ids: dict[str, int] = {}
        self._additional: dict[int, Session] = {}
        self._others: WeakSet[Session] = WeakSet()
        self.connections = 0  # the number of connections that were opened; the server's ids of them may come again
        self._last_sent_at = 0.0
        self._sent: SentPacket | None = None
        self._waits_since = 0.0  # the time.monotonic() at which the wait for the next reply began
        self.local_infile = False  # whether the server accepts LOAD DATA LOCAL
        self.max_packet = 0
        self.changes_doubles = False  # whether the server's JSON parser changes some doubles
        self.binlog_room = 0  # bytes of records that certainly fit into one transaction of the server's binlog
        # the assignment of binlog_format that makes the server log rows; empty if the server logs rows anyway
        self._row_format = b""
        self.version = 0
        self.folds_names = False  # whether the server has lower_case_table_names = 1
        self.assigns_gtids = True  # whether the user may set gtid_next, and other session variables that need a right
        self.server = ""  # the server's UUID; after a failover another server answers at the same address

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def another(self) -> "Session":
        """Creates a session with the same server. It is not connected yet, acquires no lock, and executes single
        statements.

        While the new session waits, this session is kept alive, because a statement may run longer than the server
        tolerates an idle connection. The new session ends when this session ends.
        """
        other = self._single()
        other.assigns_gtids = self.assigns_gtids
        self._others.add(other)
        return other

    def _single(self) -> "Session":
        return Session(self.address, stop=self._stop, parent=self, schema=self.schema)

    def additional(self, number: int) -> "Session":
        """Creates a session that will apply batches in parallel with this session; it is not connected yet. ``number``
        is 1 to MOST_ADDITIONAL.

        When this session connects, it waits until the server has ended all additional sessions, because only then is it
        known which of their transactions have committed.
        """
        session = Session(self.address, lock=self._lock, number=number, stop=self._stop, schema=self.schema)
        session._first = self
        self._additional[number] = session
        return session

    def settings(self) -> dict[str, Any]:
        """Returns the arguments for another connection to the server's address. Raises UserError."""
        return self.database.settings()

    @property
    def database(self) -> Database:
        """The server of the newest connection, or the first one to try."""
        return self.address.database

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as this program knows."""
        return self._connection is not None

    @property
    def thread_id(self) -> int:
        """The id of the connection on the server."""
        return int(self._connection.thread_id())

    @property
    def busy(self) -> bool:
        """Whether a packet was sent whose row counts were not received yet."""
        return self._sent is not None

    @property
    def silent_seconds(self) -> float:
        """The time since a packet or a query was last sent; 0 without a connection."""
        return time.monotonic() - self._last_sent_at if self.connected else 0.0

    def connect(self) -> None:
        """Connects, sets the session variables on which literals and row counts rely, and acquires the lock.

        Raises Interrupted if the server cannot be reached, is another one than that of the session from which this one
        was created, or another session holds the lock; Denied for a wrong password, UserError for a server that is not
        MySQL.
        """
        self.close()
        if self._parent is None and self._number == 0:
            self.address.find()  # the other connections lead to the same server
        try:
            self._connection = connected(
                **self.database.settings() | _TIMEOUTS,
                # With FOUND_ROWS, the server counts matched rows instead of changed rows, so an UPDATE that changes
                # nothing still counts its row. LOCAL_FILES is set here instead of pymysql's ``local_infile``, because
                # only data from memory are sent (``SentPacket``), never files.
                client_flag=CLIENT.FOUND_ROWS | (0 if self._parent else CLIENT.MULTI_STATEMENTS | CLIENT.LOCAL_FILES),
                autocommit=False,
            )
        except Disconnected as error:  # raised if the command that prints the password fails
            raise Interrupted(str(error)) from None
        except (pymysql.MySQLError, OSError) as error:
            raise translated(error) from None
        self.connections += 1
        for option, value in _KEEPALIVE.items():
            self._connection._sock.setsockopt(socket.IPPROTO_TCP, option, value)
        self._connection._rfile = self._replies = SocketReader(self._connection._sock, self._check_wait)
        try:
            self._set_up()
        except (Interrupted, Refused) as error:
            # A connection that lacks settings or the lock is closed, so that it does not count as connected.
            try:
                if isinstance(error, Refused):
                    self._require_mysql()
            finally:
                self.close()
            raise

    def renew(self) -> None:
        """Resets the connection to the state of a new connection, except that the default database is kept.

        The server rolls back the open transaction, drops temporary tables and sets all session variables to their
        global values. Raises Interrupted or Refused.
        """
        self._check_idle()
        try:
            self._connection._execute_command(_RESET_CONNECTION, b"")
            self._connection.next_result()
        except (pymysql.MySQLError, OSError) as error:
            raise translated(error) from None
        self._last_sent_at = time.monotonic()
        # pymysql sends SET NAMES over a new connection, too, so it is repeated here.
        self.run([b"SET NAMES utf8mb4, " + _SETUP.removeprefix("SET ").encode() + _KEPT + self._row_format])

    def _set_up(self) -> None:
        # All names in statements are qualified. Still, without a default database the server refuses an UPDATE that
        # joins a JSON_TABLE.
        default = [] if self._parent else [b"USE information_schema"]
        self.run([_SETUP.encode() + _KEPT, *default])
        what = "@@max_allowed_packet, VERSION(), @@server_uuid, @@GLOBAL.local_infile"
        what += ", @@GLOBAL.max_binlog_cache_size, @@binlog_format='ROW'"
        row = self.rows(f"SELECT {what}, {EXACT}, @@lower_case_table_names")[0]
        self.max_packet, self.version, self.server = int(row[0]), version_number(row[1]), row[2]
        self.local_infile, self.binlog_room, self.changes_doubles = bool(row[3]), int(row[4]) // 2, not row[6]
        self.folds_names = int(row[7]) == 1
        if self._first is not None and self._first.connected and self._first.server != self.server:
            # The address may lead to another server by now, while the first connection still lives.
            raise Interrupted("a new connection leads to another server than the one that has the lock")
        # binlog_format is set only if needed, because newer servers warn about it. Setting it also needs a privilege
        # that a user who only reads the status lacks.
        writes = self._lock is not None or self._parent is not None
        self._row_format = b", binlog_format='ROW'" if writes and not row[5] else b""
        if self._row_format:
            self.run([b"SET SESSION" + self._row_format[1:]])
        if self._lock is not None:
            take(self, lock_name(self._lock, self._number), former=self._former(self.server))
            if self._number == 0:
                formers = {number: other._former(self.server) for number, other in self._additional.items()}
                outlast(self, self._lock, formers=formers)
        self._thread_ids[self.server] = self._connection.thread_id()

    def _require_mysql(self) -> None:
        """Raises UserError unless the server is MySQL 8.0 or newer: others might not know the session variables."""
        require_mysql(str(self.rows("SELECT VERSION()")[0][0]), where=str(self.database))

    def _former(self, server: str) -> int:
        """Returns the id of this session's previous connection to the server with this UUID; 0 if there was none. A
        connection id means nothing on another server.
        """
        return self._thread_ids.get(server, 0)

    def keep(self) -> None:
        """Sends a statement if nothing was sent to the server for long. Must be called often while there is nothing to
        do.

        Raises Interrupted if the connection is lost.
        """
        if not self._sent and time.monotonic() - self._last_sent_at > SILENT_SECONDS / 4:
            self.run([b"DO 0"])

    def try_keep(self) -> None:
        """Calls ``keep``, but ignores a lost connection, which the next statement will report."""
        if self.connected:
            with suppress(Interrupted, Refused):
                self.keep()

    def close(self) -> None:
        """Closes this connection, and the sessions that were created from this session; the server rolls back open
        transactions."""
        for other in (*self._additional.values(), *self._others):
            other.close()
        self._sent = None
        if self._connection is not None:
            connection, self._connection, self._replies = self._connection, None, None
            if connection.open:
                connection.close()

    def _check_wait(self, waited: float) -> None:
        """Raises Interrupted if it is useless to wait longer than ``waited`` seconds for a reply.

        A statement may run for hours, so a new connection is tried from time to time, to see if the server still works.
        """
        if self._parent is not None:
            self._parent.try_keep()
        self.meanwhile(waited)
        if waited > _STOP_SECONDS and self._stop is not None and self._stop.is_set():
            raise Stopped("stopped while a statement was running")
        self._probed_at = min(self._probed_at, waited)
        if waited - self._probed_at > _LONG_SECONDS:
            self._probed_at = waited
            if not responds(self.database):
                raise Interrupted(f"no answer for {waited:.0f} s, nor to a new connection")

    def send(self, packet: Sequence[bytes], loads: Data | None = None) -> None:
        """Sends the statements of one packet without waiting for replies; ``receive`` waits for them. Raises
        Interrupted or Refused.

        ``loads`` maps the index of each LOAD DATA LOCAL among the statements to its data. The server requests the data
        of a LOAD DATA LOCAL once it has executed all statements before it; the data are sent while the session waits
        for replies.
        """
        self._check_idle()
        try:
            # This is the first half of pymysql's query(), so that the next packet can be built while the server
            # executes this packet. pymysql slices the memoryview without copying.
            self._connection._execute_command(COMMAND.COM_QUERY, memoryview(b";".join(packet)))
        except (pymysql.MySQLError, OSError) as error:
            raise translated(error) from None
        self._last_sent_at = self._waits_since = time.monotonic()
        self._sent = SentPacket(self._connection, len(packet), loads or {}, max_packet=self.max_packet)

    def fed(self, seconds: float) -> bool:
        """Whether the server has received all data of the last packet; waits at most ``seconds`` for the server."""
        while self._sent is not None and not self._sent.fed:
            if not self._next_reply(self._sent, seconds):
                return False
        return True

    def answered(self, seconds: float) -> bool:
        """Whether ``receive`` can return without waiting; waits at most ``seconds`` for each reply. While the answer is
        no, the caller must call again: each call also checks whether the server still works, and whether the program
        must stop.
        """
        while self._sent is not None and not self._sent.complete:
            if not self._next_reply(self._sent, seconds):
                return False
        return True

    def _next_reply(self, sent: "SentPacket", seconds: float) -> bool:
        """Reads the next reply if it arrives within ``seconds``. ``receive`` will raise the errors that occur here."""
        assert self._replies is not None
        if self._replies.arrived(seconds):
            sent.step()
            self._waits_since = time.monotonic()
            return True
        try:
            self._check_wait(time.monotonic() - self._waits_since)
        except Interrupted as error:
            # The socket is closed, as pymysql does. Otherwise the outstanding reply might be mistaken for the reply to
            # another statement. Also, closing the connection later would block if the server is unreachable, because
            # pymysql first sends a last message.
            self._replies.abort()
            sent.failure = error
            return True
        return False

    def receive(self) -> list[int]:
        """Waits for the replies to the last packet; returns the number of rows that each statement has matched, or an
        empty list if no packet is pending.

        Raises Interrupted or Refused.
        """
        sent, self._sent = self._sent, None
        return sent.receive() if sent is not None else []

    def run(self, packet: Sequence[bytes]) -> list[int]:
        """Sends the packet and waits for the row counts: ``send`` and ``receive``."""
        if self._parent is not None and len(packet) > 1:
            return [count for statement in packet for count in self.run([statement])]
        self.send(packet)
        return self.receive()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Executes a query and returns its rows. Raises Interrupted or Refused."""
        self._check_idle()
        self._last_sent_at = time.monotonic()
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except (pymysql.MySQLError, OSError) as error:
            raise translated(error) from None

    def _check_idle(self) -> None:
        if self._sent:
            raise RuntimeError("the counts of a packet have not been received")

    def commit(self) -> None:
        """Commits the transaction. Raises Interrupted if it is not known whether the transaction has committed."""
        self.run([b"COMMIT"])

    def reset(self, *, savepoint: str = "") -> None:
        """Rolls back the transaction, or rolls it back to ``savepoint``. Sets the session variables to their values
        after connecting.
        """
        self.run([f"ROLLBACK TO SAVEPOINT {savepoint}".encode() if savepoint else b"ROLLBACK", _SETUP.encode()])


NOT_TAKEN = "the follower does not accept LOAD DATA LOCAL: inserting many rows costs twice as much CPU"
SWITCH_ON = "on the follower: SET PERSIST local_infile = ON, then start the consumer again"
_CHUNK = 1 << 16


class SentPacket:
    """A packet that was sent over the pymysql ``connection``; ``statements`` is its number of statements. The object
    sends the data that the server requests, and receives the row counts.

    ``failure`` is the exception after which no more replies arrive. Only the caller of ``receive`` knows what the
    exception means, because the packet may contain a COMMIT that failed.
    """

    def __init__(self, connection: Any, statements: int, loads: Mapping[int, bytes], *, max_packet: int) -> None:
        self._connection = connection
        self._statements = statements
        self._loads = loads
        self._asked_for = deque(sorted(loads))  # the indexes of statements whose data the server has not requested yet
        self._chunk = min(_CHUNK, max_packet - 1)
        self._counts: list[int] = []
        self.failure: Interrupted | Refused | None = None

    @property
    def fed(self) -> bool:
        """Whether the server has received all data, or will request no more data."""
        return not self._asked_for or self.failure is not None

    @property
    def complete(self) -> bool:
        """Whether all replies have arrived."""
        return len(self._counts) == self._statements or self.failure is not None

    def step(self) -> None:
        """Reads the next reply. It is the row count of a statement, or a request for the statement's data, which are
        then sent."""
        try:
            if self._asked_for and self._asked_for[0] == len(self._counts):
                self._send(self._loads[self._asked_for.popleft()])
                return
            index, count = len(self._counts), self._connection.next_result()
            self._counts.append(stored_rows(self._connection._result) if index in self._loads else count)
        except (Interrupted, Refused) as error:
            self.failure = error
        except (pymysql.MySQLError, OSError) as error:
            self.failure = translated(error)

    def receive(self) -> list[int]:
        """Waits for the replies. Returns for each statement the number of rows that it has matched, or, for LOAD DATA,
        the number of rows that it has stored unchanged.

        Raises Interrupted or Refused.
        """
        while not self.complete:
            self.step()
        if self.failure is not None:
            raise self.failure
        return self._counts

    def _send(self, data: bytes) -> None:
        # pymysql does the same before it reads a reply, because after an error a packet has no more results.
        self._connection._result = None
        if not self._connection._read_packet().is_load_local_packet():
            raise OSError("the server does not ask for the rows of a LOAD DATA LOCAL")
        for begin in range(0, len(data), self._chunk):
            self._connection.write_packet(data[begin : begin + self._chunk])
        self._connection.write_packet(b"")  # an empty packet ends the data


def stored_rows(result: Any) -> int:
    """Returns the number of rows that a LOAD DATA LOCAL has stored unchanged, read from pymysql's ``result``.

    With LOCAL, errors are only warnings: one for each changed value, and one for each row that was left out because its
    key exists. A warning does not identify its row, so for each warning one row is subtracted. If a row has several
    warnings, the result is too low; this is safe, since the caller treats any difference as a failure.
    """
    # The message is a length and a text. In all languages the text ends with four numbers: records, deleted, skipped,
    # warnings.
    counts = list(map(int, re.findall(rb"[0-9]+", bytes(result.message or b""))[-4:]))
    if len(counts) < 4:
        return 0
    records, *others = counts
    rows = min(records, int(result.affected_rows))
    return max(rows - max(int(result.warning_count), *others), 0)
