"""How fast a backlog is applied, with how much CPU and memory, and the lag of a steady load."""

import re
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pymysql

from bench.debezium.pipelines import Pipeline
from bench.debezium.stage import Stage, await_that, execute
from bench.debezium.table import Row, percentile
from bench.measure import process_cpu_seconds, server_cpu_seconds
from cdc.sandbox.server.mysql import MySql

__all__ = ["DATABASE", "rows"]

DATABASE = "speed"
_COLUMNS = "id INT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12, 2), made DATETIME(3), k INT"
_LOOK_SECONDS = 0.05
_RATE, _WARM_UP_SECONDS = 200, 3.0
_LAGS = ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SELECT id, sent FROM speed.lag WHERE id > %s")


@dataclass(frozen=True)
class Shape:
    """A backlog: what it consists of, its rows, and those of a transaction."""

    name: str
    count: int
    size: int


@dataclass(frozen=True)
class Spent:
    """The seconds that a pipeline took for a backlog."""

    wall: float
    programs: float
    broker: float
    follower: float


def rows(stage: Stage, pipelines: Sequence[Pipeline], *, scale: float, seconds: float) -> Iterator[Row]:
    """Two rounds for each backlog, in which the pipelines take turns; none runs while the leader gets the backlog."""
    stage.prepare("CREATE TABLE speed.lag (id INT PRIMARY KEY, sent DOUBLE)")
    for each in pipelines:
        each.end()
    peaks: dict[str, float] = defaultdict(float)
    for shape in (
        Shape("100-row inserts", int(50_000 * scale), 100),
        Shape("single-row inserts", int(10_000 * scale), 1),
    ):
        found: dict[str, list[Spent]] = defaultdict(list)
        for turn in (0, 1):
            table = f"speed.t{shape.size}_{turn}"
            stage.prepare(f"CREATE TABLE {table} ({_COLUMNS})")
            fill(stage.leader, table, shape)
            for each in pipelines[:: -1 if turn else 1]:
                found[each.name].append(spent(stage, each, table, shape))
                peaks[each.name] = max(peaks[each.name], sum(map(peak_megabytes, each.pids())))
                each.end()
        yield from shown(shape, found)
    lags = {each.name: lag(stage, each, number, seconds=seconds) for number, each in enumerate(pipelines)}
    yield Row("peak memory of the programs, MB", {name: f"{peak:.0f}" for name, peak in peaks.items()})
    yield Row(f"lag at {_RATE} single-row transactions a second, ms: median, p99", lags)


def shown(shape: Shape, found: dict[str, list[Spent]]) -> Iterator[Row]:
    count = f"a backlog of {shape.count:,} rows in {shape.name}".replace(",", " ")
    each = 100_000 / shape.count
    yield Row(f"{count}: rows a second, two rounds", {
        name: " and ".join(f"{shape.count / one.wall:,.0f}".replace(",", " ") for one in both)
        for name, both in found.items()
    })  # fmt: skip
    for what in ("programs", "broker", "follower"):
        yield Row(f"the same: CPU seconds of the {what} for 100 000 rows", {
            name: " and ".join(f"{getattr(one, what) * each:.1f}" for one in both) for name, both in found.items()
        })  # fmt: skip


def fill(leader: MySql, table: str, shape: Shape) -> None:
    with leader.root() as connection, connection.cursor() as cursor:
        for first in range(1, shape.count + 1, shape.size):
            numbers = range(first, first + shape.size)
            values = ",".join(f"({n},'name {n}',{n}.25,'2024-02-29 12:34:56.789',{n * 7 % 1000})" for n in numbers)
            cursor.execute(f"INSERT INTO {table} VALUES {values}")


def spent(stage: Stage, pipeline: Pipeline, table: str, shape: Shape) -> Spent:
    """Lets a pipeline apply the backlog, from its start until the last row is there."""
    follower = stage.followers[pipeline.name]
    before = {pid: process_cpu_seconds(pid) for pid in pipeline.pids()}
    broker, server = process_cpu_seconds(stage.kafka.process.pid), server_cpu_seconds(follower)
    begun = time.monotonic()
    pipeline.start()
    await_that(lambda: newest(follower, table) == shape.count, what="the backlog", every=_LOOK_SECONDS)
    wall = time.monotonic() - begun
    programs = sum(process_cpu_seconds(pid) - before.get(pid, 0.0) for pid in pipeline.pids())
    ((there,),) = execute(follower, f"SELECT COUNT(*) FROM {table}")
    assert there == shape.count, f"{pipeline.name}: {there} rows"
    return Spent(
        wall,
        programs,
        process_cpu_seconds(stage.kafka.process.pid) - broker,
        server_cpu_seconds(follower) - server,
    )


def newest(follower: MySql, table: str) -> int:
    try:
        ((number,),) = execute(follower, f"SELECT COALESCE(MAX(id), 0) FROM {table}")
    except pymysql.MySQLError:
        return 0  # there is no such table yet
    return int(number)


def peak_megabytes(pid: int) -> float:
    """The largest resident size of a process so far (proc(5), VmHWM)."""
    return int(re.findall(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[0]) / 1024


def lag(stage: Stage, pipeline: Pipeline, number: int, *, seconds: float) -> str:
    """From the moment before a client commits a row until a reader of the follower sees it."""
    first = number * 1_000_000 + 1
    pipeline.start()
    pipeline.settle()
    found: list[float] = []
    load = threading.Thread(target=steady, args=(stage.leader, first, seconds))
    load.start()
    with stage.followers[pipeline.name].root() as connection, connection.cursor() as cursor:
        cursor.execute(_LAGS[0])
        last, begun = first - 1, time.time()
        end = first + int(_RATE * seconds) - 1
        while last < end and time.time() - begun < seconds * 3:
            cursor.execute(_LAGS[1], (last,))
            now = time.time()
            for at, sent in cursor.fetchall():
                last = max(last, at)
                found += [(now - sent) * 1e3] if sent > begun + _WARM_UP_SECONDS else []
            time.sleep(0.001)
    load.join()
    pipeline.end()
    late = f"; {end - last} of {end - first + 1} not there after {seconds * 3:.0f} s" if last < end else ""
    return f"{percentile(found, 50):.0f}, {percentile(found, 99):.0f}{late}" if found else f"none{late}"


def steady(leader: MySql, first: int, seconds: float) -> None:
    with leader.root() as connection, connection.cursor() as cursor:
        begun = time.monotonic()
        for number in range(int(_RATE * seconds)):
            time.sleep(max(0.0, begun + number / _RATE - time.monotonic()))
            cursor.execute(f"INSERT INTO speed.lag VALUES ({first + number}, {time.time()!r})")
