"""The connection on which statements run one after the other, each as if on a connection that was just opened.

Opening one takes longer than most statements: TLS, the password, the settings. So it is kept for a while and reset
before the next statement, which leaves the next one no variable, temporary table or lock of the one before it. Only the
default database outlives a reset, and no statement can leave a database without entering another one.

A reset with all that must follow it takes four answers of the server. So there is none between two statements on tables
that neither set nor ask the session for anything, and that the leader ran with the same variables in the same database.
"""

import re
import time
from contextlib import suppress
from typing import Any

from cdc.consumer.errors import UNKNOWN_DATABASE, Interrupted, Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.follower.session_variables import SessionVariables, kept, moment
from cdc.consumer.literals.values import identifier, quoted
from cdc.model.record import Record

__all__ = ["StatementConnection", "leaves_nothing"]

_IDLE_SECONDS = 5.0
_TRUSTED_SECONDS = 10.0  # after which global values that an administrator has changed meanwhile count
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
    """Whether the statement neither changes nor asks for anything that a session keeps from one to the next."""
    actions = {affect["action"] for affect in record.affects}
    return bool(actions) and actions <= _ON_TABLES and not _OF_THE_SESSION.search(record.query)


class StatementConnection:
    """Opened over ``session`` when it is needed, and closed after a while in which it was not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: Session | None = None
        self._variables = SessionVariables()
        self._in_database = False
        self._used_at = self._reset_at = 0.0
        self._left: _State | None = None  # what the last statement ran with, where it has left nothing

    def ready(self, record: Record, *, own: str, gtid: str) -> Session:
        """A session as the leader's was, with our ``own`` assignments, in which the statement runs under ``gtid``.

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
        """The session as it is but for these assignments, if that can be."""
        self.rest()
        if self._own is None or not self._own.connected or time.monotonic() - self._reset_at > _TRUSTED_SECONDS:
            return None
        # Where it was lost, or does not take them, it is reset or replaced.
        with suppress(Interrupted, Refused):
            self._own.run([f"SET SESSION {assignments}".encode()])
            return self._own
        return None

    def fresh(self) -> Session:
        """A session without any state but perhaps a default database. Raises Interrupted or Refused."""
        self.rest()
        if self._own is not None and self._own.connected:
            # One that was lost in the meantime is replaced: nothing has run on it since.
            with suppress(Interrupted, Refused):
                self._own.renew()
                return self._own
        return self.opened()

    def opened(self) -> Session:
        """A session of a new connection. Raises Interrupted or Refused."""
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
        """Make ``name`` the default database of the session; False where there is none and a former one is left.

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
        """The statement has run, and left nothing that would keep the connection from being used again."""
        self._used_at = time.monotonic()

    def rest(self) -> None:
        """Close the connection if it has not been used for a while: to be called now and then."""
        if self._own is not None and time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        """End the connection. This frees the GTID of a statement that did not run."""
        own, self._own, self._left = self._own, None, None
        if own is not None:
            own.close()
