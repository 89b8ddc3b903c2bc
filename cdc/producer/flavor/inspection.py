"""Inspects a leader of either kind, MySQL or MariaDB."""

from typing import Any

from cdc.errors import UserError
from cdc.producer.binlog import leader as mysql
from cdc.producer.binlog.leader import Leader
from cdc.producer.flavor import mariadb_leader

__all__ = ["inspect"]


def inspect(
    settings: dict[str, Any], *, name: str, partial_json: bool = False, problems: list[UserError] | None = None
) -> Leader:
    """Queries the state of a leader of either kind; for arguments and errors see ``producer.binlog.leader.inspect``."""
    with mysql.connected_cursor(settings, name) as cursor:
        cursor.execute("SELECT VERSION()")
        if mariadb_leader.is_mariadb(cursor.fetchone()[0]):
            return mariadb_leader.inspect(cursor, name=name, problems=problems)
        return mysql.inspect_with(cursor, name=name, partial_json=partial_json, problems=problems)
