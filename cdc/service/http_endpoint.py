"""Serves ``/metrics``, ``/livez``, ``/readyz``, ``/healthz`` and commands over HTTP, from daemon threads."""

import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, Self

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from cdc import __version__
from cdc.errors import UserError
from cdc.service.commands import PATH, Commands
from cdc.service.logs import event

__all__ = ["Check", "Endpoint", "verdict"]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a health check: its name, and whether it is ok; ``says`` describes the result to the operator.

    ``/readyz`` leaves out checks that are not about the servers with which the program works (``of_servers``).
    """

    name: str
    ok: bool
    says: str
    of_servers: bool = True


def verdict(checks: Iterable[Check]) -> tuple[bool, bytes]:
    """Whether every check is ok, and the results as the JSON of ``/healthz`` and ``/readyz``. An empty list of checks
    counts as failing.
    """
    results = list(checks)
    healthy = bool(results) and all(check.ok for check in results)
    body = {
        "status": "ok" if healthy else "failing",
        "checks": {check.name: {"ok": check.ok, "says": check.says} for check in results},
    }
    return healthy, json.dumps(body, ensure_ascii=False).encode() + b"\n"


_LOG = logging.getLogger("cdc.endpoint")
_REQUEST_SECONDS = 5  # a client must send its request within this time


class _Collector:
    """Collects a program's metrics at the time of each request, so that the program itself spends no time on them."""

    def __init__(self, metrics: Callable[[], Iterable[Metric]], info: Mapping[str, str]) -> None:
        self._metrics = metrics
        self._info = {**info, "version": __version__}

    def collect(self) -> Iterator[Metric]:
        what = "1; the labels name the program that answers, and what it works on."
        labelled = GaugeMetricFamily("cdc_info", what, labels=list(self._info))
        labelled.add_metric(list(self._info.values()), 1)
        yield labelled
        yield InfoMetricFamily("cdc_build", "The version of the program that answers.", value={"version": __version__})
        yield from self._metrics()

    def describe(self) -> list[Metric]:
        """Returns no metrics; without this method the registry would collect all metrics once, only to learn their
        names."""
        return []


class _Server(ThreadingMixIn, TCPServer):
    # http.server's HTTPServer is not used, because it looks up this host's name before it listens.
    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int],
        *,
        metrics: Callable[[], Iterable[Metric]],
        checks: Callable[[], Iterable[Check]],
        info: Mapping[str, str],
        commands: Commands | None,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Requests)
        self.registry = CollectorRegistry()
        self.registry.register(_Collector(metrics, info))
        ProcessCollector(registry=self.registry)
        self.commands = commands
        self._checks = checks
        self._checking = threading.Lock()
        self._checked: tuple[Check, ...] = ()
        self._checked_at = float("-inf")  # time.monotonic() at which the newest checks began

    def health(self, *, of_servers: bool = False) -> tuple[bool, bytes]:
        """Returns the verdict of all checks, or only of the checks of servers."""
        asked_at = time.monotonic()
        # Only one thread runs the checks at a time, and all requests that came before these checks began use the
        # results. Otherwise threads would pile up while a server does not answer.
        with self._checking:
            if self._checked_at < asked_at:
                begun_at = time.monotonic()
                self._checked, self._checked_at = tuple(self._checks()), begun_at
            return verdict(check for check in self._checked if check.of_servers or not of_servers)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs a failed request: the client disconnected during the answer, or cdc has a defect. The program
        continues."""
        event(_LOG, "a request failed", level=logging.WARNING, client=client_address[0], reason=repr(sys.exception()))


class _Requests(BaseHTTPRequestHandler):
    server: _Server
    timeout = _REQUEST_SECONDS
    server_version = f"cdc/{__version__}"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            encode, kind = choose_encoder(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, kind, encode(self.server.registry))
        elif path == "/livez":
            # /livez checks no server and has no time limit: a statement on the follower may rightly take hours, and if
            # a program waits for a server, a restart by a supervisor would not help.
            self._answer(HTTPStatus.OK, "application/json", b'{"status": "ok"}\n')
        elif path in ("/healthz", "/readyz"):
            healthy, body = self.server.health(of_servers=path == "/readyz")
            status = HTTPStatus.OK if healthy else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", body)
        else:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"there are /metrics, /livez, /readyz and /healthz\n")

    def _answer(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        # The body is not read, so the connection can't be used for another request.
        self.close_connection = True
        commands = self.server.commands
        if commands is None or not self.path.startswith(PATH):
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", b"this program takes no commands here\n")
            return
        status, says = commands.answer(self.path, authorization=self.headers.get("Authorization", ""))
        body = json.dumps({"status": "ok" if status == HTTPStatus.OK else "refused", "says": says}, ensure_ascii=False)
        self._answer(status, "application/json", body.encode() + b"\n")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is the base class's
        """Does nothing, so that requests are not logged."""


class Endpoint:
    """Serves requests over HTTP from ``open`` until ``close``."""

    def __init__(self, server: _Server) -> None:
        self._server = server
        self._thread = threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.1}, name="endpoint", daemon=True
        )
        self._thread.start()

    @classmethod
    def open(
        cls,
        host: str,
        port: int,
        *,
        metrics: Callable[[], Iterable[Metric]],
        checks: Callable[[], Iterable[Check]],
        info: Mapping[str, str],
        commands: Commands | None = None,
    ) -> Self:
        """Listens on ``host``:``port``; ``info`` are the labels of ``cdc_info``. Raises UserError if that fails."""
        try:
            return cls(_Server((host, port), metrics=metrics, checks=checks, info=info, commands=commands))
        except OSError as error:
            raise UserError(
                f"cannot listen: {error.strerror or error}",
                code="CDC-METRICS-PORT",
                where=f"{host}:{port} (profile table metrics)",
                hint="give metrics.port a free port for each program, and metrics.host an address of this machine",
            ) from None

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stops listening. A request that is being answered is still completed, unless the process ends first."""
        self._server.shutdown()
        self._server.server_close()
