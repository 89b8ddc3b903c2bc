"""SIGKILL of every process at random moments under a mixed load, and while tables are copied: nothing is lost, nothing
comes twice."""

import os
import random
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cdc.model.record import Record
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.generators.load import DATABASE, Load
from tests.harness.programs import BIN, records, run, run_well, write_profile
from tests.harness.server_fixtures import KafkaFactory, MySqlFactory
from tests.harness.wait import until

pytestmark = [pytest.mark.integration, pytest.mark.crash]

KILLS = int(os.environ.get("CDC_KILLS", "5"))  # one of each process
STOP_SECONDS = 60
# How an end with status 2 says that a server was away at the start, or had not noticed the end of a killed consumer;
# the numbers are MySQL's for a lost connection.
AWAY = re.compile(
    r"cannot be reached|does not answer|no answer (?:within|for)|the topic cannot be read|no broker leads it"
    r"|holds the lock"
    r"|the follower(?:'s schema cdc)? cannot be used: .*\(MySQL error (?:1053|2003|2006|2013)\)"
)
SEED = int(os.environ.get("CDC_SEED", str(random.randrange(1 << 32))))


class Supervised:
    """A program that is started again whenever it ends, as a service manager does.

    It may end because a server is away when it starts (2) or stays away (4); any other end is a failure.
    """

    def __init__(self, program: str, profile: Path, log: Path) -> None:
        self._command = [BIN / program, profile]
        self._log = log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._process: subprocess.Popen[bytes] | None = None
        self.broken = ""

    def start(self) -> None:
        self._thread.start()
        until(lambda: self._process, what="the program's start")

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def stop(self) -> None:
        """Tell it to end. Fails where it does not, and kills it then, so that the test ends nevertheless."""
        self._stop.set()
        told, give_up = None, time.monotonic() + STOP_SECONDS
        # The thread may just be starting one more process: that one is told too.
        while self._thread.is_alive():
            if self._process is not told and self._process is not None:
                told = self._process
                told.send_signal(signal.SIGTERM)
            self._thread.join(0.1)
            if time.monotonic() > give_up and told is not None:
                told.kill()
                self._thread.join()
                raise AssertionError(f"it does not end within {STOP_SECONDS} s: {self._tail()}")

    def _run(self) -> None:
        with self._log.open("ab") as log:
            while not self._stop.is_set() and not self.broken:
                self._process = subprocess.Popen(self._command, stderr=log)
                if not self._may_end_so(self._process.wait()):
                    self.broken = self._tail()
                self._stop.wait(0.2)

    def _may_end_so(self, status: int) -> bool:
        if status == 2:
            return AWAY.search(self._tail().splitlines()[-1]) is not None
        return status in (4, 0, -signal.SIGKILL, -signal.SIGTERM)

    def _tail(self) -> str:
        return self._log.read_text()[-2000:]


@pytest.mark.parametrize("layout", ["single", "per_table"])
def test_random_kills(
    tmp_path: Path,
    mysql_server: MySqlFactory,
    kafka_broker: KafkaFactory,
    capsys: pytest.CaptureFixture[str],
    layout: str,
) -> None:
    chance = random.Random(SEED)
    leader, follower, kafka = mysql_server(server_id=1), mysql_server(server_id=2), kafka_broker()
    topics = {"layout": layout, "partitions": 2 if layout == "per_table" else 1}
    limits = {"commit_records": 200, "message_bytes": 1000}  # rows of one event are several messages
    source = write_profile(tmp_path, leader, kafka, name="producer", topic="crash", kafka=topics, producer=limits)
    # With few rows in a commit there are several under way at once, wherever rows are only added.
    batches = {"batch_rows": chance.choice([1, 3, 5000])}
    target = write_profile(tmp_path, follower, kafka, name="consumer", topic="crash", kafka=topics, consumer=batches)
    with Load(leader, seed=SEED) as load, supervised(tmp_path, source, target) as programs:
        victims: list[MySql | Kafka | Supervised] = [leader, follower, kafka, *programs]
        for number in range(KILLS):
            # Each in turn, at a moment of chance, while tables are copied once more. The leader may be away just now.
            run("cdc-producer", source, "--copy", f"{DATABASE}.keyed", "--copy", f"{DATABASE}.coded")
            before = load.transactions + chance.randint(20, 200)
            until(lambda before=before: load.transactions > before, what="more load")
            victim = victims[number % len(victims)]
            victim.kill()
            if isinstance(victim, MySql | Kafka):
                victim.start()
            assert not any(program.broken for program in programs), [program.broken for program in programs]
    assert not any(program.broken for program in programs), [program.broken for program in programs]
    run_well("cdc-producer", source, "--until-current")
    run_well("cdc-consumer", target, "--until-current")

    found = records(source)
    assert any(record.operation == "Copy" for record in found)
    differences = broken_places(found)
    here, there = content(leader, DATABASE), content(follower, DATABASE)
    differences += [f"table {name}" for name in here | there if here.get(name) != there.get(name)]
    with capsys.disabled():
        transactions = sum(record.last for record in found)
        print(f"\n{layout}, {batches}: {KILLS} kills, {transactions} transactions, {len(found)} records")
        print(f"{len(differences)} differences")
    assert differences == [], f"CDC_SEED={SEED}"


@contextmanager
def supervised(folder: Path, source: Path, target: Path) -> Iterator[list[Supervised]]:
    """Both programs, started again whenever they end."""
    programs = [
        Supervised("cdc-producer", source, folder / "producer.log"),
        Supervised("cdc-consumer", target, folder / "consumer.log"),
    ]
    with ExitStack() as stack:
        for program in programs:
            program.start()
            stack.callback(program.stop)
        yield programs


def broken_places(found: list[Record]) -> list[str]:
    """Gaps, repeats and torn transactions."""
    broken = [f"sequence {record.sequence} at {at}" for at, record in enumerate(found) if record.sequence != at]
    index, name = 0, ""
    for record in found:
        if record.index != index or (index and record.transaction != name):
            broken.append(f"transaction {record.transaction} at sequence {record.sequence}")
        index, name = (0, "") if record.last else (record.index + 1, record.transaction)
    return broken + ([f"transaction {name} has no end"] if index else [])
