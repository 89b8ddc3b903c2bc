"""The load of a drill: one row after the other is inserted on the server that is the leader now."""

import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import pymysql

from cdc.sandbox.server.mysql import MySql

__all__ = ["LIMIT_SECONDS", "Load", "execute", "ids", "wait_for"]

LIMIT_SECONDS = 120.0
_EVERY_SECONDS = 0.02
_TIMEOUTS = {"connect_timeout": 2, "read_timeout": 30, "write_timeout": 5}


class Load:
    """``with Load(leader, key="KEY") as load``: inserts a row into d.t every 20 ms, and creates that table before.

    ``leader`` may be set to another server. Each row has a number of its own. ``acknowledged`` are the numbers of rows
    whose commit was answered; an insert that fails is not tried again, because it may have committed. With
    ``key="KEY"`` the table takes the same number twice, so that a repeated row shows; group replication needs a
    primary key.
    """

    def __init__(self, leader: MySql, *, key: str = "KEY") -> None:
        self.leader = leader
        self.acknowledged: list[int] = []
        self._next = 1
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._insert)
        execute(leader, "CREATE DATABASE d", f"CREATE TABLE d.t (id INT NOT NULL, {key} (id))")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def await_row(self, follower: MySql) -> None:
        """Waits until ``follower`` has a row that is committed from now on."""
        newest = self._next
        wait_for(lambda: largest(follower) > newest, what="a new row on the follower")

    def _insert(self) -> None:
        while not self._end.is_set():
            leader = self.leader
            with suppress(pymysql.MySQLError, OSError), leader.root(**_TIMEOUTS) as connection:
                self._insert_over(connection, leader)
            self._end.wait(_EVERY_SECONDS)

    def _insert_over(self, connection: Any, leader: MySql) -> None:
        with connection.cursor() as cursor:
            while not self._end.wait(_EVERY_SECONDS) and leader is self.leader:
                number, self._next = self._next, self._next + 1
                cursor.execute(f"INSERT INTO d.t VALUES ({number})")
                self.acknowledged.append(number)


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    """Executes statements as root; returns the rows of the last one."""
    with server.root() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def largest(server: MySql) -> int:
    """Returns the largest number on the server; 0 if it does not answer, or has no such table yet."""
    try:
        ((number,),) = execute(server, "SELECT COALESCE(MAX(id), 0) FROM d.t")
    except (pymysql.MySQLError, OSError):
        return 0
    return int(number)


def ids(server: MySql) -> list[int]:
    return [number for (number,) in execute(server, "SELECT id FROM d.t ORDER BY id")]


def wait_for(condition: Any, *, what: str) -> None:
    """Waits until ``condition()`` is true; ends the program if that takes too long."""
    give_up = time.monotonic() + LIMIT_SECONDS
    while not condition():
        if time.monotonic() > give_up:
            sys.exit(f"waited for {what} for {LIMIT_SECONDS:.0f} s")
        time.sleep(_EVERY_SECONDS)
