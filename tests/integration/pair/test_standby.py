"""Two producers and two consumers with ``standby``: one of each works, and the other one takes over when it ends."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.checks.sequences import broken_places
from tests.harness.pair import Pair
from tests.harness.programs import records, running
from tests.harness.wait import until

pytestmark = pytest.mark.integration

WAITS, WORKS = "standby: waits", "works now"


class Candidates:
    """Two processes of one program: the first one works, the second one waits. ``first_says`` shows that it works."""

    def __init__(self, opened: ExitStack, folder: Path, program: str, profile: Path, *, first_says: str) -> None:
        self._logs = [folder / f"{program}{number}.log" for number in (0, 1)]
        self.processes = []
        for number, says in enumerate((first_says, WAITS)):
            stderr = opened.enter_context(self._logs[number].open("w"))
            self.processes.append(opened.enter_context(running(program, profile, stderr=stderr)))
            self.until_says(number, says)

    def until_says(self, number: int, what: str, *, times: int = 1) -> None:
        log = self._logs[number]

        def says() -> bool:
            assert self.processes[number].poll() is None, log.read_text()
            return log.read_text().count(what) >= times

        until(says, what=f"{what!r} in {log}")


def test_another_one_takes_over(tmp_path: Path, leader: MySql, follower: MySql, kafka: Kafka) -> None:
    standby = {"producer": {"standby": True}, "consumer": {"standby": True}}
    pair = Pair.make(tmp_path, leader, follower, kafka, name="standby", filters={"include_dbs": ["standby"]}, **standby)
    pair.on_leader("CREATE DATABASE standby", "CREATE TABLE standby.t (id INT PRIMARY KEY)")
    written = 0

    def until_applied() -> None:
        nonlocal written
        written += 1
        pair.on_leader(f"INSERT INTO standby.t VALUES ({written})")
        until(lambda: content(follower, "standby") == content(leader, "standby"), what="the row")

    with ExitStack() as opened:
        producers = Candidates(opened, tmp_path, "cdc-producer", pair.source, first_says=WORKS)
        consumers = Candidates(opened, tmp_path, "cdc-consumer", pair.target, first_says="start")
        until_applied()
        # The owner hangs for longer than its session, and finds another one at work.
        first, second = producers.processes
        first.send_signal(signal.SIGSTOP)
        producers.until_says(1, WORKS)
        until_applied()
        first.send_signal(signal.SIGCONT)
        producers.until_says(0, WAITS, times=2)
        until_applied()
        second.send_signal(signal.SIGTERM)
        producers.until_says(0, WORKS, times=2)
        until_applied()
        consumers.processes[0].kill()
        consumers.until_says(1, WORKS)
        until_applied()
    assert broken_places(records(pair.source)) == []
