"""The servers of the comparison: one leader, one broker, and a follower for each pipeline."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from bench.debezium.connect import Worker
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import MySql
from cdc.sandbox.server.process import wait_until

__all__ = ["Stage", "await_that", "execute"]

# The settings of a server that is durable, as both followers are by default, would let the leader limit the load.
_LEADER = ("--sync-binlog=0", "--innodb-flush-log-at-trx-commit=2")
_FOLLOWER = ("--max-connections=1000",)  # each sink has a pool of connections
_SECONDS = 900


class Stage:
    """``with Stage(folder) as stage``: the servers and a worker of Kafka Connect; ``followers`` are by pipeline."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.leader = MySql(folder / "s1", server_id=1, extra_args=_LEADER)
        self.followers = {
            "cdc": MySql(folder / "s2", server_id=2),
            "Debezium": MySql(folder / "s3", server_id=3, extra_args=_FOLLOWER),
        }
        self.kafka = Kafka(folder / "kafka", settings={"message.max.bytes": "104857600"})
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        servers: list[MySql | Kafka] = [self.leader, *self.followers.values(), self.kafka]
        for server in servers:
            self._opened.callback(server.kill)
            server.start()
        self.worker = Worker(self.folder / "connect", self.kafka)
        self._opened.callback(self.worker.process.kill)
        return self

    def start_worker(self, *options: str) -> None:
        """Starts the worker of Kafka Connect again, with ``options`` of Java."""
        self.worker.process.kill()
        self.worker.start(*options)
        await_that(self.worker.answers, what="Kafka Connect")

    def create_database(self, name: str) -> None:
        """Creates a database on the leader, and on Debezium's follower, for which the sink creates tables only."""
        for server in (self.leader, self.followers["Debezium"]):
            execute(server, f"CREATE DATABASE {name}")

    def prepare(self, *statements: str) -> None:
        """Executes statements on the leader, and on Debezium's follower, as an operator does who wants tables defined
        otherwise than the sink creates them.
        """
        for server in (self.leader, self.followers["Debezium"]):
            execute(server, *statements)

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def execute(server: MySql, *statements: str, **options: Any) -> list[tuple[Any, ...]]:
    """Executes statements as root in one session; returns the rows of the last one."""
    with server.root(charset="utf8mb4", **options) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return list(cursor.fetchall())


def await_that(condition: Callable[[], bool], *, what: str, every: float = 0.2) -> None:
    """Waits until ``condition()`` is true. Raises TimeoutError."""
    if not wait_until(condition, seconds=_SECONDS, every=every):
        raise TimeoutError(f"waited for {what} for {_SECONDS} s")
