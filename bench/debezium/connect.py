"""A worker of Kafka Connect with Debezium's MySQL connector and its JDBC sink."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from cdc.sandbox.fetch.jars import fetched_jars, java
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.process import Process, free_port
from tests.harness.debezium import write_properties

__all__ = ["CONNECT", "HEAP", "VERSION", "WORKER", "Worker"]

VERSION = "3.5.0.Final"
CONNECT = "4.1.1"  # the version of Kafka Connect that this Debezium is built with
_ARTIFACTS = (
    f"io.debezium:debezium-connector-mysql:{VERSION}",
    f"io.debezium:debezium-connector-jdbc:{VERSION}",
    f"org.apache.kafka:connect-runtime:{CONNECT}",
    f"org.apache.kafka:connect-json:{CONNECT}",
    "org.slf4j:slf4j-simple:1.7.36",
)
HEAP = "-Xmx512m"
# The settings that are not the defaults, and no addresses or names of topics.
WORKER = {
    "exactly.once.source.support": "enabled",
    "offset.flush.interval.ms": "1000",
    "scheduled.rebalance.max.delay.ms": "0",  # a worker that was killed gets its connectors as soon as it is back
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "2000",
    "producer.max.request.size": "104857600",
}
_QUIET = "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.connect.runtime.rest.RestServer=warn"  # a line a request
_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_SECONDS = 60


class Worker:
    """A distributed worker, alone in its group. It keeps its connectors in Kafka, so that they run again once it is
    started again.
    """

    def __init__(self, folder: Path, kafka: Kafka) -> None:
        folder.mkdir()
        self.process = Process("connect", folder=folder)
        self._port = free_port()
        internal = {f"{name}.storage.topic": f"connect-{name}" for name in ("config", "offset", "status")}
        one = {f"{name}.storage.replication.factor": "1" for name in ("config", "offset", "status")}
        few = {f"{name}.storage.partitions": "1" for name in ("offset", "status")}
        self._properties = write_properties(
            folder / "worker.properties",
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "group.id": "connect",
                "key.converter": _CONVERTER,
                "value.converter": _CONVERTER,
                "listeners": f"http://127.0.0.1:{self._port}",
                "plugin.discovery": "service_load",
            }
            | internal | one | few | WORKER,
        )  # fmt: skip

    def start(self, *options: str) -> None:
        """Starts the worker with further ``options`` of Java, and does not wait until it answers."""
        jars = fetched_jars(f"debezium-jdbc-{VERSION}", _ARTIFACTS, label=f"Debezium {VERSION} with its JDBC sink")
        classes = ["-cp", f"{jars[0].parent}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
        self.process.start([java(), HEAP, _QUIET, *options, *classes, self._properties])

    def answers(self) -> bool:
        """Whether the worker takes requests about connectors."""
        try:
            self._request("GET", "/connectors")
        except OSError:
            return False
        return True

    def create(self, name: str, settings: Mapping[str, str]) -> None:
        """Creates a connector. Raises HTTPError if the worker refuses its settings."""
        self._request("PUT", f"/connectors/{name}/config", dict(settings))

    def delete(self, name: str) -> None:
        self._request("DELETE", f"/connectors/{name}")

    def pause(self, name: str) -> None:
        self._request("PUT", f"/connectors/{name}/pause")

    def resume(self, name: str) -> None:
        self._request("PUT", f"/connectors/{name}/resume")

    def state(self, name: str) -> str:
        """The state of a connector and its task, such as ``RUNNING``; ``FAILED`` if either has failed."""
        found = self._status(name)
        states = [found.get("connector", {}).get("state", ""), *(task["state"] for task in found.get("tasks", ()))]
        if "FAILED" in states:
            return "FAILED"
        return states[0] if len(states) > 1 and len(set(states)) == 1 else ""

    def failure(self, name: str) -> str:
        """The innermost cause in the trace of a task that has failed, in one line; empty if none has."""
        traces = [task["trace"] for task in self._status(name).get("tasks", ()) if task.get("trace")]
        return innermost(traces[0]) if traces else ""

    def _status(self, name: str) -> dict[str, Any]:
        try:
            return self._request("GET", f"/connectors/{name}/status") or {}
        except OSError:
            return {}  # the worker is starting, or does not know yet what was just created

    def _request(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"http://127.0.0.1:{self._port}{path}", data=data, headers=headers, method=method)
        with urlopen(request, timeout=_SECONDS) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def innermost(trace: str) -> str:
    """The last cause of a Java stack trace, without the class's package."""
    causes = [line.removeprefix("Caused by: ") for line in trace.splitlines() if not line.startswith(("\t", " "))]
    name, _, message = causes[-1].partition(": ")
    return f"{name.rpartition('.')[2]}: {message}".removesuffix(": ")
