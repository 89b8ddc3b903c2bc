"""Servers that tests may kill, used again by later tests once nothing is left of the test before.

To start a server costs more than most tests do with it. One that is given back has its databases dropped, its binlog
begun anew, its connections closed and its settings put back, and is no replica any more; where it has other accounts or
tablespaces than at first, a setting that only a start can put back, a prepared transaction, or does not run, it ends
instead. Between two tests a server sleeps (SIGSTOP), and so uses no CPU time.
"""

import os
import shutil
import signal
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql

from cdc.errors import CdcError
from cdc.sandbox.fetch.mysql_programs import mysql_programs, mysql_programs_80
from cdc.sandbox.server.mysql import MySql

__all__ = ["KILLED_AT_MOST", "ON_80", "ServerPool", "know_vectors", "programs_of", "state_of"]

# A machine that goes down would lose what is not synchronised with its disk; a server that is killed loses nothing.
# Native AIO reserves requests, of which a machine has few (fs.aio-max-nr), for as long as a server lives.
KILLED_AT_MOST = (
    "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync",
    "--innodb-log-writer-threads=OFF", "--innodb-use-native-aio=OFF",
)  # fmt: skip
_ACCOUNTS = (
    "user", "db", "tables_priv", "columns_priv", "procs_priv", "proxies_priv", "global_grants", "role_edges",
    "default_roles", "servers", "component", "func", "plugin",
)  # fmt: skip
_TABLESPACES = (
    "SELECT name, state FROM information_schema.innodb_tablespaces "
    "WHERE space_type IN ('General', 'Undo') ORDER BY name"
)
# They change with what a server does, or are given by ``ServerPool``.
_CHANGING = frozenset({"gtid_executed", "gtid_purged", "port", "server_id", "server_uuid"})
_SYSTEM = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_ASLEEP = 4  # each has some 300 MB of memory and 200 MB of the disk
ON_80 = frozenset(os.environ.get("CDC_TESTS_ON_80", "").split())
_FOLLOWER_IDS = frozenset({2})
State = tuple[dict[str, str], list[tuple[Any, ...]]]


def programs_of(role: str) -> Callable[..., Any]:
    """The programs of a ``leader`` or ``follower``: of MySQL 8.0 if ``CDC_TESTS_ON_80`` names the role."""
    return mysql_programs_80 if role in ON_80 else mysql_programs


def know_vectors() -> bool:
    """Whether leader and follower have the type VECTOR, which MySQL knows from 9.0 on."""
    return all(programs_of(role)().version >= (9,) for role in ("leader", "follower"))


@dataclass(eq=False)
class _Pooled:
    """A server of the pool, and what it was like at first."""

    server: MySql
    kind: Hashable
    state: State | None = None


@dataclass
class ServerPool:
    """The servers of one process that runs tests; their folders are in ``folder``."""

    folder: Path
    _all: list[_Pooled] = field(default_factory=list)
    _asleep: list[_Pooled] = field(default_factory=list)  # the one that was used last is the last one
    _number: int = 0

    def mysql(
        self, *options: str, server_id: int = 1, port: int = 0, find: Callable[..., Any] | None = None
    ) -> _Pooled:
        """A server that runs with the ``options`` and no data, at ``port`` or at any free one."""
        find = find or programs_of("follower" if server_id in _FOLLOWER_IDS else "leader")
        kind = (options, port, find)
        pooled = next((each for each in reversed(self._asleep) if each.kind == kind), None)
        if pooled is None:
            return self._started(kind, server_id)
        self._asleep.remove(pooled)
        os.kill(pooled.server.process.pid, signal.SIGCONT)
        pooled.server.server_id = server_id
        _run(pooled.server, [f"SET GLOBAL server_id = {server_id}"])
        return pooled

    def give_back(self, pooled: _Pooled) -> None:
        """Keeps the server for a later test if it is like a new one, else ends it."""
        if not (pooled.server.running() and _like_new(pooled)):
            self._end(pooled)
            return
        os.kill(pooled.server.process.pid, signal.SIGSTOP)
        self._asleep.append(pooled)
        if len(self._asleep) > _ASLEEP:
            self._end(self._asleep.pop(0))

    def close(self) -> None:
        """Ends all servers."""
        for pooled in self._all.copy():
            self._end(pooled)

    def _started(self, kind: tuple[tuple[str, ...], int, Callable[..., Any]], server_id: int) -> _Pooled:
        options, port, find = kind
        self._number += 1
        folder = self.folder / f"mysql{self._number}"
        server = MySql(folder, port=port, extra_args=(*KILLED_AT_MOST, *options), server_id=server_id, find=find)
        self._all.append(pooled := _Pooled(server, kind))
        pooled.state = state_of(server.start())
        return pooled

    def _end(self, pooled: _Pooled) -> None:
        self._all.remove(pooled)
        pooled.server.kill()
        shutil.rmtree(pooled.server.folder, ignore_errors=True)


def _like_new(pooled: _Pooled) -> bool:
    """Whether the server could be brought into the state of a new one."""
    assert pooled.state is not None
    try:
        _emptied(pooled.server, pooled.state[0])
        return pooled.state == state_of(pooled.server)
    except (pymysql.MySQLError, CdcError, OSError):
        return False


def _emptied(server: MySql, settings: Mapping[str, str]) -> None:
    own = "SELECT id FROM information_schema.processlist WHERE user NOT IN ('system user', 'event_scheduler')"
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(f"{own} AND id <> CONNECTION_ID()")
        for (number,) in cursor.fetchall():
            with suppress(pymysql.MySQLError):  # it has ended meanwhile
                cursor.execute(f"KILL {number}")
        # First what might refuse, or bring back, what follows.
        cursor.execute("SHOW GLOBAL VARIABLES")
        for name, value in cursor.fetchall():
            if name not in _CHANGING and value != (first := settings.get(name, value)):
                cursor.execute(f"SET GLOBAL {name} = %s", [int(first) if first.isdigit() else first])
        cursor.execute("STOP REPLICA")
        cursor.execute("RESET REPLICA ALL")
        cursor.execute("SET lock_wait_timeout = 30, foreign_key_checks = 0")
        cursor.execute("SHOW DATABASES")
        for database in {name for (name,) in cursor.fetchall()} - _SYSTEM:
            cursor.execute("DROP DATABASE `{}`".format(database.replace("`", "``")))
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone()
        cursor.execute("RESET MASTER" if version.startswith("8.0.") else "RESET BINARY LOGS AND GTIDS")


def state_of(server: MySql) -> State:
    """The settings, and what else a test may leave: accounts, tablespaces, prepared transactions, a replica's state."""
    accounts = ", ".join(f"mysql.{table}" for table in _ACCOUNTS)
    asked = ["SHOW GLOBAL VARIABLES", f"CHECKSUM TABLE {accounts}", _TABLESPACES, "XA RECOVER", "SHOW REPLICA STATUS"]
    variables, *others = _run(server, asked)
    kept = {name: value for name, value in variables if name not in _CHANGING}
    persisted = [("persisted", (server.data / "mysqld-auto.cnf").exists())]
    return kept, [*(row for rows in others for row in rows), *persisted]


def _run(server: MySql, statements: Sequence[str]) -> list[list[tuple[Any, ...]]]:
    found = []
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
            found.append(list(cursor.fetchall()))
    return found
