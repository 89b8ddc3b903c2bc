"""Kills all programs of a pipeline under load: what is lost, applied twice, or seen in part by readers."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import pymysql

from bench.debezium.pipelines import Pipeline
from bench.debezium.stage import Stage, await_that, execute
from bench.debezium.table import Row, percentile
from cdc.sandbox.server.mysql import MySql

__all__ = ["DATABASE", "KEYLESS_TABLE", "Seen", "rows"]

DATABASE, KEYLESS_TABLE = "kills", "plain"
_WRITE_SECONDS, _READ_SECONDS = 0.1, 0.02
_KEYED = ("a", "b", "c")
_SEEN = "SELECT (SELECT n FROM kills.a), (SELECT n FROM kills.b), (SELECT MAX(id) FROM kills.c)"


class _Repeated:
    """Does something again and again in a thread of its own."""

    def __init__(self, work: Callable[[Any], None], server: MySql, *, every: float) -> None:
        self._work, self._server, self._every = work, server, every
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        with self._server.root() as connection, connection.cursor() as cursor:
            while not self._end.wait(self._every):
                self._work(cursor)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()


class Load:
    """Transaction n sets two rows of two tables to n, and inserts n into two others, one of them without a key."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, cursor: Any) -> None:
        self.number += 1
        for statement in (
            "BEGIN", *(f"UPDATE kills.{table} SET n = {self.number}" for table in ("a", "b")),
            *(f"INSERT INTO kills.{table} VALUES ({self.number})" for table in ("c", KEYLESS_TABLE)), "COMMIT",
        ):  # fmt: skip
            cursor.execute(statement)


@dataclass
class Seen:
    """States of the follower that a reader sees: how many, those with a part of a transaction, and those in which a row
    is older than in the state before.
    """

    states: int = 0
    parts: int = 0
    older: int = 0
    newest: int = 0
    _rows: tuple[int, ...] = field(default=(0, 0, 0))

    def __call__(self, cursor: Any) -> None:
        try:
            cursor.execute(_SEEN)
        except pymysql.MySQLError:
            return  # the tables are not there yet
        self.add(tuple(each or 0 for each in cursor.fetchone()))

    def add(self, state: tuple[int, ...]) -> None:
        self.states += 1
        self.parts += len(set(state)) > 1
        self.older += any(now < before for now, before in zip(state, self._rows, strict=True))
        self._rows, self.newest = state, min(state)


def rows(stage: Stage, pipelines: Sequence[Pipeline], *, kills: int) -> Iterator[Row]:
    stage.prepare(
        *(f"CREATE TABLE kills.{table} (id INT PRIMARY KEY, n INT)" for table in ("a", "b")),
        "CREATE TABLE kills.c (id INT PRIMARY KEY)", f"CREATE TABLE kills.{KEYLESS_TABLE} (n INT)",
    )  # fmt: skip
    execute(stage.leader, *(f"INSERT INTO kills.{table} VALUES (1, 0)" for table in ("a", "b")))
    for each in pipelines:
        each.settle()
    load, seen, away = (
        Load(),
        {each.name: Seen() for each in pipelines},
        {each.name: list[float]() for each in pipelines},
    )
    readers = [_Repeated(seen[each.name], stage.followers[each.name], every=_READ_SECONDS) for each in pipelines]
    with _Repeated(load, stage.leader, every=_WRITE_SECONDS), readers[0], readers[1]:
        for _ in range(kills):
            for each in pipelines:
                await_newer(seen[each.name], load)
                begun = time.monotonic()
                each.kill()
                await_newer(seen[each.name], load)
                away[each.name].append(time.monotonic() - begun)
    for each in pipelines:
        each.settle()
    yield from counted(stage, pipelines, seen)
    yield Row(
        f"seconds from such a kill until a row that was committed after it arrives, median and longest of {kills}",
        {name: f"{percentile(times, 50):.1f}, {max(times):.1f}" for name, times in away.items()},
    )


def await_newer(seen: Seen, load: Load) -> None:
    """Waits until the reader sees a transaction that is committed from now on."""
    newest = load.number + 1
    await_that(lambda: seen.newest >= newest, what="the load to arrive", every=0.05)


def counted(stage: Stage, pipelines: Sequence[Pipeline], seen: dict[str, Seen]) -> Iterator[Row]:
    committed = numbers(stage.leader, "c")
    lost, twice = {}, {}
    for each in pipelines:
        follower = stage.followers[each.name]
        missing = set(committed) - set(numbers(follower, "c")) & set(numbers(follower, KEYLESS_TABLE))
        lost[each.name] = str(len(missing))
        repeated = Counter(numbers(follower, KEYLESS_TABLE))
        twice[each.name] = str(sum(count > 1 for count in repeated.values()))
    yield Row(f"all programs killed under load: transactions lost, of {len(committed)}", lost)
    yield Row("transactions applied twice, as a table without a key shows", twice)
    yield Row(
        "states seen by a reader of the follower meanwhile that have only a part of a transaction",
        {name: f"{each.parts} of {each.states}" for name, each in seen.items()},
    )
    yield Row(
        "states in which a row is older than in the state before",
        {name: f"{each.older} of {each.states}" for name, each in seen.items()},
    )


def numbers(server: MySql, table: str) -> list[int]:
    column = "id" if table in _KEYED else "n"
    return [number for (number,) in execute(server, f"SELECT {column} FROM kills.{table}")]
