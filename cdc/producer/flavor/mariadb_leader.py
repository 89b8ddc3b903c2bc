"""Queries a MariaDB leader's settings, GTIDs, binlog files, visible transactions and types; refuses a leader that can't
be followed faithfully.

A MariaDB server has no UUID: its identity is its ``server_id``. With ``gtid_strict_mode`` the sequence numbers of a
domain grow, so that the last GTID of a domain stands for all its earlier GTIDs.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pymysql

from cdc.errors import Disconnected, PromiseError, UserError
from cdc.model.gtid import executed_before
from cdc.model.position import Position
from cdc.producer.binlog import leader as mysql
from cdc.producer.binlog.leader import (
    Leader,
    connected_cursor,
    end_of_binlog,
    first_known,
    inspected,
    missing_grant,
    not_followed,
    require_all_logged,
    settings_problems,
    unlogged_replica,
)
from cdc.producer.decode.query_event import LoggedStatement
from cdc.producer.decode.table_map import CHARACTERS, INET4, INET6, STRING, UUID, Column, Table, past
from cdc.producer.flavor.mariadb_events import Session, mode_bits, sql_mode
from cdc.producer.flavor.mariadb_statements import created_types, rewritten

__all__ = [
    "MARIADB_CHARACTERS",
    "CopySettings",
    "OwnTypes",
    "Visibility",
    "begin_snapshot",
    "copy_settings",
    "gtids_at",
    "inspect",
    "inspect_leader",
    "is_mariadb",
    "present_types",
    "speaks_mariadb",
]

_TESTED = ((10, 11), (11, 8))
_DENIED = frozenset({1142, 1227})
_NO_BINARY_LOG = 1381
_PROBES = (
    ("BINLOG MONITOR", "SHOW BINARY LOGS"),
    ("SLAVE MONITOR", "SHOW REPLICA STATUS"),
    # Without this privilege, information_schema hides the columns of other tables, and so the types of the columns.
    ("SELECT", "SELECT 1 FROM mysql.global_priv LIMIT 0"),
)
_PERMANENT = "and the same in the server's option file"
_SETTINGS = {
    "log_bin": ("ON", "start the server with --log-bin"),
    "binlog_format": ("ROW", f"SET GLOBAL binlog_format = ROW, {_PERMANENT}"),
    "binlog_row_metadata": ("FULL", f"SET GLOBAL binlog_row_metadata = FULL, {_PERMANENT}"),
    "binlog_row_image": ("FULL", f"SET GLOBAL binlog_row_image = FULL, {_PERMANENT}"),
    # Without this mode, the sequence numbers of a domain need not grow, so its last GTID would not stand for all its
    # earlier GTIDs.
    "gtid_strict_mode": ("ON", f"SET GLOBAL gtid_strict_mode = ON, {_PERMANENT}"),
    # If this is OFF, the transactions of a commit group become visible one after the other, and
    # Binlog_snapshot_position is already the end of the group when the first of them is visible (``Visibility``).
    "binlog_optimize_thread_scheduling": ("ON", "start the server with its default"),
    "binlog_alter_two_phase": ("OFF", f"SET GLOBAL binlog_alter_two_phase = OFF, {_PERMANENT}"),
    # MariaDB has this variable from version 11 on. By default, a text without a collation gets one that MySQL lacks.
    "character_set_collations": ("", f"SET GLOBAL character_set_collations = '', {_PERMANENT}"),
    "lower_case_table_names": ("0", "only a new server can have another value"),
    # The effect of CREATE TABLE on a follower must not depend on settings that MariaDB does not log.
    "default_storage_engine": ("InnoDB", f"SET GLOBAL default_storage_engine = InnoDB, {_PERMANENT}"),
    "old_mode": ("UTF8_IS_UTF8MB3", f"SET GLOBAL old_mode = 'UTF8_IS_UTF8MB3', {_PERMANENT}"),
}  # fmt: skip
_IDENTITY = ("version", "server_id", "sql_mode")
_UTF8MB4_DEFAULT = "utf8mb4_general_ci"


def is_mariadb(version: str) -> bool:
    return "mariadb" in version.lower()


def inspect(cursor: Any, *, name: str, problems: list[UserError] | None) -> Leader:
    """Queries the leader's state; raises the errors of ``cdc.producer.binlog.leader.inspect``."""
    variables = _variables(cursor)
    _require_version(variables["version"], name)
    return inspected(cursor, _problems(cursor, variables, name), _ask, name=name, problems=problems)


def _require_version(version: str, name: str) -> None:
    known = " and ".join(f"{major}.{minor}" for major, minor in _TESTED)
    if tuple(map(int, re.findall(r"\d+", version)[:2])) not in _TESTED:
        raise UserError(
            f"the server is MariaDB {version}",
            code="CDC-LEADER-VERSION",
            where=name,
            hint=f"supported leaders: MariaDB {known}, and MySQL 8.0 or newer",
        )


def _problems(cursor: Any, variables: Mapping[str, str], name: str) -> UserError | None:
    problems = list(settings_problems(variables, _SETTINGS))
    missing = [missing_grant(cursor, privilege) for privilege in _missing_grants(cursor)]
    if not missing:
        problems += unlogged_replica(cursor)
        default = _default_of_utf8mb4(cursor)[1]
        if default != _UTF8MB4_DEFAULT:
            problems.append(f"utf8mb4 has the default collation {default}; it must be {_UTF8MB4_DEFAULT}")
    return not_followed(name, problems + missing)


def _missing_grants(cursor: Any) -> list[str]:
    """Tries a statement for each privilege; returns the privileges that are missing. REPLICATION SLAVE is not tried,
    since only the binlog dump itself needs it."""
    lacking = []
    for privilege, statement in _PROBES:
        try:
            cursor.execute(statement)
        except pymysql.MySQLError as error:
            if error.args[0] == _NO_BINARY_LOG:
                return []  # the check of log_bin reports this problem
            if error.args[0] not in _DENIED:
                raise
            lacking.append(privilege)
    return lacking


def _ask(cursor: Any, name: str) -> Leader:
    variables = _variables(cursor)
    cursor.execute(
        "SELECT id, character_set_name, full_collation_name "
        "FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
    )
    collations = {number: (charset, collation) for number, charset, collation in cursor.fetchall()}
    cursor.execute("SHOW BINARY LOGS")
    logs = tuple((row[0], int(row[1])) for row in cursor.fetchall())
    file, offset, only, ignored = first_known(cursor, "SHOW MASTER STATUS")[0]
    require_all_logged(only, ignored, name)
    position = Position(file, int(offset))
    session = Session(sql_mode(mode_bits(variables["sql_mode"])), _default_of_utf8mb4(cursor)[0])
    return Leader(
        name=name,
        version=variables["version"],
        server_uuid=f"MariaDB server_id {variables['server_id']}",
        server_id=int(variables["server_id"]),
        gtid_on=False,
        executed=executed_before(_binlog_state(cursor)),
        purged=executed_before(gtids_at(cursor, Position(logs[0][0], 4)) or ""),
        position=position,
        logs=logs,
        collations=collations,
        session=session,
    )


def _variables(cursor: Any) -> dict[str, str]:
    names = ", ".join(f"'{name}'" for name in (*_SETTINGS, *_IDENTITY))
    cursor.execute(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({names})")
    return dict(cursor.fetchall())


def _default_of_utf8mb4(cursor: Any) -> tuple[int, str]:
    """Returns the number and the name of the default collation of utf8mb4."""
    cursor.execute(
        "SELECT c.id, c.collation_name FROM information_schema.character_sets AS s "
        "JOIN information_schema.collations AS c ON c.collation_name = s.default_collate_name "
        "WHERE s.character_set_name = 'utf8mb4'"
    )
    number, collation = cursor.fetchone()
    return int(number), collation


def gtids_at(cursor: Any, position: Position) -> str | None:
    """Returns the last GTID of each domain before the position; None if no event of the leader's binlog begins
    there.
    """
    cursor.execute("SELECT BINLOG_GTID_POS(%s, %s)", (position.file, position.offset))
    found = cursor.fetchone()[0]
    return None if found is None else str(found)


def _binlog_state(cursor: Any) -> str:
    """Returns the last GTID of each domain and server in the leader's binlog."""
    cursor.execute("SELECT @@GLOBAL.gtid_binlog_state")
    return str(cursor.fetchone()[0])


# Inspects a leader of either kind, MySQL or MariaDB.


def inspect_leader(
    settings: dict[str, Any],
    *,
    name: str,
    partial_json: bool = False,
    problems: list[UserError] | None = None,
    before: Leader | None = None,
) -> Leader:
    """Queries the state of a leader of either kind; for arguments and errors see ``producer.binlog.leader.inspect`` and
    ``inspect_with``.
    """
    with mysql.connected_cursor(settings, name) as cursor:
        cursor.execute("SELECT VERSION()")
        if is_mariadb(cursor.fetchone()[0]):
            return inspect(cursor, name=name, problems=problems)
        return mysql.inspect_with(cursor, name=name, partial_json=partial_json, problems=problems, before=before)


# Names the session variables that a copy sets, as MySQL and MariaDB call them.


class CopySettings(NamedTuple):
    """Contains assignments for SET SESSION, as one kind of server spells them.

    ``unlimited_time`` removes the limit on a statement's time, ``unlimited_ranges`` the limit on the memory for ranges
    of a key. ``reading`` makes transactions read from one snapshot. ``fresh_estimates`` makes the server return present
    estimates of a table's size; it is empty if the server always does. Only ``recursion`` is no assignment, but the
    name of the variable that limits the steps of a recursive query.
    """

    unlimited_time: str
    unlimited_ranges: str
    reading: str
    recursion: str
    fresh_estimates: str


_MYSQL = CopySettings(
    unlimited_time="max_execution_time = 0",
    unlimited_ranges="range_optimizer_max_mem_size = 0",
    reading="transaction_isolation = 'REPEATABLE-READ', transaction_read_only = 1",
    recursion="cte_max_recursion_depth",
    fresh_estimates="information_schema_stats_expiry = 0",
)
_MARIADB = CopySettings(
    unlimited_time="max_statement_time = 0",
    unlimited_ranges="optimizer_max_sel_arg_weight = 0",
    reading="tx_isolation = 'REPEATABLE-READ', tx_read_only = 1",
    recursion="max_recursive_iterations",
    fresh_estimates="",
)


def speaks_mariadb(connection: Any) -> bool:
    """Whether the server of pymysql's ``connection`` is a MariaDB."""
    return is_mariadb(connection.get_server_info())


def copy_settings(connection: Any) -> CopySettings:
    """Returns the settings for the server of pymysql's ``connection``."""
    return _MARIADB if speaks_mariadb(connection) else _MYSQL


# Finds out which transactions a SELECT on a MariaDB leader sees: MariaDB has no set of executed GTIDs.
#
# MariaDB writes a group of transactions into its binlog, and then makes the group visible, in one step unless
# ``binlog_optimize_thread_scheduling`` is OFF, which ``mariadb_leader`` refuses. Outside of a snapshot the status
# variables ``Binlog_snapshot_file`` and ``Binlog_snapshot_position`` are the end of the newest group that is visible.
# Only an XA transaction becomes visible in a step of its own, after its XA COMMIT is in the binlog; until then XA
# RECOVER lists it.

_TRIES, _WAIT_SECONDS = 100, 0.01
_XA_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0


class Visibility:
    """Waits until a SELECT sees all transactions that the stream has read; ``stopped`` ends all waits. ``name`` is the
    leader's name in errors."""

    def __init__(self, name: str, stopped: threading.Event) -> None:
        self._name = name
        self._stopped = stopped
        self._doubtful: dict[str, tuple[float, Position]] = {}

    def await_all(self, cursor: Any, position: Position, prepared: frozenset[str]) -> bool:
        """Waits until a SELECT sees all transactions before ``position``, up to which the stream has read; ``prepared``
        are the XA transactions that are prepared, but not ended, at this position.

        Returns False if an XA transaction stays invisible for a second and may have ended before ``position``; the
        caller tries again later. Raises UserError if the transaction is still invisible at a later call, after the
        stream has read everything that was in the binlog at the first such call: the transaction was then prepared
        before the stream began. Raises Disconnected once ``stopped`` is set.
        """
        # The wait is for the end of the binlog, not for ``position``: after a failover, this server may have logged
        # transactions after the position up to which the stream has read on the other server.
        end = _logged_end(cursor)
        while not self._stopped.is_set():
            if _shows(cursor, end):
                return self._await_xa(cursor, position, prepared)
            self._stopped.wait(_WAIT_SECONDS)
        raise Disconnected("stopped while a table was copied", code="CDC-STOPPED-IN-COPY", where=self._name)

    def _await_xa(self, cursor: Any, position: Position, prepared: frozenset[str]) -> bool:
        # An XA transaction that ended before ``position`` and is not visible yet is in the first list of XA RECOVER.
        doubtful, give_up = _prepared_xids(cursor) - prepared, time.monotonic() + _XA_SECONDS
        while doubtful and time.monotonic() < give_up and not self._stopped.is_set():
            self._stopped.wait(_WAIT_SECONDS)
            doubtful &= _prepared_xids(cursor)
        now, end = time.monotonic(), _logged_end(cursor)
        self._doubtful = {xid: self._doubtful.get(xid, (now, end)) for xid in doubtful}
        for xid, (since, logged) in self._doubtful.items():
            if now > since + _PATIENCE_SECONDS and position.place >= logged.place:
                raise UserError(
                    f"nothing can be copied while the XA transaction {xid} is prepared, which the stream does not know",
                    code="CDC-COPY-XA",
                    where=self._name,
                    hint=f"XA ROLLBACK {xid} on the leader, and do its work in another transaction: it was prepared "
                    "before the stream began, and XA COMMIT would stop the stream, but for the first copy of a leader; "
                    "or continue without copies, cdc-producer PROFILE --copy-stop '*.*', and copy after its XA COMMIT",
                )
        return not doubtful


def _shows(cursor: Any, position: Position) -> bool:
    """Whether a SELECT sees all transactions before ``position``, except XA transactions that XA RECOVER still lists
    (``_prepared_xids``).
    """
    return _visible_end(cursor).place >= position.place


def _prepared_xids(cursor: Any) -> frozenset[str]:
    """Returns the xids of the prepared XA transactions that are not visible yet, in the form of ``decode.decoder``."""
    cursor.execute("XA RECOVER")
    return frozenset(_xid(int(form), int(gtrid), data) for form, gtrid, _, data in cursor.fetchall())


def begin_snapshot(cursor: Any, executed: str) -> str:
    """Begins a transaction with a snapshot, and returns a GTID set whose transactions the snapshot certainly sees.

    The caller knows that a SELECT sees the transactions ``executed``; the result is this set if no newer set is known.
    """
    seen = _certainly_visible(cursor)
    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
    return executed if seen is None else seen


def _certainly_visible(cursor: Any) -> str | None:
    """Waits until all transactions in the binlog are visible, and returns the set of these transactions. Returns None
    if some transactions are still invisible after a second.
    """
    # The order is essential. All transactions in ``gtid_binlog_state`` are in the binlog before the end that is queried
    # after it. An XA transaction among them that is not visible yet is then listed by XA RECOVER.
    cursor.execute("SELECT @@GLOBAL.gtid_binlog_state")
    logged = executed_before(_text(cursor.fetchone()[0]))
    end = _logged_end(cursor)
    for _ in range(_TRIES):
        if _shows(cursor, end):
            return None if _prepared_xids(cursor) else str(logged)
        time.sleep(_WAIT_SECONDS)
    return None


def _logged_end(cursor: Any) -> Position:
    file, offset = end_of_binlog(cursor)
    return Position(_text(file), int(offset))


def _visible_end(cursor: Any) -> Position:
    cursor.execute("SHOW STATUS LIKE 'binlog_snapshot_%'")
    found = {_text(name).lower(): _text(value) for name, value in cursor.fetchall()}
    return Position(found["binlog_snapshot_file"], int(found["binlog_snapshot_position"]))


def _xid(form: int, gtrid: int, data: bytes | str) -> str:
    content = data.encode() if isinstance(data, str) else data
    return f"X'{content[:gtrid].hex()}',X'{content[gtrid:].hex()}',{form}"


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


# Finds columns with types that only MariaDB has: in a table map, UUID, INET4 and INET6 look like BINARY.
#
# The types in a CREATE TABLE are the types of the table's rows until the next statement on the table. If the stream has
# contained no CREATE TABLE of the table since the producer's start, or another statement followed it, the leader is
# queried at the first rows of a table with a BINARY column of 4 or 16 bytes.
#
# The leader returns the present types of the columns. These are the types of the rows, unless the table was altered
# after the rows were logged. If a column now has another length, or was dropped, the rows can't be read for certain.
# Rows from before an ALTER between BINARY, UUID and INET6 are read with the present type. The record is true
# nevertheless, since such an ALTER keeps the bytes of the values. But the follower's column still has the old type: the
# consumer finds that out by the record's ``types`` (``consumer.plan.column_fit``) and stops.

# MariaDB counts a GEOMETRY (255) among the columns with a collation.
MARIADB_CHARACTERS = CHARACTERS | {255}
_OWN = {"uuid": (UUID, 16), "inet4": (INET4, 4), "inet6": (INET6, 16)}
_BINARIES = frozenset({"binary", "char", "character"})  # CHAR may have the character set binary
_SIZES = frozenset({4, 16})  # number of bytes of an INET4, or of an INET6 or UUID
_MOST_CREATED = 10_000

PresentTypes = Callable[[str, str], dict[str, tuple[str, int | None]]]


class OwnTypes:
    """Finds the columns with MariaDB's own types. ``present`` queries the leader for the types of a table's columns."""

    def __init__(self, present: PresentTypes) -> None:
        self._present = present
        self._created: dict[tuple[str, str | None], dict[str, str]] = {}

    def rewritten(self, statement: LoggedStatement) -> LoggedStatement:
        """Remembers the types in a statement that creates a table, and returns the statement for a follower."""
        if statement.kind == "unknown" or any(effect.name is None for effect in statement.effects):
            self._created.clear()
        for effect in statement.effects:
            for table in ((effect.database, effect.name), effect.to):
                self._created.pop(table or ("", None), None)
        if types := created_types(statement):
            if len(self._created) >= _MOST_CREATED:
                self._created.clear()
            self._created[statement.effects[0].database, statement.effects[0].name] = types
        return rewritten(statement)

    def found(self, table: Table) -> dict[int, int] | None:
        """Maps the numbers of the table's columns with MariaDB's own types to these types (``decode.table_map``); None
        if the table map shows all types.

        Raises PromiseError for a column that was altered or dropped since its rows were logged.
        """
        open_columns = [
            (at, column)
            for at, column in enumerate(table.columns)
            if column.type == STRING and column.charset == "binary" and column.meta in _SIZES
        ]
        if not open_columns:
            return None
        kinds = self._kinds(table, [column for _, column in open_columns])
        own = {}
        for at, column in open_columns:
            number, length = _OWN.get(kinds[column.name], (0, 0))
            if number and length == column.meta:
                own[at] = number
            elif kinds[column.name] != "binary":
                raise _altered(table, column.name)
        return own

    def _kinds(self, table: Table, columns: list[Column]) -> dict[str, str]:
        """Returns the types of the columns; empty for a column that has another length at present, or is gone."""
        created = self._created.get((table.database, table.name), {})
        known = {column.name: created.get(column.name, "") for column in columns}
        if all(kind in _OWN or kind in _BINARIES for kind in known.values()):
            return {name: kind if kind in _OWN else "binary" for name, kind in known.items()}
        types = self._present(table.database, table.name)
        for column in columns:
            kind, size = types.get(column.name, ("", None))
            known[column.name] = kind if size in (None, column.meta) else ""
        return known


def _altered(table: Table, column: str) -> PromiseError:
    return PromiseError(
        f"column {column} was BINARY, or UUID or INET of MariaDB, before an ALTER: which of them is not known any more",
        code="CDC-EVENT-ALTERED-TYPE",
        where=f"table {table.database}.{table.name}",
        hint=past(table.database, table.name),
    )


def present_types(
    settings: dict[str, Any], database: str, table: str, *, name: str
) -> dict[str, tuple[str, int | None]]:
    """Queries the leader ``name`` for the types and the lengths in bytes of the table's columns."""
    with connected_cursor(settings, name) as cursor:
        cursor.execute(
            "SELECT COLUMN_NAME, DATA_TYPE, CHARACTER_OCTET_LENGTH FROM information_schema.COLUMNS "
            "WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (database, table),
        )
        return {row[0]: (row[1], row[2]) for row in cursor.fetchall()}
