"""A mixed load on the leader: inserts, updates, deletes, large transactions and DDL, which continues
through crashes.
"""

import random
import threading
from collections.abc import Callable
from typing import Any, Self

import pymysql

from cdc.sandbox.server.mysql import MySql

DATABASE = "mixed"
_TABLES = (
    "CREATE TABLE IF NOT EXISTS keyed (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12, 2))",
    "CREATE TABLE IF NOT EXISTS keyless (name VARCHAR(40), ratio FLOAT, born DATE)",
    "CREATE TABLE IF NOT EXISTS coded (code VARCHAR(20) PRIMARY KEY, note JSON, changed TIMESTAMP(6) NULL)",
)
# Errors of a server that is killed, or starting.
_AWAY = (pymysql.err.OperationalError, pymysql.err.InterfaceError, ConnectionError)


class Load:
    """A load that runs in a thread from ``with`` to its end; ``transactions`` counts those that the leader
    confirmed.
    """

    def __init__(
        self, leader: MySql, *, seed: int | str, database: str = DATABASE, pause_seconds: float = 0.02
    ) -> None:
        self._leader = leader
        self.database = database
        self._random = random.Random(seed)
        self._pause = pause_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._failure: BaseException | None = None
        self.transactions = 0

    def __enter__(self) -> Self:
        self.fill()
        self._thread.start()
        return self

    def fill(self) -> None:
        """Creates the tables."""
        with self._leader.connect() as connection, connection.cursor() as cursor:
            for statement in (f"CREATE DATABASE IF NOT EXISTS {self.database}", f"USE {self.database}", *_TABLES):
                cursor.execute(statement)

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure:
            raise self._failure

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    with self._leader.connect(database=self.database) as connection, connection.cursor() as cursor:
                        self._work(cursor)
                except _AWAY:
                    self._stop.wait(0.1)
        except BaseException as failure:  # noqa: BLE001 - raised again in the test's own thread
            self._failure = failure

    def _work(self, cursor: Any) -> None:
        while not self._stop.is_set():
            work = self._random.choices((self._changes, self._bulk, self._definition), weights=(95, 3, 2))[0]
            work(cursor)
            self.transactions += 1
            self._stop.wait(self._pause)  # a load without pauses would take CPU time from everything else

    def _changes(self, cursor: Any) -> None:
        """One to five changes in one transaction."""
        cursor.execute("BEGIN")
        for _ in range(self._random.randint(1, 5)):
            change: Callable[[Any], None] = self._random.choice((self._insert, self._update, self._delete))
            change(cursor)
        cursor.execute(self._random.choices(("COMMIT", "ROLLBACK"), weights=(9, 1))[0])

    def _insert(self, cursor: Any) -> None:
        name, number = self._name(), self._random.randint(-9999, 9999)
        cursor.execute("INSERT INTO keyed (name, amount) VALUES (%s, %s)", (name, number / 100))
        cursor.execute("INSERT INTO keyless (name, ratio, born) VALUES (%s, %s, '1999-03-30')", (name, number / 7))
        cursor.execute(
            "INSERT INTO coded (code, note, changed) VALUES (%s, JSON_OBJECT('n', %s), NOW(6)) "
            "ON DUPLICATE KEY UPDATE changed = NOW(6)",
            (f"c{number % 500}", number),
        )

    def _update(self, cursor: Any) -> None:
        cursor.execute("UPDATE keyed SET amount = amount + 1 ORDER BY id DESC LIMIT 3")
        cursor.execute("UPDATE keyless SET ratio = ratio / 3 WHERE name = %s", (self._name(),))
        cursor.execute("UPDATE keyed SET id = id + 100000 WHERE id < 100000 ORDER BY id DESC LIMIT 1")

    def _delete(self, cursor: Any) -> None:
        cursor.execute("DELETE FROM keyed ORDER BY id LIMIT 1")
        cursor.execute("DELETE FROM keyless WHERE name = %s LIMIT 2", (self._name(),))
        cursor.execute("DELETE FROM coded WHERE code = %s", (f"c{self._random.randint(0, 500)}",))

    def _bulk(self, cursor: Any) -> None:
        values = ", ".join(f"('{self._name()}', {number})" for number in range(800))
        cursor.execute(f"INSERT INTO keyed (name, amount) VALUES {values}")

    def _definition(self, cursor: Any) -> None:
        """A DDL statement; a crash may have left the one before it half of a pair, so all of them accept any state."""
        number = self._random.randint(0, 3)
        statement = self._random.choice(
            (
                f"CREATE TABLE IF NOT EXISTS extra{number} (id INT PRIMARY KEY, t TEXT)",
                f"DROP TABLE IF EXISTS extra{number}",
                f"CREATE TABLE IF NOT EXISTS extra{number} SELECT id, name FROM keyed LIMIT 20",
                "TRUNCATE TABLE keyless",
                "ALTER TABLE keyed ADD COLUMN more INT DEFAULT 7",
                "ALTER TABLE keyed DROP COLUMN more",
                f"RENAME TABLE extra{number} TO extra{number + 10}",
                f"DROP TABLE IF EXISTS extra{number + 10}",
            )
        )
        try:
            cursor.execute(statement)
        except pymysql.err.OperationalError as error:
            # Duplicate or missing column; unknown or existing table: the wanted state exists already.
            if error.args[0] not in (1060, 1091, 1050, 1146):
                raise
        except pymysql.err.ProgrammingError as error:
            if error.args[0] not in (1146, 1051, 1050):
                raise

    def _name(self) -> str:
        return f"n{self._random.randint(0, 60)}é"
