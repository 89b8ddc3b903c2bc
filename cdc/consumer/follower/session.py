"""Our session on the follower: connect, the one lock, statements in packets, and what an error of the server means."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Self

import pymysql
from pymysql.constants import CLIENT, COMMAND

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.profile import Database
from cdc.consumer.follower.locks import SILENT_SECONDS, lock_name, outlast, take
from cdc.consumer.follower.socket_reader import Answers
from cdc.consumer.literals.row_sql_mode import STRICT
from cdc.consumer.server_errors import (
    DENIED,
    TRANSIENT,
    UNREACHABLE,
    Denied,
    Interrupted,
    Refused,
    Stopped,
)
from cdc.service.mysql_connection import connected

__all__ = ["LOCK_WAIT_SECONDS", "Denied", "Interrupted", "Refused", "Session", "Stopped", "ask"]

# Short waits, tried again: a wait that says nothing for long would look like a hang, and hear no signal.
LOCK_WAIT_SECONDS = 10
_SETUP = (
    f"SET SESSION sql_mode='{STRICT}', time_zone='+00:00', autocommit=0, transaction_isolation='READ-COMMITTED', "
    "foreign_key_checks=1, unique_checks=1, "
    f"innodb_lock_wait_timeout={LOCK_WAIT_SECONDS}, lock_wait_timeout={LOCK_WAIT_SECONDS}, "
    # What an administrator may have limited for everybody.
    "transaction_read_only=0, sql_big_selects=1, sql_select_limit=18446744073709551615"
)


# Reading: until the connection stands, after that ``_bear`` decides. Writing: the time for a whole packet.
_TIMEOUTS = {"read_timeout": 10, "write_timeout": 300}
_STOP_SECONDS, _LONG_SECONDS, _ANSWER_SECONDS = 2.0, 10.0, 3.0


class Session:
    """One connection, not connected at first, that can be connected anew. ``lock`` names whose lock it holds, if any.

    The lock lives and dies with the connection that applies, so that no connection applies without holding it.
    ``number`` is that of a connection beside the first one, which has a lock of its own.
    ``meanwhile`` is called while the server lets us wait (``Answers``); once ``stop`` is set a statement that takes
    long is given up. ``single``: the server takes one statement at a time, so that a text with several is refused.
    """

    def __init__(
        self,
        database: Database,
        *,
        lock: str | None = None,
        number: int = 0,
        meanwhile: Callable[[], bool] = lambda: False,
        stop: threading.Event | None = None,
        single: bool = False,
        schema: str = CHECKPOINT_DATABASE,
    ) -> None:
        self._database = database
        self.schema = schema
        self._single = single
        self._lock = lock
        self._place = number
        self._meanwhile = meanwhile
        self._stop = stop
        self._asked = 0.0
        self._connection: Any = None
        self._numbers: dict[str, int] = {}  # by which each server knows the connection, or knew the one before
        self._beside: dict[int, Session] = {}
        self._heard_at = 0.0
        self._sent = 0
        self.max_packet = 0
        self.version = 0
        self.server = ""  # its UUID: another one may answer at the same address, after a failover

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def another(self) -> "Session":
        """A session with the same server that is not connected, holds no lock and takes statements one by one.

        While it waits this one is kept: a statement may take longer than the server bears silence.
        """
        return Session(self._database, meanwhile=self.try_keep, stop=self._stop, single=True, schema=self.schema)

    def beside(self, number: int) -> "Session":
        """A session, not connected, to apply with beside this one, where ``number`` (1 to MOST_BESIDE) is no other's.

        When this one connects, it waits until those beside have ended: what was under way there is decided then.
        """
        session = Session(
            self._database, lock=self._lock, number=number, meanwhile=self._meanwhile, stop=self._stop,
            schema=self.schema,
        )  # fmt: skip
        self._beside[number] = session
        return session

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as we know."""
        return self._connection is not None

    @property
    def busy(self) -> bool:
        """Whether a packet was sent whose counts have not been received."""
        return self._sent > 0

    def connect(self) -> None:
        """Connect with the settings that literals and row counts rely on, and take the lock.

        Raises Interrupted where the server cannot be reached or another session holds the lock, Denied for a wrong
        password.
        """
        self.close()
        try:
            self._connection = connected(
                **self._database.settings() | _TIMEOUTS,
                # Matched rows, not changed ones: an update that changes nothing has found its row all the same.
                client_flag=CLIENT.FOUND_ROWS | (0 if self._single else CLIENT.MULTI_STATEMENTS),
                autocommit=False,
            )
        except (pymysql.MySQLError, OSError) as error:
            raise _meaning(error) from None
        self._connection._rfile = Answers(self._connection._sock, self._meanwhile, self._bear)
        try:
            self._set_up()
        except (Interrupted, Refused):
            # Half set up and without the lock it must not be taken for connected.
            self.close()
            raise

    def _set_up(self) -> None:
        self.run([_SETUP.encode(), f"SET SESSION wait_timeout={SILENT_SECONDS}".encode()])
        ((packet, version, self.server),) = self.rows("SELECT @@max_allowed_packet, VERSION(), @@server_uuid")
        self.max_packet = int(packet)
        # As executable comments have it: 90704 for 9.7.4.
        major, minor, patch = re.findall(r"\d+", version)[:3]
        self.version = int(major) * 10_000 + int(minor) * 100 + int(patch)
        if self._lock is not None:
            take(self, lock_name(self._lock, self._place), former=self._former(self.server))
            if self._place == 0:
                formers = {place: other._former(self.server) for place, other in self._beside.items()}
                outlast(self, self._lock, formers=formers)
        self._numbers[self.server] = self._connection.thread_id()

    def _former(self, server: str) -> int:
        """The number of our connection before this one, which means another one on another server; 0 for none."""
        return self._numbers.get(server, 0)

    def keep(self) -> None:
        """Say something where the server has long heard nothing: to be called often while there is nothing to do.

        Raises Interrupted where the connection is lost.
        """
        if not self._sent and time.monotonic() - self._heard_at > SILENT_SECONDS / 4:
            self.run([b"DO 0"])

    def try_keep(self) -> bool:
        """``keep``, but a lost connection shows only when it is used next. False: there is no more of this to do."""
        if self.connected:
            with suppress(Interrupted, Refused):
                self.keep()
        return False

    def close(self) -> None:
        """End the connection, and those beside it; the server rolls back what is not committed."""
        for other in self._beside.values():
            other.close()
        self._sent = 0
        if self._connection is not None:
            connection, self._connection = self._connection, None
            if connection.open:
                connection.close()

    def _bear(self, waited: float) -> None:
        """Raises Interrupted where it makes no sense to wait on for the server, after so many seconds without a word.

        It says nothing while it is at work, be it for hours: a new connection tells whether it is there at all.
        """
        if waited > _STOP_SECONDS and self._stop is not None and self._stop.is_set():
            raise Stopped("told to stop while a statement runs")
        self._asked = min(self._asked, waited)
        if waited - self._asked > _LONG_SECONDS:
            self._asked = waited
            if not _responds(self._database):
                raise Interrupted(f"no answer for {waited:.0f} s, nor to a new connection")

    def send(self, packet: Sequence[bytes]) -> None:
        """Have the statements of one packet executed; ``receive`` waits for it. Raises Interrupted or Refused."""
        self._check_idle()
        try:
            # What query() does, but for the waiting: in the meantime the next packet can be made.
            self._connection._execute_command(COMMAND.COM_QUERY, b";".join(packet))
        except (pymysql.MySQLError, OSError) as error:
            raise _meaning(error) from None
        self._sent = len(packet)
        self._heard_at = time.monotonic()

    def receive(self) -> list[int]:
        """The number of rows that each statement of the packet sent last has matched; nothing where it is known.

        Raises Interrupted or Refused.
        """
        counts: list[int] = []
        sent, self._sent = self._sent, 0
        try:
            for _ in range(sent):
                counts.append(self._connection._read_query_result())
        except (pymysql.MySQLError, OSError) as error:
            raise _meaning(error) from None
        return counts

    def run(self, packet: Sequence[bytes]) -> list[int]:
        """``send`` and ``receive``."""
        if self._single and len(packet) > 1:
            return [count for statement in packet for count in self.run([statement])]
        self.send(packet)
        return self.receive()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises Interrupted or Refused."""
        self._check_idle()
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(sql)
                return list(cursor.fetchall())
        except (pymysql.MySQLError, OSError) as error:
            raise _meaning(error) from None

    def _check_idle(self) -> None:
        if self._sent:
            raise RuntimeError("the counts of a packet have not been received")

    def commit(self) -> None:
        """Commit. Raises Interrupted where it is not known whether the commit came through."""
        self.run([b"COMMIT"])

    def reset(self, *, savepoint: str = "") -> None:
        """Roll back, to a savepoint if need be, and put the session's variables to where they are at a start."""
        self.run([f"ROLLBACK TO SAVEPOINT {savepoint}".encode() if savepoint else b"ROLLBACK", _SETUP.encode()])


def ask(database: Database, *, seconds: float) -> None:
    """Ask the server something, over a connection of its own. Raises Interrupted or Refused without a timely answer."""
    limits = {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
    try:
        with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (pymysql.MySQLError, OSError) as error:
        raise _meaning(error) from None


def _responds(database: Database) -> bool:
    """Whether the server answers a new connection, with an error or without."""
    try:
        ask(database, seconds=_ANSWER_SECONDS)
    except Interrupted as error:
        return error.code not in UNREACHABLE
    except Refused:
        pass
    return True


def _meaning(error: Exception) -> Interrupted | Refused:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if code in DENIED:
        return Denied(code, text)
    # pymysql reports a connection that is already closed as InterfaceError 0.
    if code in TRANSIENT or isinstance(error, (OSError, pymysql.InterfaceError)):
        return Interrupted(
            f"{text or 'the connection is closed'} (MySQL error {code})" if code else text or repr(error), code
        )
    return Refused(code, text)
