"""Queries a MariaDB leader's settings, GTIDs and binlog files; refuses a leader that can't be followed faithfully.

A MariaDB server has no UUID: its identity is its ``server_id``. With ``gtid_strict_mode`` the sequence numbers of a
domain grow, so that the last GTID of a domain stands for all its earlier GTIDs.
"""

import re
from collections.abc import Mapping
from typing import Any

import pymysql

from cdc.errors import UserError
from cdc.model.gtid import executed_before
from cdc.model.position import Position
from cdc.producer.binlog.leader import (
    Leader,
    first_known,
    inspected,
    missing_grant,
    not_followed,
    require_all_logged,
    settings_problems,
    unlogged_replica,
)
from cdc.producer.flavor.mariadb_events import Session, mode_bits, sql_mode

__all__ = ["gtids_at", "inspect", "is_mariadb"]

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
    # Binlog_snapshot_position is already the end of the group when the first of them is visible
    # (``flavor.mariadb_visibility``).
    "binlog_optimize_thread_scheduling": ("ON", "start the server with its default"),
    "binlog_alter_two_phase": ("OFF", f"SET GLOBAL binlog_alter_two_phase = OFF, {_PERMANENT}"),
    # From version 11 on; by default a text without a collation has one that MySQL does not have.
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
            hint=f"of MariaDB, {known} are supported; the leader may also be MySQL 8.0 or newer",
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
