"""The connection on which statements run one after the other, each as if on a connection that was just opened.

Opening one takes longer than most statements: TLS, the password, the settings. So it is kept for a while and reset
before the next statement, which leaves the next one no variable, temporary table or lock of the one before it. Only the
default database outlives a reset, and no statement can leave a database without entering another one.
"""

import time
from contextlib import suppress

from cdc.consumer.errors import UNKNOWN_DATABASE, Interrupted, Refused
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier

__all__ = ["StatementConnection"]

_IDLE_SECONDS = 5.0


class StatementConnection:
    """Opened over ``session`` when it is needed, and closed after a while in which it was not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: Session | None = None
        self._in_database = False
        self._used_at = 0.0

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
        own, self._own = self._own, None
        if own is not None:
            own.close()
