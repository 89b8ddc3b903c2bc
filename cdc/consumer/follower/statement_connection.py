"""Manages the connection on which statements run one after the other, each as if on a new connection.

Opening a connection takes longer than most statements, because of TLS, the password and the settings. So the connection
is kept for a while and reset before the next statement, which removes the variables, temporary tables and locks of the
statement before. Only the default database outlives a reset, and no statement can leave a database without entering
another database.

A reset, with all that must follow it, takes four round trips. So the reset is omitted between two statements on tables
that neither set nor read session state, and that the leader ran with the same variables in the same database.

``LockWait`` lets a statement wait long for a lock of another session of the follower, and logs once which session holds
it. A statement that starts over loses its place in the queue for the lock and, if it has already copied the table, all
of that work: a server takes the lock that ends an ALTER only when the new table is ready.
"""

import logging
import re
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Any

from cdc.consumer.errors import LOCK_WAIT, UNKNOWN_DATABASE, Interrupted, Refused, WaitedOut
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted, seconds
from cdc.model.record import Record
from cdc.service.logs import event

__all__ = ["VARIABLES", "LockWait", "StatementConnection", "leaves_nothing"]

_LOG = logging.getLogger("cdc.consumer")
_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 10.0  # seconds before the first look at a waiting statement, and between two looks
_SHOWN = 3  # the most sessions that the log line names


class LockWait:
    """Lets a statement wait for locks, for each lock at most ``seconds``; ``asking`` is the session for queries, which
    is not the statement's own session.

    ``held_by`` names the sessions that held the lock for which the statement was last seen waiting; empty if no such
    wait was seen.
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
        """The assignments that let the statement wait for locks on definitions and for locks on rows."""
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
        """The ``error`` of the statement; if the statement waited too long for a lock, an error that names the sessions
        that held it.
        """
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
        except Refused:  # the user may lack SELECT on performance_schema
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
# Matches user variables, queries, an open transaction, and functions that keep state in the session.
_OF_THE_SESSION = re.compile(
    r"@|\b(?:SELECT|TRANSACTION|TEMPORARY|LAST_INSERT_ID|\w*_LOCK|FOUND_ROWS|ROW_COUNT)\b", re.I
)
_State = tuple[str, dict[str, Any]]


def leaves_nothing(record: Record) -> bool:
    """Whether the statement neither changes nor reads anything that a session keeps from one statement to the next."""
    actions = {affect["action"] for affect in record.affects}
    return bool(actions) and actions <= _ON_TABLES and not _OF_THE_SESSION.search(record.query)


class StatementConnection:
    """A connection in addition to ``session``, which is opened when needed, and closed after a while without use."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: Session | None = None
        self._variables = SessionVariables()
        self._in_database = False
        self._used_at = self._reset_at = 0.0
        self._left: _State | None = None  # the state in which the last statement ran, if it did not change it

    def ready(self, record: Record, *, own: str, gtid: str) -> Session:
        """A session with the leader's variables and our ``own`` assignments, in which the statement runs under
        ``gtid``.

        Raises Interrupted or Refused; then ``close`` must be called.
        """
        context = dict(record.context or {})
        state = own, kept(context)
        last = f"gtid_next={quoted(gtid)}"  # the last assignment, since the next statement runs under this GTID
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
        """Makes only these assignments in the session, and returns it; None if the session must be reset."""
        self.rest()
        if self._own is None or not self._own.connected or time.monotonic() - self._reset_at > _TRUSTED_SECONDS:
            return None
        # If the session was lost, or refuses the assignments, it is reset or replaced.
        with suppress(Interrupted, Refused):
            self._own.run([f"SET SESSION {assignments}".encode()])
            return self._own
        return None

    def fresh(self) -> Session:
        """A session without any state except perhaps a default database. Raises Interrupted or Refused."""
        self.rest()
        if self._own is not None and self._own.connected:
            # A connection that was lost in the meantime is replaced: nothing has run on it since it was used.
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
        """Makes ``name`` the default database of the session; False if that fails and another database stays selected.

        The leader's session may have used a database that is not replicated. Then the statement names its databases, or
        the server refuses it because no database is selected. Raises Interrupted or Refused.
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
        """Closes the connection if it has not been used for a while; must be called now and then."""
        if self._own is not None and time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        """Ends the connection. This frees the GTID of a statement that did not run."""
        own, self._own, self._left = self._own, None, None
        if own is not None:
            own.close()


# Maps a key of the recorded context to the session variable that it sets (MySQL source, class Query_event).
_VARIABLES = {
    "sql_mode": "sql_mode",
    "time_zone": "time_zone",
    "foreign_key_checks": "foreign_key_checks",
    "unique_checks": "unique_checks",
    "lc_time_names": "lc_time_names",  # as a number
    "auto_increment_increment": "auto_increment_increment",
    "auto_increment_offset": "auto_increment_offset",
    "charset": "character_set_client",
    "collation": "collation_connection",
    "server_collation": "collation_server",
    "database_collation": "collation_database",
    "default_collation_for_utf8mb4": "default_collation_for_utf8mb4",
    "explicit_defaults_for_timestamp": "explicit_defaults_for_timestamp",
    "sql_require_primary_key": "sql_require_primary_key",
    "default_table_encryption": "default_table_encryption",
}
_RESTRICTED = frozenset({
    "default_collation_for_utf8mb4", "explicit_defaults_for_timestamp", "sql_require_primary_key",
    "default_table_encryption",
})  # fmt: skip
# Values for variables that the leader did not log, whatever the follower's own defaults are. The leader logs the first
# three only if they differ from these values, and writes a generated primary key into the statement itself. The engine
# of a table whose statement names no engine is not logged at all, so the transactional engine is used. The last two
# variables are never logged and only forbid statements: a statement that the leader accepted with them ON is accepted
# with them OFF as well. Variables that the server does not know are left out.
_UNLESS_LOGGED = {
    "lc_time_names": "en_US",
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "sql_generate_invisible_primary_key": "OFF",
    "default_storage_engine": "InnoDB",
    "innodb_strict_mode": "OFF",
    "restrict_fk_on_non_standard_key": "OFF",
}

_AS_SELECTED = {"OFF": "0"}
VARIABLES = frozenset(_VARIABLES.values()) | _UNLESS_LOGGED.keys()  # the variables that sessions of statements get


class SessionVariables:
    """Sets the variables of the leader's sessions in one session after the other."""

    def __init__(self) -> None:
        self._server = ("", 0)
        self._existing: frozenset[str] = frozenset()  # the variables that the server knows

    def assignment(self, session: Session, context: dict[str, Any], *, own: str, last: str) -> bytes:
        """The SET statement for a recorded context. It begins with our ``own`` assignments and ends with the ``last``
        assignment.

        It is one statement because the server then parses all literals before any variable changes: after
        ``collation_connection=utf16_bin`` it would not accept 'OFF'.
        """
        wanted = {variable: _variable(context[name]) for name, variable in _VARIABLES.items() if name in context}
        for variable, value in self._values(
            session, (_RESTRICTED & wanted.keys()) | (_UNLESS_LOGGED.keys() - wanted.keys())
        ):
            if variable in wanted:
                # Setting these variables needs grants or causes a warning, and usually they have the right value
                # already.
                if value == wanted[variable].strip("'"):
                    del wanted[variable]
                continue
            usual = _UNLESS_LOGGED[variable]
            if value != _AS_SELECTED.get(usual, usual):
                wanted[variable] = usual if usual.isdigit() else quoted(usual)
        values = (f"{name}={value}" for name, value in wanted.items())
        return ", ".join([f"SET SESSION {own}", *values, *moment(context), last]).encode()

    def _values(self, session: Session, names: AbstractSet[str]) -> Iterator[tuple[str, str]]:
        """Those variables in ``names`` that the server knows, with the session's values."""
        server = session.server, session.version
        if server != self._server:
            all_ = ", ".join(map(quoted, [*_RESTRICTED, *_UNLESS_LOGGED]))
            shown = session.rows(f"SHOW SESSION VARIABLES WHERE variable_name IN ({all_})")
            self._server, self._existing = server, frozenset(str(name) for name, _ in shown)
        asked = sorted(names & self._existing)
        (row,) = session.rows(f"SELECT {', '.join(f'@@SESSION.{name}' for name in asked)}")
        return zip(asked, map(str, row), strict=True)


def _variable(value: object) -> str:
    return str(int(value)) if isinstance(value, bool | int) else quoted(str(value))


def kept(context: dict[str, Any]) -> dict[str, Any]:
    """The part of a recorded context that holds until it is assigned again, and whether the context contains the time
    of a statement.
    """
    names = (*_VARIABLES, "database")
    return {name: context[name] for name in names if name in context} | {"timed": "timestamp_us" in context}


def moment(context: dict[str, Any]) -> list[str]:
    """The assignment of the time at which the statement ran, if the context contains it."""
    return [f"timestamp={seconds(context['timestamp_us'])}"] if "timestamp_us" in context else []
