"""Appends to lists on the leader at a steady rate, and statements on other tables beside."""

import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pymysql
from pymysql.constants import CLIENT

from cdc.sandbox.server.mysql import MySql
from tests.checks.list_append import Transaction

__all__ = ["DATABASE", "PER_WINDOW", "Appending", "Others", "window_of"]

DATABASE = "soak"
_KEYS, _PER_KEY = 60, 40  # lists that are appended to at a time, and about so many numbers in each
PER_WINDOW = _KEYS * _PER_KEY
_APPEND = "INSERT INTO lists (k, v) VALUES ({key}, '{number}') ON DUPLICATE KEY UPDATE v = CONCAT(v, ' {number}')"
_LARGE = 40
_TRIED_AGAIN = (1205, 1213)  # a wait for a lock that took too long, a deadlock
_TABLES = (
    "CREATE TABLE IF NOT EXISTS lists (k INT PRIMARY KEY, v TEXT)",
    "CREATE TABLE IF NOT EXISTS extra (id BIGINT PRIMARY KEY, n INT, t VARCHAR(200))",
)
_OTHERS_SECONDS = 0.1


def window_of(number: int) -> int:
    """The first key of the lists to which numbers about ``number`` are appended."""
    return number // PER_WINDOW * _KEYS


class Appending(threading.Thread):
    """A session that appends until ``stop``: ``rate`` transactions a second, of one to four appends.

    One of ``large_every`` has forty.

    ``numbers`` and ``clock`` are shared by all sessions. What the leader has confirmed goes into ``confirmed``.
    ``failure`` is what has ended the thread.
    """

    def __init__(
        self,
        leader: MySql,
        *,
        rate: float,
        large_every: int,
        numbers: "itertools.count[int]",
        clock: "itertools.count[int]",
        confirmed: "SimpleQueue[Transaction]",
    ) -> None:
        super().__init__(daemon=True)
        self._leader = leader
        self._pause = 1 / rate
        self._large_every = large_every
        self._numbers, self._clock = numbers, clock
        self._confirmed = confirmed
        self._chance = random.Random()
        self.stop = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            with self._leader.connect(database=DATABASE, client_flag=CLIENT.MULTI_STATEMENTS) as connection:
                due = time.monotonic()
                while not self.stop.wait(max(0.0, due - time.monotonic())):
                    # After a wait for a lock the session does not write faster than its rate.
                    due = max(due, time.monotonic() - 1) + self._pause
                    self._transaction(connection)
        except BaseException as failure:  # noqa: BLE001 - the soak ends with it
            self.failure = failure

    def _transaction(self, connection: Any) -> None:
        size = _LARGE if self._chance.randrange(self._large_every) == 0 else self._chance.randint(1, 4)
        begun, numbers = next(self._clock), [next(self._numbers) for _ in range(size)]
        first = window_of(numbers[0])
        # Sessions that lock keys in ascending order seldom wait for one another in a circle.
        keys = sorted(first + self._chance.randrange(_KEYS) for _ in numbers)
        appends = tuple(zip(keys, numbers, strict=True))
        statements = [_APPEND.format(key=key, number=number) for key, number in appends]
        try:
            with connection.cursor() as cursor:
                cursor.execute(";".join(("BEGIN", *statements, "COMMIT")))
                while cursor.nextset():
                    pass
        except pymysql.MySQLError as error:
            if error.args[0] not in _TRIED_AGAIN:
                raise
            connection.rollback()
            return
        self._confirmed.put(Transaction(appends, begun, next(self._clock)))


class Others(threading.Thread):
    """A session that changes a row of another table ten times a second, and executes DDL every ``ddl_seconds``.

    Half of the DDL is of the table of lists. ``statements`` counts the DDL.
    """

    def __init__(self, leader: MySql, *, ddl_seconds: float, first: int) -> None:
        super().__init__(daemon=True)
        self._leader = leader
        self._ddl_seconds = ddl_seconds
        self._ddl = _ddl(first)
        self.statements = 0
        self.stop = threading.Event()
        self.failure: BaseException | None = None

    @staticmethod
    def create_tables(leader: MySql) -> None:
        """Creates the database and the tables, unless they are there."""
        with leader.connect() as connection, connection.cursor() as cursor:
            for statement in (f"CREATE DATABASE IF NOT EXISTS {DATABASE}", f"USE {DATABASE}", *_TABLES):
                cursor.execute(statement)

    def run(self) -> None:
        try:
            with self._leader.connect(database=DATABASE) as connection, connection.cursor() as cursor:
                due = time.monotonic()
                for statement in _rows():
                    if self.stop.wait(_OTHERS_SECONDS):
                        return
                    cursor.execute(statement)
                    if time.monotonic() >= due:
                        due += self._ddl_seconds
                        cursor.execute(next(self._ddl))
                        self.statements += 1
        except BaseException as failure:  # noqa: BLE001 - the soak ends with it
            self.failure = failure


def _rows() -> Iterator[str]:
    """Inserts, updates and deletes of ``extra``, of some thousand rows that come again and again."""
    chance = random.Random()
    while True:
        number = chance.randrange(5000)
        yield chance.choice((
            f"REPLACE INTO extra (id, n, t) VALUES ({number}, {chance.randrange(1000)}, REPEAT('x', {number % 200}))",
            f"UPDATE extra SET n = n + 1 WHERE id BETWEEN {number} AND {number + 20}",
            f"DELETE FROM extra WHERE id = {number}",
        ))  # fmt: skip


def _ddl(first: int) -> Iterator[str]:
    """DDL that can be executed in this order for ever; ``first`` is a number that no earlier one had."""
    forms: tuple[Callable[[int], str], ...] = (
        lambda n: f"ALTER TABLE lists ADD COLUMN c{n} INT DEFAULT {n}",
        lambda n: f"ALTER TABLE extra ADD COLUMN c{n} VARCHAR(20) DEFAULT 'of {n}' AFTER id",
        lambda n: f"ALTER TABLE lists DROP COLUMN c{n}",
        lambda n: f"CREATE TABLE t{n} (id INT PRIMARY KEY, n DECIMAL(10, 2)) AS SELECT id, n FROM extra LIMIT 100",
        lambda n: f"ALTER TABLE lists MODIFY v {('MEDIUMTEXT', 'TEXT')[n % 2]}",
        lambda n: f"ALTER TABLE extra DROP COLUMN c{n}, ADD INDEX i{n} (n)",
        lambda n: f"RENAME TABLE t{n} TO u{n}",
        lambda n: f"ALTER TABLE extra DROP INDEX i{n}",
        lambda n: f"DROP TABLE u{n}",
    )
    for number in itertools.count(first):
        for form in forms:
            yield form(number)
