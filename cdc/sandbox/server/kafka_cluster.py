"""Starts, stops and kills a cluster of Apache Kafka brokers, each of which is a broker and a KRaft controller."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import free_port

__all__ = ["KafkaCluster"]

# The internal topics survive the loss of one broker.
_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


class KafkaCluster:
    """Three brokers in folders of their own below ``folder``. ``settings`` are properties of each broker.

    Any one broker may be stopped or killed: two of the three are a majority of the controllers, and enough replicas
    for topics with ``min.insync.replicas = 2``.
    """

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        # The controllers know one another by fixed ports.
        controllers = {number: free_port() for number in (1, 2, 3)}
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in controllers.items())
        common = {**_REPLICATED, "controller.quorum.voters": voters, **(settings or {})}
        self.brokers = [
            _Node(folder / f"kafka{number}", number, controller_port=port, settings=common)
            for number, port in controllers.items()
        ]

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all brokers in the form that clients need."""
        return ",".join(broker.bootstrap_servers for broker in self.brokers)

    def start(self) -> Self:
        """Starts the brokers that do not run, all at the same time, because one alone has no majority and answers
        nobody. Raises UserError if a broker does not start.
        """
        self._each(lambda broker: broker.running() or broker.start())
        return self

    def kill(self) -> None:
        """Sends SIGKILL to all brokers."""
        self._each(Kafka.kill)

    def _each(self, work: Callable[[Kafka], object]) -> None:
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            list(threads.map(work, self.brokers))

    def __iter__(self) -> Iterator[Kafka]:
        return iter(self.brokers)


class _Node(Kafka):
    """A broker of the cluster, with the id ``number``."""

    def __init__(self, folder: Path, number: int, *, controller_port: int, settings: Mapping[str, str]) -> None:
        self._number = number
        port = free_port()
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}"
        super().__init__(folder, port=port, settings={**settings, "node.id": str(number), "listeners": listeners})

    def _new_data(self, jvm: Sequence[str]) -> None:
        file = self.folder / "data" / "meta.properties"
        if file.exists():
            return
        super()._new_data(jvm)
        # The formatted data in the cache belong to node 1. A broker gives its folder an id if there is none.
        text = re.sub(r"(?m)^directory\.id=.*\n?", "", file.read_text())
        file.write_text(re.sub(r"(?m)^node\.id=.*$", f"node.id={self._number}", text))
