"""Kills the producer and the consumer that work, again and again, while a standby of each waits."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.request import urlopen

from bench.drills.load import Load, wait_for
from bench.drills.outcome import Outcome
from bench.drills.stream import CONSUMER, PRODUCER, profile, run_to_the_end
from bench.measure import BIN
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port

__all__ = ["drill"]

_SETTLE_SECONDS = 2.0  # the standby that was killed is back within this time


class Candidate:
    """One of two processes of a program."""

    def __init__(self, program: str, path: Path) -> None:
        self._port = free_port()
        with path.open("a") as file:
            file.write(f"[metrics]\nport = {self._port}\n")
        text, table = path.read_text(), f"[{program.removeprefix('cdc-')}]\n"
        path.write_text(text.replace(table, f"{table}standby = true\n"))
        self._command, self._path = [BIN / program, path], path
        self._shown = f"{program.replace('-', '_')}_standby 0.0\n"
        self._start()

    def _start(self) -> None:
        with self._path.with_suffix(".log").open("a") as log:
            self._process = subprocess.Popen(self._command, stderr=log)

    def kill_and_start(self) -> None:
        self._process.kill()
        self._process.wait()
        self._start()

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


def drill(folder: Path, opened: ExitStack, *, kills: int) -> Iterator[Outcome]:
    leader, follower = (MySql(folder / f"s{number}", server_id=number).start() for number in (1, 2))
    kafka = Kafka(folder / "kafka").start()
    for server in (leader, follower, kafka):
        opened.callback(server.kill)
    programs = {
        program: [Candidate(program, profile(folder / f"{program}{number}.toml", server, kafka)) for number in (1, 2)]
        for program, server in ((PRODUCER, leader), (CONSUMER, follower))
    }
    outcomes = {program: Outcome(f"the {program} that works, a standby waits") for program in programs}
    with Load(leader) as load:
        load.await_row(follower)
        for number in range(kills):
            program = (PRODUCER, CONSUMER)[number % 2]
            working = the_working(programs[program])
            with outcomes[program].timed():
                working.kill_and_start()
                load.await_row(follower)
            time.sleep(_SETTLE_SECONDS)
    for candidate in programs[PRODUCER] + programs[CONSUMER]:
        candidate.stop()
    source = profile(folder / "source.toml", leader, kafka)
    run_to_the_end(source, profile(folder / "target.toml", follower, kafka))
    for outcome in outcomes.values():
        outcome.count(load, follower, source)
        yield outcome


def the_working(candidates: list[Candidate]) -> Candidate:
    """Waits until one of the candidates works, and returns it."""
    working: list[Candidate] = []

    def one_works() -> bool:
        working[:] = [candidate for candidate in candidates if candidate.works()]
        return len(working) == 1

    wait_for(one_works, what="one that works")
    return working[0]
