"""Starts, stops and kills an Apache Kafka broker that keeps its data in a folder: a single KRaft node, or one of the
three of a cluster, each of which is a broker and a controller."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from cdc.errors import UserError
from cdc.sandbox.fetch.cache import cached
from cdc.sandbox.fetch.jars import fetched_jars, java
from cdc.sandbox.server.process import Process, free_port, is_free
from cdc.service.private_files import write_text

__all__ = ["VERSION", "Kafka", "KafkaCluster"]

VERSION = os.environ.get("CDC_KAFKA") or "4.3.1"
_ARTIFACTS = (f"org.apache.kafka:kafka_2.13:{VERSION}", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
_CLUSTER = "cdc-sandbox"
_START_SECONDS = 300  # seconds; on an idle machine a start takes ten, so only a start that hangs takes longer than this
_ATTEMPTS = 5
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    # The programs of cdc create their topics themselves, with the settings that the topics need.
    "auto.create.topics.enable": "false",
    # Internal topics have one replica, because there is one node. They have few partitions, because each partition
    # makes the start slower.
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # If a killed producer leaves a transaction open, readers see no later messages until the broker aborts the
    # transaction. With this setting, the broker aborts it within a second after the transaction's timeout.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    # A killed broker can register again only after its old session has expired. By default this takes 9 s.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


class Security(Protocol):
    """The type of ``secured.SecuredBroker``."""

    def settings(self, *, port: int, controller_port: int) -> Mapping[str, str]: ...

    def admin_properties(self) -> dict[str, Any]: ...


class Kafka:
    """A broker. Its folder contains its data, settings, log and pid file; ``port`` 0 means any free port.

    ``settings`` are broker properties that override the sandbox's own properties; ``jvm`` are additional options for
    Java. ``security`` determines the listeners, and how this process connects; None for a broker without TLS and
    logins.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        settings: Mapping[str, str] | None = None,
        jvm: Sequence[str] = (),
        security: "Security | None" = None,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port
        self.settings = dict(settings or {})
        self._jvm = tuple(jvm)
        self._security = security
        self.process = Process("kafka", folder=self.folder)

    @property
    def bootstrap_servers(self) -> str:
        """The address of the broker in the form that clients need."""
        return f"127.0.0.1:{self.port}"

    def start(self, *, outlive: bool = False) -> Self:
        """Starts the broker on the data in its folder, and waits until it answers; the first start creates the data.

        Unless ``outlive`` is true, the broker ends when this process ends. Raises UserError if there is no JDK, if
        Kafka cannot be fetched, if the port is in use, or if the broker does not start.
        """
        jars = fetched_jars(f"kafka-{VERSION}", _ARTIFACTS, label=f"Apache Kafka {VERSION}")
        # The JVM unpacks native libraries into this folder of the sandbox, because a killed JVM does not remove them.
        scratch = self.folder / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        jvm = [str(java()), "-Xmx512m", "-XX:+UseSerialGC", f"-Djava.io.tmpdir={scratch}", "-cp", f"{jars[0].parent}/*"]
        jvm[1:1] = self._jvm
        # If another process binds the free port first, another port is tried.
        for _ in range(_ATTEMPTS):
            port = self.port or free_port()
            # A port that the caller has chosen is checked first, because a foreign broker on it would answer in place
            # of our broker.
            if self.port and not self.process.running() and not is_free(port):
                break
            properties = self._write_properties(port=port, controller_port=free_port(other_than=port))
            self._new_data(jvm)
            self.process.start([*jvm, "kafka.Kafka", properties], outlive=outlive)
            if self._comes_up(port):
                self.port = port
                return self
            if "Address already in use" not in self.process.said():
                last = self.process.said().rpartition("\n")[2] or f"no answer in {_START_SECONDS} s"
                raise UserError(f"kafka did not start: {last}", code="CDC-SANDBOX-START", where=str(self.process.log))
        raise UserError(f"port {port} is in use", code="CDC-SANDBOX-PORT", where="kafka", hint="give another port")

    def _write_properties(self, *, port: int, controller_port: int) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        addresses = {
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
            "log.dirs": str(self.folder / "data"),
        }
        file = self.folder / "server.properties"
        secured = self._security.settings(port=port, controller_port=controller_port) if self._security else {}
        settings = _SETTINGS | addresses | dict(secured) | self.settings
        write_text(file, "".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def _new_data(self, jvm: Sequence[str]) -> None:
        """Creates the data if there are none. They are copied from the cache, which contains formatted data without
        topics, because formatting would start another JVM.
        """
        if (self.folder / "data" / "meta.properties").exists():
            return
        template = cached(f"kafka-data-{VERSION}", lambda folder: _format(jvm, folder))
        shutil.copytree(template / "data", self.folder / "data", dirs_exist_ok=True)

    def _comes_up(self, port: int) -> bool:
        # A starting broker refuses connections; librdkafka would log this.
        quiet = {"log_level": 0, "reconnect.backoff.max.ms": 100}
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}", **self._admin_properties(), **quiet})
        return self.process.comes_up(lambda: _answers(admin), seconds=_START_SECONDS)

    def stop(self) -> None:
        """Shuts the broker down cleanly, if it is running."""
        self.process.stop()

    def kill(self) -> None:
        """Sends SIGKILL to the broker, and waits until the process has ended."""
        self.process.kill()

    def running(self) -> bool:
        """Whether the broker process is running."""
        return self.process.running()

    def admin(self) -> AdminClient:
        """Creates an admin client for topics and settings."""
        return AdminClient({"bootstrap.servers": self.bootstrap_servers, **self._admin_properties()})

    def _admin_properties(self) -> dict[str, Any]:
        return self._security.admin_properties() if self._security else {}


def _format(jvm: Sequence[str], folder: Path) -> None:
    properties = folder / "server.properties"
    addresses = {"controller.quorum.voters": "1@127.0.0.1:1", "listeners": "CONTROLLER://127.0.0.1:1"}
    settings = _SETTINGS | addresses | {"process.roles": "controller", "log.dirs": str(folder / "data")}
    properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [*jvm, "kafka.tools.StorageTool", "format", "--cluster-id", _CLUSTER, "--config", str(properties)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if result.returncode:
        raise UserError(
            f"Kafka cannot format its data: {result.stderr[-300:]}", code="CDC-SANDBOX-START", where=str(properties)
        )


def _answers(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=1).brokers)
    except KafkaException:
        return False


# The internal topics survive the loss of one broker.
_REPLICATED = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
}


class KafkaCluster:
    """Three brokers, each with its own folder in ``folder``. ``settings`` are properties of each broker.

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
        """Starts the brokers that do not run, all at the same time, because a single broker has no majority and answers
        no client. Raises UserError if a broker does not start.
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
