"""The connection on which statements run one after the other, each as if on a connection that was just opened.

Opening one takes longer than most statements: TLS, the password, the settings. So it is kept for a while and reset
before the next statement, which removes the variables, temporary tables and locks of the statement before. Only the
default database outlives a reset, and no statement can leave a database without entering another one.

A reset with all that must follow it takes four round trips. So it is omitted between two statements on tables that
neither set nor read session state, and that the leader ran with the same variables in the same database.

``LockWait`` lets a statement wait long for a lock of another session of the follower, and logs once which session holds
it. A statement that starts over loses its place in the queue for the lock and, if it has already copied the table, all
of that work: a server takes the lock that ends an ALTER only when the new table is ready.
"""

import logging
import re
import time
from contextlib import suppress
from functools import partial
from typing import Any

from cdc.consumer.errors import LOCK_WAIT, UNKNOWN_DATABASE, Interrupted, Refused, WaitedOut
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.session_variables import SessionVariables, kept, moment
from cdc.consumer.literals.values import identifier, quoted
from cdc.model.record import Record
from cdc.service.logs import event

__all__ = ["LockWait", "StatementConnection", "leaves_nothing"]

_LOG = logging.getLogger("cdc.consumer")
_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 10.0  # seconds before the first look at a waiting statement, and between two looks
_SHOWN = 3  # sessions named in the log line


class LockWait:
    """The lock waits of a statement, each for ``seconds`` at most; ``asking`` is a session to query, not the
    statement's own.

    ``held_by`` names the sessions that held the lock for which the statement was last seen waiting; empty if none was
    seen.
    """

    def __init__(self, *, seconds: int, asking: Session) -> None:
        self._asking = asking
        self._seconds = max(seconds, 1)  # the server's minimum
        self._next = _FIRST_SECONDS
        self._logged = False
        self.held_by = ""

    def watch(self, session: Session) -> None:
        """Watches the statement that the session runs next."""
        session.meanwhile = partial(self.look, session.thread_id)

    @property
    def settings(self) -> str:
        """The session variables that let it wait: for locks on definitions, and for locks on rows."""
        return f"lock_wait_timeout={self._seconds}, innodb_lock_wait_timeout={self._seconds}"

    def look(self, thread: int, waited: float) -> None:
        """Logs once that the statement of ``thread`` waits for a lock, and which sessions hold it; it has run for
        ``waited`` seconds.
        """
        if waited < self._next or self._asking.busy:
            return
        self._next = waited + _NEXT_SECONDS
        # A connection that is lost is reported by the statement that needs it.
        with suppress(Interrupted, Refused):
            state = self._state(thread)
            if not state.startswith("Waiting for"):
                return
            self.held_by = self._holders(thread)
            if not self._logged:
                self._logged = True
                event(
                    _LOG, "statement waits", level=logging.WARNING, state=state, held_by=self.held_by or "unknown",
                    seconds=self._seconds,
                )  # fmt: skip

    def given_up(self, error: Interrupted) -> Interrupted:
        """The ``error`` of the statement; if it was a wait, the error that names the sessions that held the lock."""
        if error.code != LOCK_WAIT:
            return error
        return WaitedOut(f"{error}, after {self._seconds} s{self.held_by and ': ' + self.held_by}", error.code)

    def _state(self, thread: int) -> str:
        """The statement's state, in the server's words. The server shows each account its own sessions."""
        rows = self._asking.rows(f"SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {thread}")
        return str(rows[0][0] or "") if rows else ""

    def _holders(self, thread: int) -> str:
        """The sessions that hold a lock for which the statement waits; empty if that cannot be found out."""
        try:
            rows = self._asking.rows(
                "SELECT DISTINCT they.PROCESSLIST_ID, they.PROCESSLIST_USER, they.PROCESSLIST_HOST, "
                "wanted.OBJECT_SCHEMA, wanted.OBJECT_NAME FROM performance_schema.threads we "
                "JOIN performance_schema.metadata_locks wanted ON wanted.OWNER_THREAD_ID = we.THREAD_ID "
                "AND wanted.LOCK_STATUS = 'PENDING' "
                "JOIN performance_schema.metadata_locks held ON held.OBJECT_TYPE = wanted.OBJECT_TYPE "
                "AND held.OBJECT_SCHEMA <=> wanted.OBJECT_SCHEMA AND held.OBJECT_NAME <=> wanted.OBJECT_NAME "
                "AND held.LOCK_STATUS = 'GRANTED' AND held.OWNER_THREAD_ID <> we.THREAD_ID "
                "JOIN performance_schema.threads they ON they.THREAD_ID = held.OWNER_THREAD_ID "
                f"WHERE we.PROCESSLIST_ID = {thread} ORDER BY 1 LIMIT {_SHOWN}"
            )
        except Refused:  # without SELECT on performance_schema
            return ""
        return ", ".join(
            f"connection {number} of {user}@{host} holds {'.'.join(filter(None, name)) or 'a lock on the server'}"
            for number, user, host, *name in rows
        )


_IDLE_SECONDS = 5.0
_TRUSTED_SECONDS = 10.0  # after this time, changed global values are read again
_ON_TABLES = frozenset({
    "CreateTable", "AlterTable", "DropTable", "RenameTable", "TruncateTable", "CreateIndex", "DropIndex",
    "MaintainTable",
})  # fmt: skip
# User variables, queries, an open transaction, and the functions that keep something in the session.
_OF_THE_SESSION = re.compile(
    r"@|\b(?:SELECT|TRANSACTION|TEMPORARY|LAST_INSERT_ID|\w*_LOCK|FOUND_ROWS|ROW_COUNT)\b", re.I
)
_State = tuple[str, dict[str, Any]]


def leaves_nothing(record: Record) -> bool:
    """Whether the statement neither changes nor reads anything that a session keeps from one statement to the next."""
    actions = {affect["action"] for affect in record.affects}
    return bool(actions) and actions <= _ON_TABLES and not _OF_THE_SESSION.search(record.query)


class StatementConnection:
    """A connection beside ``session``: opened when needed, and closed after a while without use."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: Session | None = None
        self._variables = SessionVariables()
        self._in_database = False
        self._used_at = self._reset_at = 0.0
        self._left: _State | None = None  # the state that the last statement ran with, if it left nothing behind

    def ready(self, record: Record, *, own: str, gtid: str) -> Session:
        """A session with the leader's variables and our ``own`` assignments, in which the statement runs under
        ``gtid``.

        Raises Interrupted or Refused; then it must be closed.
        """
        context = dict(record.context or {})
        state = own, kept(context)
        last = f"gtid_next={quoted(gtid)}"  # the last one: the next statement runs under this GTID
        known, self._left = self._left, None
        plain = leaves_nothing(record)
        session = self._again(", ".join([*moment(context), last])) if plain and known == state else None
        if session is None:
            session = self.fresh()
            self._reset_at = time.monotonic()
            if not self.enter(session, context.get("database", "")):
                session = self.opened()
            session.run([self._variables.assignment(session, context, own=own, last=last)])
        self._left = state if plain else None
        return session

    def _again(self, assignments: str) -> Session | None:
        """The session as it is with only these assignments; None if it must be reset."""
        self.rest()
        if self._own is None or not self._own.connected or time.monotonic() - self._reset_at > _TRUSTED_SECONDS:
            return None
        # If it was lost, or refuses them, it is reset or replaced.
        with suppress(Interrupted, Refused):
            self._own.run([f"SET SESSION {assignments}".encode()])
            return self._own
        return None

    def fresh(self) -> Session:
        """A session without any state except perhaps a default database. Raises Interrupted or Refused."""
        self.rest()
        if self._own is not None and self._own.connected:
            # One that was lost in the meantime is replaced: nothing has run on it since.
            with suppress(Interrupted, Refused):
                self._own.renew()
                return self._own
        return self.opened()

    def opened(self) -> Session:
        """A session on a new connection. Raises Interrupted or Refused."""
        self.close()
        self._in_database = False
        own = self._session.another()
        own.connect()
        if own.server != self._session.server:
            own.close()
            raise Interrupted("a new connection leads to another server than the one that has the lock")
        self._own, self._used_at = own, time.monotonic()
        return own

    def enter(self, session: Session, name: str) -> bool:
        """Makes ``name`` the default database of the session; False if there is none and a former one stays.

        The leader's session may have used one that is not replicated. Then the statement names its databases, or the
        server refuses it because no database is selected. Raises Interrupted or Refused.
        """
        if name:
            try:
                session.run([f"USE {identifier(name)}".encode()])
            except Refused as error:
                if error.code != UNKNOWN_DATABASE:
                    raise
            else:
                self._in_database = True
                return True
        return not self._in_database

    def used(self) -> None:
        """Notes that the statement has run, and left nothing that prevents using the connection again."""
        self._used_at = time.monotonic()

    def rest(self) -> None:
        """Closes the connection if it has not been used for a while; to be called now and then."""
        if self._own is not None and time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        """Ends the connection. This frees the GTID of a statement that did not run."""
        own, self._own, self._left = self._own, None, None
        if own is not None:
            own.close()
