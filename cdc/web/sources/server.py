"""Queries the server of a profile: a leader for the end of its binlog, a follower for its progress."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pymysql

from cdc.config.profile import Profile
from cdc.consumer.state.status import Status, read_status
from cdc.errors import CdcError
from cdc.model.position import Position
from cdc.producer.binlog.leader import connected_cursor, end_of_binlog
from cdc.producer.flavor.mariadb_leader import is_mariadb

__all__ = ["FOLLOWER", "LEADER", "ServerAnswer", "ServerSource"]

LEADER, FOLLOWER = "leader", "follower"


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """The answer of a server. ``end`` is the end of its binlog, ``logs`` are the names and sizes of its files; ``end``
    is None and ``logs`` is empty if the server has no binlog, or if the user may not query it. ``status`` is the status
    of a follower, None for a leader.

    ``role`` is LEADER or FOLLOWER; it is empty as long as it is unknown.
    """

    version: str
    uuid: str
    end: Position | None
    logs: tuple[tuple[str, int], ...]
    role: str
    status: Status | None = None


class ServerSource:
    """Queries the server in ``[database]`` of ``profile``. ``leader_uuid()`` returns the leader's id according to the
    commit log; it is empty if unknown.
    """

    def __init__(self, profile: Profile, *, leader_uuid: Callable[[], str]) -> None:
        self._profile = profile
        self._leader_uuid = leader_uuid

    def __call__(self) -> ServerAnswer:
        """Queries the server. Raises UserError or Disconnected if it does not answer."""
        database = self._profile.database
        with connected_cursor(database.settings(), str(database)) as cursor:
            version, uuid = _identity(cursor)
            end, logs = _binlog(cursor)
        if uuid and uuid == self._leader_uuid():
            return ServerAnswer(version, uuid, end, logs, LEADER)
        if is_mariadb(version):
            return ServerAnswer(version, uuid, end, logs, LEADER)  # followers are always MySQL
        status = self._status()
        known = status is not None and (status.applied is not None or status.consumer is not None)
        return ServerAnswer(version, uuid, end, logs, FOLLOWER if known else "", status)

    def _status(self) -> Status | None:
        """Queries the follower's status; None if the server may be the leader and the query fails."""
        profile = self._profile
        try:
            return read_status(profile.database, resource=profile.mysql_resource_name, schema=profile.consumer.schema)
        except CdcError:
            if self._leader_uuid():  # another server is the leader, so this one should be a follower
                raise
            return None


def _identity(cursor: Any) -> tuple[str, str]:
    cursor.execute("SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'server_uuid', 'server_id')")
    found = dict(cursor.fetchall())
    # MariaDB has no UUID, so the producer uses its server_id.
    return str(found["version"]), str(found.get("server_uuid") or f"MariaDB server_id {found['server_id']}")


def _binlog(cursor: Any) -> tuple[Position | None, tuple[tuple[str, int], ...]]:
    try:
        end = end_of_binlog(cursor)
        cursor.execute("SHOW BINARY LOGS")
        return end, tuple((str(row[0]), int(row[1])) for row in cursor.fetchall())
    except (pymysql.ProgrammingError, pymysql.OperationalError, IndexError):
        return None, ()  # there is no binlog, or the user may not query it
