"""Drills takeovers: kills the producer or consumer that works, again and again, while a standby of each waits.

Rows are inserted on the leader all the while. The time of a takeover goes from the kill to the follower's commit of a
row that was inserted after the kill. In the end both servers must have the same rows, and the topic each record once.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

from measure import BIN, profile, run_program

from cdc import records
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port

PRODUCER, CONSUMER = "cdc-producer", "cdc-consumer"
_EVERY_SECONDS = 0.02
_SETTLE_SECONDS = 2.0  # the standby that was killed is back within this time
_LIMIT_SECONDS = 120.0


class Candidate:
    """One of two processes of a program."""

    def __init__(self, program: str, path: Path) -> None:
        self._port = free_port()
        with path.open("a") as file:
            file.write(f"[metrics]\nport = {self._port}\n[{program.removeprefix('cdc-')}]\nstandby = true\n")
        self._command = [BIN / program, path]
        self._shown = f"{program.replace('-', '_')}_standby 0.0\n"
        self._process = subprocess.Popen(self._command)

    def kill_and_start(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process = subprocess.Popen(self._command)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()

    def works(self) -> bool:
        """Whether this process is the one that works."""
        try:
            with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:
            return False
        return self._shown in text and "sequence " in text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as opened:
        drill(Path(folder), opened, kills=given.kills)


def drill(folder: Path, opened: ExitStack, *, kills: int) -> None:
    leader, follower = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2))
    kafka = Kafka(folder / "kafka").start()
    for server in (leader, follower, kafka):
        opened.callback(server.kill)
    with leader.root() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE d")
        cursor.execute("CREATE TABLE d.t (id INT AUTO_INCREMENT PRIMARY KEY)")
    paths = {PRODUCER: leader, CONSUMER: follower}
    programs = {
        program: [Candidate(program, profile(folder / f"{program}{number}.toml", server, kafka)) for number in (1, 2)]
        for program, server in paths.items()
    }
    away: dict[str, list[float]] = {program: [] for program in programs}
    with inserts(leader):
        wait_for_row(leader, follower)
        for number in range(kills):
            program = (PRODUCER, CONSUMER)[number % 2]
            away[program].append(takeover(programs[program], leader, follower))
            time.sleep(_SETTLE_SECONDS)
    for candidate in programs[PRODUCER] + programs[CONSUMER]:
        candidate.stop()
    for program, seconds in away.items():
        print(
            f"{program}: {len(seconds)} kills, seconds until a new row was applied: {percentiles(seconds)}", flush=True
        )
    source = profile(folder / "source.toml", leader, kafka)
    run_program(PRODUCER, source)
    run_program(CONSUMER, profile(folder / "target.toml", follower, kafka))
    compare(source, leader, follower)


@contextmanager
def inserts(leader: MySql) -> Iterator[None]:
    """Inserts a row every 20 ms inside the context."""
    end = threading.Event()

    def insert() -> None:
        with leader.root(database="d") as connection, connection.cursor() as cursor:
            while not end.wait(_EVERY_SECONDS):
                cursor.execute("INSERT INTO t VALUES ()")

    thread = threading.Thread(target=insert)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def takeover(candidates: list[Candidate], leader: MySql, follower: MySql) -> float:
    """Kills the candidate that works; returns the seconds until the other one's work is on the follower."""
    (working,) = (candidate for candidate in candidates if candidate.works())
    killed_at = time.monotonic()
    working.kill_and_start()
    wait_for_row(leader, follower)
    return time.monotonic() - killed_at


def wait_for_row(leader: MySql, follower: MySql) -> None:
    """Waits until the follower has a row that the leader gets from now on."""
    newest, give_up = largest(leader), time.monotonic() + _LIMIT_SECONDS
    while largest(follower) <= newest:
        if time.monotonic() > give_up:
            sys.exit(f"no program took over within {_LIMIT_SECONDS:.0f} s")
        time.sleep(_EVERY_SECONDS)


def largest(server: MySql) -> int:
    return max(ids(server), default=0)


def ids(server: MySql) -> list[int]:
    with server.root() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'd'")
        if not cursor.fetchall()[0][0]:
            return []
        cursor.execute("SELECT id FROM d.t ORDER BY id")
        return [number for (number,) in cursor.fetchall()]


def percentiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    shown = [f"p{share} {ordered[min(len(ordered) - 1, len(ordered) * share // 100)]:.1f}" for share in (50, 99)]
    return ", ".join([*shown, f"max {ordered[-1]:.1f}"])


def compare(source: Path, leader: MySql, follower: MySql) -> None:
    """Prints how many rows and records there are, and how many are missing or repeated."""
    here, there = ids(leader), ids(follower)
    found = [record.sequence for record in records(source)]
    print(f"{len(here):,} rows on the leader, {len(set(here) - set(there))} lost, {len(set(there) - set(here))} extra")
    print(f"{len(found):,} records, {len(set(range(len(found))) - set(found))} lost, "
          f"{len(found) - len(set(found))} repeated")  # fmt: skip
    if here != there or found != list(range(len(found))):
        sys.exit("leader and follower differ, or a record is lost or repeated")


if __name__ == "__main__":
    main()
