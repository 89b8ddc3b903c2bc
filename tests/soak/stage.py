"""The servers and programs of a soak. Servers keep their data in its folder; each piece starts them again."""

import subprocess
import threading
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import free_port
from tests.harness.programs import BIN, write_profile
from tests.soak.workload import DATABASE

__all__ = ["LEADER_TOPIC", "Audits", "Stage"]

LEADER_TOPIC, _FOLLOWER_TOPIC = "soak", "soak-follower"
# An audit reads what came since the one before; what is older is not kept.
_KEPT_HOURS = 1
_MYSQL = (f"--binlog-expire-logs-seconds={_KEPT_HOURS * 3600}", "--max-binlog-size=64M")
_KAFKA = {"log.segment.bytes": str(64 << 20), "log.retention.check.interval.ms": "60000"}
_END_SECONDS = 600
_PLANT = f"INSERT INTO {DATABASE}.extra (id, n) VALUES (-1, {{number}})"
_MEND = f"DELETE FROM {DATABASE}.extra WHERE id = -1"
_SETTLE_SECONDS = 5  # the capture has a foreign write within this time, and the follower's checkpoint moves on
_PLANTED_EVERY = 3


class Stage:
    """``with Stage(folder, transactions=True) as stage``: two servers, a broker, and later the programs.

    ``processes`` are the pids of all of them by name; the consumer's metrics are at ``metrics_port``.
    """

    def __init__(self, folder: Path, *, transactions: bool) -> None:
        self.folder = folder
        self.leader, self.follower = (
            MySql(folder / f"s{number}", server_id=number, extra_args=_MYSQL) for number in (1, 2)
        )
        self.kafka = Kafka(folder / "kafka", settings=_KAFKA)
        self.metrics_port = free_port()
        self._transactions = transactions
        self._programs: dict[str, subprocess.Popen[bytes]] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        for server in (self.leader, self.follower, self.kafka):
            self._opened.callback(server.stop)
            server.start()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end_programs()
        finally:
            self._opened.close()

    def write_profiles(self) -> None:
        """Writes the three profiles; the ports differ from piece to piece."""
        common = {"producer": {"start": "now"}, "filters": {"include_dbs": [DATABASE]}}
        for name, server, topic, tables in (
            ("source", self.leader, LEADER_TOPIC, {}),
            ("target", self.follower, LEADER_TOPIC, {"metrics": {"port": self.metrics_port}}),
            ("capture", self.follower, _FOLLOWER_TOPIC, {"filters": {"include_dbs": [DATABASE, "cdc"]}}),
        ):
            kafka = {"transactions": self._transactions, "retention_hours": _KEPT_HOURS}
            write_profile(self.folder, server, self.kafka, name=name, topic=topic, kafka=kafka, **{**common, **tables})

    def profile(self, name: str) -> Path:
        return self.folder / f"{name}.toml"

    def start_programs(self) -> None:
        for name, program in (("source", "cdc-producer"), ("capture", "cdc-producer"), ("target", "cdc-consumer")):
            with (self.folder / f"{name}.log").open("ab") as log:
                self._programs[name] = subprocess.Popen([BIN / program, self.profile(name)], stderr=log)

    def run_to_the_end(self, *names: str) -> None:
        """Has programs that do not run, by the names of their profiles, do all that there is."""
        for name in names:
            program = "cdc-consumer" if name == "target" else "cdc-producer"
            command = [BIN / program, self.profile(name), "--until-current"]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL, timeout=_END_SECONDS)

    @property
    def processes(self) -> dict[str, int]:
        servers = {"leader": self.leader.process, "follower": self.follower.process, "broker": self.kafka.process}
        return {name: each.pid for name, each in self._programs.items()} | {
            name: each.pid for name, each in servers.items()
        }

    def ended(self) -> list[str]:
        """The programs that have ended, which none should."""
        return [
            f"{name} ended with exit status {each.returncode}, see {self.folder / name}.log"
            for name, each in self._programs.items()
            if each.poll() is not None
        ]

    def end_programs(self) -> None:
        """Ends the programs as a supervisor does. Raises AssertionError if one ends badly."""
        programs, self._programs = self._programs, {}
        for each in programs.values():
            each.terminate()
        statuses = {name: each.wait(_END_SECONDS) for name, each in programs.items()}
        assert not any(statuses.values()), statuses


@dataclass(frozen=True, slots=True)
class _Verdict:
    status: int
    text: str


class Audits(threading.Thread):
    """Audits at the interval ``seconds``; each third one has a foreign write to find, which is taken back after it.

    ``right`` counts the audits with the verdict that there should be, ``faults`` are the others.
    """

    def __init__(self, stage: Stage, *, seconds: float, first: int) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._seconds = seconds
        self.number, self.right = first, 0
        self.faults: list[str] = []
        self.stop = threading.Event()
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.stop.wait(self._seconds):
                self.audit()
        except BaseException as failure:  # noqa: BLE001 - the soak ends with it
            self.failure = failure

    def audit(self) -> None:
        """Makes one audit, and judges its verdict."""
        self.number += 1
        planted = self.number % _PLANTED_EVERY == 0
        if planted:
            self._on_follower(_PLANT.format(number=self.number))
            self.stop.wait(_SETTLE_SECONDS)
        verdict = self._verdict()
        if planted:
            self._on_follower(_MEND)
        wanted = (1, f"{DATABASE}.extra") if planted else (0, "")
        if verdict.status == wanted[0] and wanted[1] in verdict.text:
            self.right += 1
        else:
            self.faults.append(f"audit {self.number}: exit status {verdict.status} for {wanted[0]}: {verdict.text}")

    def _verdict(self) -> _Verdict:
        folder = self._stage.folder
        sides = ["--leader", self._stage.profile("source"), "--follower", self._stage.profile("capture")]
        kept = ["--report", folder / "report", "--state", folder / "state"]
        done = subprocess.run([BIN / "cdc-audit", *sides, *kept], capture_output=True, text=True, check=False)
        lines = f"{done.stdout}{done.stderr}".splitlines()
        said = "\n".join(line for line in lines if not line.startswith("\tat "))  # without Java's stack traces
        return _Verdict(done.returncode, said[-2000:])

    def _on_follower(self, statement: str) -> None:
        with self._stage.follower.root() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
