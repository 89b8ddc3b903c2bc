"""Whether the server answers a new connection, the classes of its errors, and its version."""

import re

import pymysql

from cdc.config.profile import Database
from cdc.consumer.errors import UNREACHABLE, Interrupted, Refused, server_error
from cdc.errors import UserError
from cdc.service.mysql_connection import connected

__all__ = ["ask", "require_mysql", "responds", "translated", "version_number", "version_text"]

_PROBE_SECONDS = 3.0
_OLDEST = 8


def ask(database: Database, *, seconds: float) -> None:
    """Run a query over a connection of its own. Raises Interrupted or Refused where no result comes in time."""
    limits = {"connect_timeout": seconds, "read_timeout": seconds, "write_timeout": seconds}
    try:
        with connected(**database.settings() | limits) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (pymysql.MySQLError, OSError) as error:
        raise translated(error) from None


def responds(database: Database) -> bool:
    """Whether the server answers a new connection, even if with an error."""
    try:
        ask(database, seconds=_PROBE_SECONDS)
    except Interrupted as error:
        return error.code not in UNREACHABLE
    except Refused:
        pass
    return True


def translated(error: Exception) -> Interrupted | Refused:
    """The error of our own for one of pymysql's, or of the socket's."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    # pymysql reports a connection that is already closed as InterfaceError 0.
    failed = isinstance(error, (OSError, pymysql.InterfaceError))
    return server_error(code, text or ("" if code else repr(error)), connection_failed=failed)


def require_mysql(version: str, *, where: str) -> None:
    """Raise UserError where a server with this ``VERSION()`` is no MySQL, or too old."""
    if "mariadb" in version.lower() or int(re.findall(r"\d+", version)[0]) < _OLDEST:
        raise UserError(f"the follower is {version}", where=where, hint="MySQL 8.0 or newer is needed, not MariaDB")


def version_text(number: int) -> str:
    """The version with this ``version_number``, as people write it."""
    return f"{number // 10_000}.{number // 100 % 100}.{number % 100}"


def version_number(version: str) -> int:
    """The number of a server's version, as in executable comments: 90704 for 9.7.4."""
    major, minor, patch = re.findall(r"\d+", version)[:3]
    return int(major) * 10_000 + int(minor) * 100 + int(patch)
