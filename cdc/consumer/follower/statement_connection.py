"""Manages the connection on which DDL statements are executed one after another, each as if on a new connection;
decides whether a statement that fills an AUTO_INCREMENT column assigns the same numbers as on the leader.

Opening a connection takes longer than most statements, because of TLS, the password and the settings. So the connection
is kept for a while, and reset before the next statement. The reset removes variables, temporary tables and locks. It
keeps only the default database; a statement can change the default database, but can't unset it.

A reset and the statements that must follow it take four round trips. So there is no reset between two statements on
tables if neither sets or reads session state, and the leader executed both with the same variables in the same
database.

``LockWait`` lets a statement wait long for a lock of another session of the follower, and logs once which session holds
it. The wait is long because a statement that starts over loses its place in the queue for the lock. An ALTER may also
lose its copy of the table, because the server acquires the last lock only when the copy is ready.
"""

import logging
import re
import time
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from typing import Any

from cdc.consumer.errors import LOCK_WAIT, UNKNOWN_DATABASE, Interrupted, Refused, WaitedOut
from cdc.consumer.follower.session import Session
from cdc.consumer.literals.values import identifier, quoted, seconds
from cdc.model.record import Record
from cdc.service.logs import event
from cdc.sql.effects import Effect

__all__ = [
    "VARIABLES",
    "LockWait",
    "StatementConnection",
    "key_columns",
    "leaves_nothing",
    "other_numbers",
    "texts_of_mariadb",
]

# Decides whether a statement that numbers the rows of a table assigns the same numbers on the follower as on the
# leader.
#
# The text of the statement shows which column is numbered (cdc.sql.effects). Everything else depends on the table,
# whose definition is read on the follower. The follower's table must have the leader's primary key. This is not
# checked, since the stream does not contain that key.

_UNKNOWN = frozenset({1049, 1054, 1146})  # the database, column or table does not exist, so the statement will fail
_INNODB = "InnoDB"


def other_numbers(session: Session, effect: Effect, *, same_engine: bool) -> str:
    """Returns the reason why a statement with this ``effect`` may assign other numbers to the follower's rows than to
    the leader's; empty if the numbers are certainly equal.

    ``same_engine`` is true if the follower's table has the leader's engine. Must be called without an open transaction.
    """
    if effect.any_order and _has_rows(session, effect, "TRUE LIMIT 1, 1"):
        return "the table has rows, and each server numbers them in an order of its own"
    if effect.any_order and not _has_rows(session, effect, "TRUE LIMIT 1"):
        return ""
    where = _where(effect)
    found = session.rows(
        f"SELECT COLUMN_NAME FROM information_schema.COLUMNS {where} AND EXTRA LIKE '%auto_increment%'"
    )
    counters = {str(name).casefold() for (name,) in found}
    if effect.filled and (effect.filled.casefold() in counters or not _has_rows_to_number(session, effect)):
        return ""  # no row needs a number, or the column was AUTO_INCREMENT already, and an ALTER keeps its zeros
    if counters - {name.casefold() for name in effect.dropped}:
        return "its numbers continue from a counter that only the leader knows"
    if effect.any_order:
        return ""
    engines = session.rows(f"SELECT ENGINE FROM information_schema.TABLES {where}")
    parts = session.rows(f"SELECT 1 FROM information_schema.PARTITIONS {where} AND PARTITION_NAME IS NOT NULL LIMIT 1")
    if engines and (engines != [(_INNODB,)] or (effect.filled and not same_engine)):
        return "the table may be of another engine than InnoDB there or here"
    if parts and effect.numbered:
        return "the table has partitions"
    if engines and not key_columns(session, effect):
        return "the table has no primary key, in the order of which the leader would have numbered the rows"
    return ""


def key_columns(session: Session, effect: Effect) -> list[str]:
    """Returns the columns of the primary key of the follower's table, in their order."""
    found = session.rows(
        f"SELECT COLUMN_NAME FROM information_schema.STATISTICS {_where(effect)} AND INDEX_NAME = 'PRIMARY' "
        "ORDER BY SEQ_IN_INDEX"
    )
    return [str(column) for (column,) in found]


def texts_of_mariadb(session: Session, effect: Effect) -> list[str]:
    """Returns the columns of the follower's table that have one of the text types that replace MariaDB's UUID, INET4
    and INET6 on a follower.
    """
    found = session.rows(
        f"SELECT COLUMN_NAME FROM information_schema.COLUMNS {_where(effect)} "
        "AND (DATA_TYPE, CHARACTER_MAXIMUM_LENGTH) IN (('char', 36), ('varchar', 15), ('varchar', 39)) "
        "ORDER BY ORDINAL_POSITION"
    )
    return [str(column) for (column,) in found]


def _has_rows_to_number(session: Session, effect: Effect) -> bool:
    """Whether the statement may number a row. It numbers a row if the row's value in the column is 0 or NULL, or
    becomes 0 in the column's new type.
    """
    return _has_rows(session, effect, f"COALESCE({identifier(effect.filled)} + 0 < 1, TRUE) LIMIT 1")


def _has_rows(session: Session, effect: Effect, condition: str) -> bool:
    """Whether the table exists, and has rows that fulfil ``condition``, which may end with a LIMIT."""
    table = f"{identifier(effect.database)}.{identifier(effect.name or '')}"
    try:
        return bool(session.rows(f"SELECT 1 FROM {table} WHERE {condition}"))
    except Refused as error:
        return error.code not in _UNKNOWN
    finally:
        # releases the lock on the table's definition, since another connection will execute the statement
        session.run([b"COMMIT"])


def _where(effect: Effect) -> str:
    return f"WHERE TABLE_SCHEMA = {quoted(effect.database)} AND TABLE_NAME = {quoted(effect.name or '')}"


_LOG = logging.getLogger("cdc.consumer")
# seconds before the first check of a waiting statement, and between two checks
_FIRST_SECONDS, _NEXT_SECONDS = 2.0, 10.0
_SHOWN = 3  # the log message names at most this number of sessions


class LockWait:
    """Lets a statement wait for each lock at most ``seconds``. Queries about the wait are sent over the session
    ``asking``; the statement runs on another session.

    ``held_by`` lists the sessions that held the lock when a query last found the statement waiting; it is empty if no
    query did.
    """

    def __init__(self, *, seconds: int, asking: Session) -> None:
        self._asking = asking
        self._seconds = max(seconds, 1)  # 1 is the server's minimum
        self._next = _FIRST_SECONDS
        self._logged = False
        self.held_by = ""

    def watch(self, session: Session) -> None:
        """Watches the next statement that the session executes."""
        session.meanwhile = partial(self.look, session.thread_id)

    @property
    def settings(self) -> str:
        """The assignments that let the statement wait for metadata locks and for row locks."""
        return f"lock_wait_timeout={self._seconds}, innodb_lock_wait_timeout={self._seconds}"

    def look(self, thread: int, waited: float) -> None:
        """Logs once that the statement of connection ``thread`` waits for a lock, and which sessions hold the lock. The
        statement has run for ``waited`` seconds.
        """
        if waited < self._next or self._asking.busy:
            return
        self._next = waited + _NEXT_SECONDS
        # If the connection is lost, the next statement that uses it will report the error.
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
        """Returns the statement's ``error``. If the statement waited too long for a lock, returns an error that names
        the sessions that held the lock.
        """
        if error.code != LOCK_WAIT:
            return error
        return WaitedOut(f"{error}, after {self._seconds} s{self.held_by and ': ' + self.held_by}", error.code)

    def _state(self, thread: int) -> str:
        """Returns the state of the statement as the server describes it. No privilege is needed, since the server shows
        each account its own sessions.
        """
        rows = self._asking.rows(f"SELECT STATE FROM information_schema.PROCESSLIST WHERE ID = {thread}")
        return str(rows[0][0] or "") if rows else ""

    def _holders(self, thread: int) -> str:
        """Lists the sessions that hold a lock for which the statement waits; empty if they can't be found out."""
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
        except Refused:  # the account may lack SELECT on performance_schema
            return ""
        return ", ".join(
            f"connection {number} of {user}@{host} holds {'.'.join(filter(None, name)) or 'a lock on the server'}"
            for number, user, host, *name in rows
        )


_IDLE_SECONDS = 5.0
# Seconds. If the last reset is longer ago, the connection is reset again, so that new values of global variables take
# effect.
_TRUSTED_SECONDS = 10.0
_ON_TABLES = frozenset({
    "CreateTable", "AlterTable", "DropTable", "RenameTable", "TruncateTable", "CreateIndex", "DropIndex",
    "MaintainTable",
})  # fmt: skip
# Matches text that depends on the session: user variables, queries, an open transaction, and functions with state in
# the session.
_OF_THE_SESSION = re.compile(
    r"@|\b(?:SELECT|TRANSACTION|TEMPORARY|LAST_INSERT_ID|\w*_LOCK|FOUND_ROWS|ROW_COUNT)\b", re.I
)
_State = tuple[str, dict[str, Any]]


def leaves_nothing(record: Record) -> bool:
    """Whether the statement neither changes nor reads state that a session keeps from one statement to the next."""
    actions = {affect["action"] for affect in record.affects}
    return bool(actions) and actions <= _ON_TABLES and not _OF_THE_SESSION.search(record.query)


class StatementConnection:
    """A second connection besides the connection of ``session``. It is opened when it is needed, and closed when it has
    not been used for a while.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: Session | None = None
        self._variables = SessionVariables()
        self._in_database = False
        self._used_at = self._reset_at = 0.0
        # the session's state for the last statement, if that statement left the state unchanged
        self._left: _State | None = None

    def ready(self, record: Record, *, own: str, gtid: str) -> Session:
        """Returns a session with the leader's variables and the assignments ``own``, which executes its next statement
        under ``gtid``. If ``gtid`` is empty, the server assigns a GTID.

        Raises Interrupted or Refused; the caller must then call ``close``.
        """
        context = dict(record.context or {})
        state = own, kept(context)
        # must be the last assignment, because the next statement is executed under this GTID
        last = [f"gtid_next={quoted(gtid)}"] if gtid else []
        known, self._left = self._left, None
        plain = leaves_nothing(record)
        session = self._again(", ".join([*moment(context), *last])) if plain and known == state else None
        if session is None:
            session = self.fresh()
            self._reset_at = time.monotonic()
            if not self.enter(session, context.get("database", "")):
                session = self.opened()
            session.run([self._variables.assignment(session, context, own=own, last=last)])
        self._left = state if plain else None
        return session

    def _again(self, assignments: str) -> Session | None:
        """Sets session variables by ``assignments`` on the open connection without resetting it, and returns its
        session. Returns None if the connection must be reset, or opened again.
        """
        self.rest()
        if self._own is None or not self._own.connected or time.monotonic() - self._reset_at > _TRUSTED_SECONDS:
            return None
        # If the connection is lost or the server refuses the assignments, the session will be reset or replaced.
        with suppress(Interrupted, Refused):
            self._own.run([f"SET SESSION {assignments}".encode() if assignments else b"DO 0"])
            return self._own
        return None

    def fresh(self) -> Session:
        """Returns a session without any state, except perhaps a default database. Raises Interrupted or Refused."""
        self.rest()
        if self._own is not None and self._own.connected:
            # A connection that was lost in the meantime is simply replaced, because no statement was running on it.
            with suppress(Interrupted, Refused):
                self._own.renew()
                return self._own
        return self.opened()

    def opened(self) -> Session:
        """Returns a session on a new connection. Raises Interrupted or Refused."""
        self.close()
        self._in_database = False
        own = self._session.another()
        own.connect()
        self._own, self._used_at = own, time.monotonic()
        return own

    def enter(self, session: Session, name: str) -> bool:
        """Makes ``name`` the default database of the session. Returns False if the session keeps another default
        database, because the server does not know ``name`` or ``name`` is empty.

        The server does not know ``name`` if the default database of the leader's session is not replicated. The
        statement must then be executed without a default database; the server refuses it if a name is not qualified.
        Raises Interrupted or Refused.
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
        """Notes that the statement was executed, and left no state that prevents further use of the connection."""
        self._used_at = time.monotonic()

    def rest(self) -> None:
        """Closes the connection if it has not been used for a while. Must be called from time to time."""
        if self._own is not None and time.monotonic() - self._used_at > _IDLE_SECONDS:
            self.close()

    def close(self) -> None:
        """Closes the connection, which also releases the GTID of a statement that was not executed."""
        own, self._own, self._left = self._own, None, None
        if own is not None:
            own.close()


# Maps the keys of the context in a record to session variables (MySQL source, class Query_event).
_VARIABLES = {
    "sql_mode": "sql_mode",
    "time_zone": "time_zone",
    "foreign_key_checks": "foreign_key_checks",
    "unique_checks": "unique_checks",
    "lc_time_names": "lc_time_names",  # the context contains a number
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
# The values for variables that the leader did not log; the follower's own defaults must not apply. The leader
# logs the first three only if they differ from these values. It logs a generated primary key as part of the statement.
# If a statement names no engine for its table, the leader does not log the engine, so a transactional engine is used.
# The leader never logs the last two variables. They can only make the server refuse statements, so with OFF the
# follower accepts all statements that the leader has accepted. Variables that the follower does not know are left out.
_UNLESS_LOGGED = {
    "lc_time_names": "en_US",
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "sql_generate_invisible_primary_key": "OFF",
    "default_storage_engine": "InnoDB",
    "innodb_strict_mode": "OFF",
    "restrict_fk_on_non_standard_key": "OFF",
}

# Setting these variables needs a privilege. They only decide whether the server accepts a statement. If the server
# refuses the statement, the consumer stops with an error that shows the statement.
_ONLY_REFUSE = frozenset({"sql_require_primary_key", "innodb_strict_mode", "restrict_fk_on_non_standard_key"})
_AS_SELECTED = {"OFF": "0"}
# the variables that are set in sessions that execute statements
VARIABLES = frozenset(_VARIABLES.values()) | _UNLESS_LOGGED.keys()


class SessionVariables:
    """Sets the variables of the leader's sessions in a session on the follower, for one statement after another."""

    def __init__(self) -> None:
        self._server = ("", 0)
        # the variables in _RESTRICTED and _UNLESS_LOGGED that the server knows
        self._existing: frozenset[str] = frozenset()

    def assignment(self, session: Session, context: dict[str, Any], *, own: str, last: Sequence[str]) -> bytes:
        """Builds the SET statement for the context in a record. It begins with the assignments ``own`` and ends with
        the assignments ``last``.

        There is only one statement, so that the server parses all literals before any variable changes; after
        ``collation_connection=utf16_bin`` it would not accept 'OFF'.
        """
        wanted = {variable: _variable(context[name]) for name, variable in _VARIABLES.items() if name in context}
        asked = (_RESTRICTED & wanted.keys()) | (_UNLESS_LOGGED.keys() - wanted.keys())
        if not session.assigns_gtids:
            asked -= _ONLY_REFUSE
            wanted = {variable: value for variable, value in wanted.items() if variable not in _ONLY_REFUSE}
        for variable, value in self._values(session, asked):
            if variable in wanted:
                # Setting these variables needs privileges or causes a warning, so they are set only in the rare case
                # that they have another value.
                if value == wanted[variable].strip("'"):
                    del wanted[variable]
                continue
            usual = _UNLESS_LOGGED[variable]
            if value != _AS_SELECTED.get(usual, usual):
                wanted[variable] = usual if usual.isdigit() else quoted(usual)
        values = (f"{name}={value}" for name, value in wanted.items())
        return ", ".join([f"SET SESSION {own}", *values, *moment(context), *last]).encode()

    def _values(self, session: Session, names: AbstractSet[str]) -> Iterator[tuple[str, str]]:
        """Yields the variables in ``names`` that the server knows, with their values in the session."""
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
    """Returns the part of a record's context that stays in effect in a session, and whether the context contains the
    time of the statement.
    """
    names = (*_VARIABLES, "database")
    return {name: context[name] for name in names if name in context} | {"timed": "timestamp_us" in context}


def moment(context: dict[str, Any]) -> list[str]:
    """Returns the assignment of the time at which the leader executed the statement; an empty list if the context does
    not contain that time.
    """
    return [f"timestamp={seconds(context['timestamp_us'])}"] if "timestamp_us" in context else []
