"""Servers that tests may kill, used again by later tests once nothing is left of the test before.

To start a server costs more than most tests do with it. One that is given back has its databases dropped, its binlog
begun anew and its connections closed; where it has other accounts or settings than at first, a prepared transaction, a
replica's state, or does not run, it ends instead. Between two tests a server sleeps (SIGSTOP), and so uses no CPU time.
"""

import os
import shutil
import signal
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymysql
from confluent_kafka import KafkaException

from cdc.errors import CdcError
from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.harness.keeper import FEW_THREADS, jvm
from tests.harness.wait import LIMIT_SECONDS, until

__all__ = ["KILLED_AT_MOST", "ServerPool", "state_of"]

# A machine that goes down would lose what is not synchronised with its disk; a server that is killed loses nothing.
# Native AIO reserves requests, of which a machine has few (fs.aio-max-nr), for as long as a server lives.
KILLED_AT_MOST = (
    "--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2", "--innodb-log-writer-threads=OFF",
    "--innodb-use-native-aio=OFF",
)  # fmt: skip
_ACCOUNTS = ("user", "db", "tables_priv", "columns_priv", "procs_priv", "global_grants", "role_edges", "func", "plugin")
# They change with what a server does, or are given by ``ServerPool``.
_CHANGING = frozenset({"gtid_executed", "gtid_purged", "port", "server_id", "server_uuid"})
_SYSTEM = frozenset({"information_schema", "mysql", "performance_schema", "sys"})
_KEPT = 2  # of one kind
_ASLEEP = 4  # of all kinds: each has some 200 MB of memory and of the disk
State = tuple[dict[str, str], list[tuple[Any, ...]]]


@dataclass
class _Pooled:
    """A server of the pool, and what it was like at first."""

    server: MySql | Kafka
    kind: Hashable
    state: State | None = None


@dataclass
class ServerPool:
    """The servers of one process that runs tests; their folders are in ``folder``."""

    folder: Path
    _asleep: dict[Hashable, list[_Pooled]] = field(default_factory=dict)
    _number: int = 0

    def mysql(self, *options: str, server_id: int = 1, find: Callable[..., Any] = mysql_programs) -> _Pooled:
        """A server that runs with the ``options`` and no data."""
        kind = (options, find)
        pooled = self._woken(kind)
        if pooled is None:
            server = MySql(self._new("mysql"), extra_args=(*KILLED_AT_MOST, *options), server_id=server_id, find=find)
            return _Pooled(server.start(), kind, state_of(server))
        assert isinstance(pooled.server, MySql)
        pooled.server.server_id = server_id
        _run(pooled.server, [f"SET GLOBAL server_id = {server_id}"])
        return pooled

    def kafka(self) -> _Pooled:
        """A broker that runs with the settings of all tests, without topics of an earlier test."""
        pooled = self._woken("kafka")
        if pooled is None:
            return _Pooled(Kafka(self._new("kafka"), settings=FEW_THREADS, jvm=jvm()).start(), "kafka")
        # After its sleep it has to register again, before which no partition has a leader.
        assert isinstance(pooled.server, Kafka)
        admin = pooled.server.admin()
        until(lambda: _has_leaders(admin), what="a broker that is awake")
        return pooled

    def give_back(self, pooled: _Pooled) -> None:
        """Keeps the server for a later test if it is like a new one, else ends it."""
        asleep = self._asleep.setdefault(pooled.kind, [])
        room = len(asleep) < _KEPT and sum(map(len, self._asleep.values())) < _ASLEEP
        if room and pooled.server.running() and _like_new(pooled):
            os.kill(pooled.server.process.pid, signal.SIGSTOP)
            asleep.append(pooled)
        else:
            self._end(pooled)

    def close(self) -> None:
        """Ends all servers."""
        for pooled in [each for asleep in self._asleep.values() for each in asleep]:
            self._end(pooled)

    def _new(self, name: str) -> Path:
        self._number += 1
        return self.folder / f"{name}{self._number}"

    def _woken(self, kind: Hashable) -> _Pooled | None:
        asleep = self._asleep.get(kind)
        if not asleep:
            return None
        pooled = asleep.pop()
        os.kill(pooled.server.process.pid, signal.SIGCONT)
        return pooled

    def _end(self, pooled: _Pooled) -> None:
        pooled.server.kill()
        shutil.rmtree(pooled.server.folder, ignore_errors=True)


def _like_new(pooled: _Pooled) -> bool:
    """Whether the server could be brought into the state of a new one."""
    try:
        if isinstance(pooled.server, Kafka):
            _without_topics(pooled.server)
            return True
        _emptied(pooled.server)
        return pooled.state == state_of(pooled.server)
    except (pymysql.MySQLError, KafkaException, CdcError, OSError):
        return False


def _emptied(server: MySql) -> None:
    own = "SELECT id FROM information_schema.processlist WHERE user NOT IN ('system user', 'event_scheduler')"
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(f"{own} AND id <> CONNECTION_ID()")
        for (number,) in cursor.fetchall():
            with suppress(pymysql.MySQLError):  # it has ended meanwhile
                cursor.execute(f"KILL {number}")
        cursor.execute("SET lock_wait_timeout = 30, foreign_key_checks = 0")
        cursor.execute("SHOW DATABASES")
        for database in {name for (name,) in cursor.fetchall()} - _SYSTEM:
            cursor.execute("DROP DATABASE `{}`".format(database.replace("`", "``")))
        cursor.execute("SELECT VERSION()")
        (version,) = cursor.fetchone()
        cursor.execute("RESET MASTER" if version.startswith("8.0.") else "RESET BINARY LOGS AND GTIDS")


def state_of(server: MySql) -> State:
    """The settings, and what else a test may leave: accounts, prepared transactions, a replica's state."""
    accounts = ", ".join(f"mysql.{table}" for table in _ACCOUNTS)
    variables, *others = _run(
        server, ["SHOW GLOBAL VARIABLES", f"CHECKSUM TABLE {accounts}", "XA RECOVER", "SHOW REPLICA STATUS"]
    )
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


def _without_topics(broker: Kafka) -> None:
    admin = broker.admin()
    topics = [name for name in admin.list_topics(timeout=LIMIT_SECONDS).topics if not name.startswith("__")]
    if topics:
        for deleted in admin.delete_topics(topics).values():
            deleted.result(LIMIT_SECONDS)
    until(lambda: not set(topics) & set(admin.list_topics(timeout=LIMIT_SECONDS).topics), what="the end of the topics")


def _has_leaders(admin: Any) -> bool:
    try:
        known = admin.list_topics(timeout=5)
    except KafkaException:
        return False
    places = [place for topic in known.topics.values() for place in topic.partitions.values()]
    return bool(known.brokers) and all(place.leader in known.brokers for place in places)
