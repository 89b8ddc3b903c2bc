"""Our session on the follower: connect, the one lock, statements in packets, and what an error of the server means."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Self

import pymysql
from pymysql.constants import CLIENT, COMMAND

from cdc.consumer.answers import Answers
from cdc.profile import Database

__all__ = ["LAX", "STRICT", "Denied", "Interrupted", "Refused", "Session", "ask", "lock_name"]

# Numbers: MySQL manual, "Server Error Message Reference" and "Client Error Message Reference".
_TRANSIENT = frozenset({
    1021, 1114,  # disk or table full: space may be made
    1040, 1041, 1203,  # too many connections, out of memory
    1053, 1077, 1079, 1152, 1158, 1159, 1160, 1161, 1184, 1927, 4031,  # shutdown, connection lost
    1205, 1213, 3572, 3024,  # lock wait, deadlock, statement timeout
    1290, 1836,  # the server is read-only for now
    3100, 3101,  # a plugin (group replication) refused the commit
    2002, 2003, 2006, 2013, 2055,
})  # fmt: skip
_DENIED = frozenset({1044, 1045, 1698, 1142, 1143, 1227, 1370, 3118, 3159, 1862})
_LOCK_SECONDS = 5  # the server may take a moment to see that a killed consumer is gone
_SQL_MODE = "STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_BACKSLASH_ESCAPES"
# The error value of an ENUM, which strict mode takes for a mistake, can be stored only so.
STRICT = f"SET SESSION sql_mode='{_SQL_MODE}'".encode()
LAX = f"SET SESSION sql_mode='{_SQL_MODE.partition(',')[2]}'".encode()
_SETUP = (
    f"SET SESSION sql_mode='{_SQL_MODE}', time_zone='+00:00', autocommit=0, transaction_isolation='READ-COMMITTED', "
    "foreign_key_checks=1, unique_checks=1, "
    # Short waits, tried again: a wait that says nothing for long would look like a hang, and hear no signal.
    "innodb_lock_wait_timeout=10, lock_wait_timeout=10"
)


class Interrupted(Exception):
    """The server or the connection stopped a statement that may well succeed later; the transaction is void."""


class Refused(Exception):
    """The server refuses a statement: ``code`` and ``text`` are its error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.text} (MySQL error {self.code})"


class Denied(Refused):
    """The server refuses because the account, its password or its grants do not allow it."""


class Session:
    """One connection, not connected at first, that can be connected anew. ``lock`` names the lock it holds, if any.

    The lock lives and dies with the connection that applies, so that no connection applies without holding it.
    ``meanwhile`` is called while the server lets us wait (``Answers``).
    """

    def __init__(
        self, database: Database, *, lock: str | None = None, meanwhile: Callable[[], bool] | None = None
    ) -> None:
        self._database = database
        self._lock = lock
        self._meanwhile = meanwhile
        self._connection: Any = None
        self._sent = 0
        self.max_packet = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        """Whether there is a connection, as far as we know."""
        return self._connection is not None

    def connect(self) -> None:
        """Connect with the settings that literals and row counts rely on, and take the lock.

        Raises Interrupted where the server cannot be reached or another session holds the lock, Denied for a wrong
        password.
        """
        self.close()
        try:
            self._connection = pymysql.connect(
                **self._database.settings(),
                # Matched rows, not changed ones: an update that changes nothing has found its row all the same.
                client_flag=CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
                autocommit=False,
            )
        except (pymysql.MySQLError, OSError) as error:
            raise _meaning(error) from None
        if self._meanwhile is not None:
            self._connection._rfile = Answers(self._connection._sock, self._meanwhile)
        try:
            self._set_up()
        except (Interrupted, Refused):
            # Half set up and without the lock it must not be taken for connected.
            self.close()
            raise

    def _set_up(self) -> None:
        self.run([_SETUP.encode()])
        self.max_packet = int(self.rows("SELECT @@max_allowed_packet")[0][0])
        if self._lock is None:
            return
        if self.rows(f"SELECT GET_LOCK('{lock_name(self._lock)}', {_LOCK_SECONDS})") != [(1,)]:
            raise Interrupted("another consumer is at work on this follower (it holds the lock)")

    def close(self) -> None:
        """End the connection; the server rolls back what is not committed."""
        self._sent = 0
        if self._connection is not None:
            connection, self._connection = self._connection, None
            if connection.open:
                connection.close()

    def send(self, packet: Sequence[bytes]) -> None:
        """Have the statements of one packet executed; ``receive`` waits for it. Raises Interrupted or Refused."""
        self._check_idle()
        try:
            # What query() does, but for the waiting: in the meantime the next packet can be made.
            self._connection._execute_command(COMMAND.COM_QUERY, b";".join(packet))
        except (pymysql.MySQLError, OSError) as error:
            raise _meaning(error) from None
        self._sent = len(packet)

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
        with pymysql.connect(**database.settings() | limits) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (pymysql.MySQLError, OSError) as error:
        raise _meaning(error) from None


def lock_name(name: str) -> str:
    """What the server calls the lock ``name``."""
    # Lock names have 64 characters at most and ignore case: a digest has neither trouble.
    return "cdc-consumer:" + hashlib.sha256(name.encode()).hexdigest()[:48]


def _meaning(error: Exception) -> Interrupted | Refused:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    if code in _DENIED:
        return Denied(code, text)
    # pymysql reports a connection that is already closed as InterfaceError 0.
    if code in _TRANSIENT or isinstance(error, (OSError, pymysql.InterfaceError)):
        return Interrupted(
            f"{text or 'the connection is closed'} (MySQL error {code})" if code else text or repr(error)
        )
    return Refused(code, text)
