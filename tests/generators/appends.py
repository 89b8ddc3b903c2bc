"""A list-append workload on a leader, and snapshot reads of its lists on a follower (tests/checks/list_append.py)."""

import itertools
import json
import random
import threading
from collections.abc import Iterable
from typing import Any, Self

import pymysql

from cdc.model.record import Record
from cdc.sandbox.server.mysql import MySql
from tests.checks.list_append import Appends, Lists, Transaction

__all__ = ["AppendLoad", "SnapshotReads", "lists_of", "transactions_of"]

_TABLE = "CREATE TABLE lists (k INT PRIMARY KEY, v MEDIUMTEXT)"
_APPEND = "INSERT INTO lists VALUES (%s, %s) ON DUPLICATE KEY UPDATE v = CONCAT(v, ' ', VALUES(v))"
_KEYS, _PER_KEY = 6, 40  # lists that are appended to at a time, and about so many numbers in each
_LARGE, _LARGE_EVERY = 40, 30


class AppendLoad:
    """Writes in ``sessions`` threads, from ``with`` to its end. ``confirmed`` are the leader's commits."""

    def __init__(self, leader: MySql, *, database: str, seed: int, sessions: int = 2, pause: float = 0.02) -> None:
        self._leader = leader
        self._database = database
        self._pause = pause
        self._numbers, self._clock = itertools.count(1), itertools.count()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(seed + each,)) for each in range(sessions)]
        self._failure: BaseException | None = None
        self.confirmed: list[Transaction] = []

    def __enter__(self) -> Self:
        with self._leader.connect() as connection, connection.cursor() as cursor:
            for statement in (f"CREATE DATABASE {self._database}", f"USE {self._database}", _TABLE):
                cursor.execute(statement)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._failure:
            raise self._failure

    def _run(self, seed: int) -> None:
        chance = random.Random(seed)
        try:
            with self._leader.connect(database=self._database) as connection, connection.cursor() as cursor:
                while not self._stop.is_set():
                    self._transaction(cursor, chance)
                    self._stop.wait(self._pause)
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
            self._failure = failure

    def _transaction(self, cursor: Any, chance: random.Random) -> None:
        size = _LARGE if chance.randrange(_LARGE_EVERY) == 0 else chance.randint(1, 4)
        begun, appends = next(self._clock), []
        cursor.execute("BEGIN")
        # Sessions that lock keys in ascending order never wait for one another in a circle.
        first = len(self.confirmed) // _PER_KEY * 2
        for key in sorted(first + chance.randrange(_KEYS) for _ in range(size)):
            number = next(self._numbers)
            cursor.execute(_APPEND, (key, str(number)))
            appends.append((key, number))
        cursor.execute("COMMIT")
        self.confirmed.append(Transaction(tuple(appends), begun, next(self._clock)))


class SnapshotReads:
    """Reads all lists again and again in a thread, from ``with`` to its end, each time in one snapshot. ``found`` are
    the states that differ from the one before.
    """

    def __init__(self, follower: MySql, *, database: str, pause: float = 0.02) -> None:
        self._follower = follower
        self._database = database
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: BaseException | None = None
        self._states: list[dict[int, str]] = []
        self.reads = 0

    @property
    def found(self) -> list[Lists]:
        return [{key: _numbers(text) for key, text in state.items()} for state in self._states]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            with self._follower.root() as connection, connection.cursor() as cursor:
                while not self._stop.is_set():
                    state = _read(cursor, self._database)
                    self.reads += 1
                    if not self._states or state != self._states[-1]:
                        self._states.append(state)
                    self._stop.wait(self._pause)
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
            self._failure = failure


def lists_of(server: MySql, database: str) -> Lists:
    """All lists that the server holds."""
    with server.root() as connection, connection.cursor() as cursor:
        return {key: _numbers(text) for key, text in _read(cursor, database).items()}


def transactions_of(records: Iterable[Record]) -> list[Appends]:
    """The workload's transactions that a stream contains, in its order. Whatever is before a ``last`` is one."""
    found: list[Appends] = []
    appends: list[tuple[int, int]] = []
    for record in records:
        for row in record.rows if record.uri.table == "lists" else ():
            key, text = (json.loads(json.dumps(value)) for value in row.after or ())
            appends.append((int(next(iter(key.values()))), _numbers(next(iter(text.values())))[-1]))
        if record.last and appends:
            found.append(tuple(appends))
            appends = []
    return [*found, tuple(appends)] if appends else found


def _read(cursor: Any, database: str) -> dict[int, str]:
    """The lists as their texts, of one snapshot; empty before there is a table."""
    try:
        cursor.execute(f"SELECT k, v FROM {database}.lists")
    except pymysql.MySQLError as error:
        if error.args[0] not in (1146, 1049, 1044):  # no such table, no such database
            raise
        return {}
    return dict(cursor.fetchall())


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split()]
