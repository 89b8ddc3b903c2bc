"""A leader at work with two copies: a follower behind the running programs, and a replica of MySQL's own."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from tests.checks.compare import content
from tests.harness.programs import run_well, running, write_profile
from tests.harness.replica import Replica
from tests.harness.wait import until

__all__ = ["Beside", "Copies"]

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
        run_well("cdc-producer", source, "--until-current")  # it starts here
        replica = Replica.make(leader, native)
        with ExitStack() as stack:
            for program, profile in (("cdc-producer", source), ("cdc-consumer", target)):
                log = stack.enter_context((folder / f"{name}-{program}.log").open("w"))
                stack.enter_context(running(program, profile, stderr=log))
            yield cls(leader, follower, replica)

    def compare(self, *databases: str) -> Copies:
        """Wait until both copies have everything, and compare them with the leader, cell by cell."""
        begun = time.monotonic()
        behind = self._wait_for_mark()
        error = self.replica.catch_up()
        copies = Copies(behind, time.monotonic() - begun)
        assert not error, error
        for database in databases:
            wanted = content(self.leader, database)
            assert content(self.follower, database) == wanted, f"the follower differs in {database}"
            assert content(self.replica.server, database) == wanted, f"the native replica differs in {database}"
        assert copies.follower <= MOST_SECONDS_BEHIND, copies
        return copies

    def _wait_for_mark(self) -> float:
        """Until what the leader does last shows on the follower; how long that took, in seconds."""
        begun = time.monotonic()
        execute(self.leader, f"CREATE DATABASE {_MARK}")
        until(lambda: execute(self.follower, f"SHOW DATABASES LIKE '{_MARK}'"), what="all of it on the follower")
        taken = time.monotonic() - begun
        execute(self.leader, f"DROP DATABASE {_MARK}")
        until(lambda: not execute(self.follower, f"SHOW DATABASES LIKE '{_MARK}'"), what="the end of the mark")
        return taken


def execute(server: MySql, *statements: str) -> list[tuple[Any, ...]]:
    """Run statements in one session; the rows of the last one."""
    with server.root(charset="utf8mb4") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())
