"""A leader at work with two copies: a follower behind the running programs, and a replica of MySQL's own."""

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import run, run_well, running, write_profile
from tests.harness.replica import Replica
from tests.harness.wait import until

__all__ = ["TOLD", "Beside", "Copies", "tell"]

TOLD: list[str] = []  # a line for each case, which the end of the run shows again
MOST_SECONDS_BEHIND = 5.0
_MARK = "all_of_it"


@dataclass(frozen=True)
class Copies:
    """How long after the last work the follower and the native replica had all of it, in seconds."""

    follower: float
    native: float


@dataclass(frozen=True)
class Beside:
    """The three servers, while producer and consumer run between the first two."""

    leader: MySql
    follower: MySql
    replica: Replica
    profiles: tuple[Path, Path, Path]  # of the producer, of the consumer, and to capture the follower
    programs: tuple[tuple["subprocess.Popen[str]", Path], ...]  # with their logs

    @classmethod
    @contextmanager
    def running(
        cls, folder: Path, leader: MySql, others: tuple[MySql, MySql], kafka: Kafka, *, name: str, **tables: Any
    ) -> Iterator["Beside"]:
        """``tables`` are merged over the tables of both profiles. What goes on before is left out."""
        follower, native = others
        shared: dict[str, Any] = {"resource": name, "topic": name, "producer": {"start": "now"}} | tables
        source = write_profile(folder, leader, kafka, name=f"{name}-source", **shared)
        target = write_profile(folder, follower, kafka, name=f"{name}-target", **shared)
        # All of the follower is captured: with filters, our own database would have to pass them.
        others_too = {key: value for key, value in tables.items() if key != "filters"}
        theirs: dict[str, Any] = {"resource": f"{name}-follower", "topic": f"{name}-follower"} | others_too
        capture = write_profile(folder, follower, kafka, name=f"{name}-capture", **theirs)
        run_well("cdc-producer", source, "--until-current")  # it starts here
        replica = Replica.make(leader, native)
        with ExitStack() as stack:
            programs = []
            for program, profile in (("cdc-producer", source), ("cdc-consumer", target)):
                path = folder / f"{name}-{program}.log"
                log = stack.enter_context(path.open("w"))
                programs.append((stack.enter_context(running(program, profile, stderr=log)), path))
            beside = cls(leader, follower, replica, (source, target, capture), tuple(programs))
            beside.catch_up()  # until the programs are at work
            yield beside

    def judge(self, case: str, *databases: str) -> None:
        """``compare``, with a line for the case, however it ends: differences, seconds behind, native's."""
        said = "failed"
        try:
            copies = self.compare(*databases)
            said = f"no stop, no difference | {copies.follower:.1f} s behind | native {copies.native:.1f} s"
        except AssertionError as error:
            said = str(error).partition("\n")[0]
            raise
        finally:
            tell(case, said)

    def compare(self, *databases: str) -> Copies:
        """Wait until both copies have everything, and compare them with the leader, cell by cell."""
        copies, error = self.catch_up()
        assert not error, error
        for database in databases:
            wanted = content(self.leader, database)
            assert content(self.follower, database) == wanted, f"the follower differs in {database}"
            assert content(self.replica.server, database) == wanted, f"the native replica differs in {database}"
        # On a busy machine a replica of MySQL's own takes its time, too.
        assert copies.follower <= max(MOST_SECONDS_BEHIND, 2 * copies.native), copies
        return copies

    def audit(self) -> None:
        """What both servers have logged so far must be the same to cdc-audit."""
        source, target, capture = self.profiles
        run_well("cdc-producer", capture, "--until-current")
        report = capture.with_suffix(".report")
        done = run("cdc-audit", "--leader", source, "--follower", capture, "--consumer", target, "--report", report)
        verdict = done.stdout.partition("\n")[0]
        tell(f"{source.stem}: the audit of all of it", verdict)
        assert done.returncode == 0, done.stdout + done.stderr
        assert verdict.startswith("no drift"), done.stdout

    def stops(self) -> list[str]:
        """What the programs that have ended said last."""
        return [
            log.read_text().strip().rpartition("\n")[2] for process, log in self.programs if process.poll() is not None
        ]

    def catch_up(self) -> tuple[Copies, str]:
        """Wait until both copies have everything; how long that took, and the error at which the native one stopped.

        Raises AssertionError where a program has ended.
        """
        execute(self.leader, f"CREATE DATABASE {_MARK}")
        begun, native = time.monotonic(), 0.0

        def there() -> bool:
            nonlocal native
            if not native and self._marked(self.replica.server):
                native = time.monotonic() - begun
            return self._marked(self.follower)

        self._until(there, what="all of it on the follower")
        follower = time.monotonic() - begun
        error = self.replica.catch_up()
        native = native or time.monotonic() - begun
        execute(self.leader, f"DROP DATABASE {_MARK}")
        self._until(lambda: not self._marked(self.follower), what="the end of the mark")
        self.replica.catch_up()
        return Copies(follower, native), error

    @staticmethod
    def _marked(server: MySql) -> bool:
        return bool(execute(server, f"SHOW DATABASES LIKE '{_MARK}'"))

    def _until(self, condition: Callable[[], bool], *, what: str) -> None:
        """As ``until``, but fails at once where a program has ended."""

        def done() -> bool:
            assert not (stops := self.stops()), "; ".join(stops)
            return condition()

        until(done, what=what)


def tell(*cells: str) -> None:
    """Print a case's line of a table, now and at the end of the run."""
    TOLD.append(f"| {' | '.join(cells)} |")
    print(TOLD[-1])


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in one session; the rows of the last one."""
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())
