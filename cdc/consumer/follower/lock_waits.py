"""Lets a statement wait long for a lock of another session of the follower, and tells once which session holds it.

A statement that starts over loses its place in the queue for the lock and, if it has already copied the table, all of
that work: a server takes the lock that ends an ALTER only when the new table is ready.
"""

import logging
from contextlib import suppress
from functools import partial

from cdc.consumer.errors import LOCK_WAIT, Interrupted, Refused, WaitedOut
from cdc.consumer.follower.session import Session
from cdc.service.logs import event

__all__ = ["LockWait"]

_LOG = logging.getLogger("cdc.consumer")
_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 10.0  # until it is asked what a statement waits for, and between two questions
_SHOWN = 3  # sessions


class LockWait:
    """The waits of a statement, each for ``seconds`` at most; ``asking`` is another session than its own.

    ``held_by`` says which sessions held the lock that the statement was last seen waiting for; empty if none was seen.
    """

    def __init__(self, *, seconds: int, asking: Session) -> None:
        self._asking = asking
        self._seconds = max(seconds, 1)  # the least that the server takes
        self._next = _FIRST_SECONDS
        self._logged = False
        self.held_by = ""

    def watch(self, session: Session) -> None:
        """The session runs the statement next."""
        session.meanwhile = partial(self.look, session.thread_id)

    @property
    def settings(self) -> str:
        """The session variables with its patience: for locks on definitions, and for locks on rows."""
        return f"lock_wait_timeout={self._seconds}, innodb_lock_wait_timeout={self._seconds}"

    def look(self, thread: int, waited: float) -> None:
        """Log once that the statement of ``thread`` waits for a lock, and for whom; it has ``waited`` for so long."""
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
        """``error`` of the statement; where it was a wait, the error that says who was waited for."""
        if error.code != LOCK_WAIT:
            return error
        return WaitedOut(f"{error}, after {self._seconds} s{self.held_by and ': ' + self.held_by}", error.code)

    def _state(self, thread: int) -> str:
        """What the statement is doing, in the server's words. The server shows that of its own account to anyone."""
        rows = self._asking.rows(f"SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {thread}")
        return str(rows[0][0] or "") if rows else ""

    def _holders(self, thread: int) -> str:
        """The sessions that hold a lock on what the statement waits for; empty where that is not to be found out."""
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
