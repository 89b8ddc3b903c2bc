"""Keeps a Kafka broker for a whole test run: ``python -m tests.harness.keeper`` starts it at the first request.

Its standard output's only line is the port at which it listens. A request is one line, the folder for the broker's data
if none runs yet; the answer is one line of JSON: ``{"folder": …, "port": …, "guarded": …}`` or ``{"error": …}``. It
ends, and the broker with it, when its standard input ends, however the process at the other end of the pipe dies.

All clients may do everything at the broker's ``port``. At ``guarded`` users log in, and may do what ACLs allow them:
tests of logins and ACLs need no broker of their own, only topics and users of their own.
"""

import hashlib
import json
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from socket import create_connection

from cdc.errors import UserError
from cdc.sandbox.fetch.cache import cached
from cdc.sandbox.fetch.jars import java
from cdc.sandbox.server.kafka import VERSION, Kafka
from cdc.sandbox.server.process import free_port
from tests.harness.wait import LIMIT_SECONDS

__all__ = ["FEW_THREADS", "SharedKafka", "jvm", "kept", "login", "shared_broker"]

# The JVM ends before the second compiler would be of use, which takes a third of its start.
_QUICK = "-XX:TieredStopAtLevel=1"
_ARCHIVE = "classes.jsa"
# If the archive does not fit, the JVM continues without it, and would report that in the log that tests read.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
# Enough for few clients; by default a broker has twenty threads more, which cost a sixth of its start and of its time
# at rest.
FEW_THREADS = {
    "num.network.threads": "1", "num.io.threads": "2", "background.threads": "1", "num.replica.fetchers": "1",
    # The controller's log gets a record twice a second by default, which is half of what a broker at rest costs.
    "metadata.max.idle.interval.ms": "0",
}  # fmt: skip
# The broker is never killed. On a busy machine one that sends nothing for the sandbox's 3 s is merely slow, and clients
# would find its partitions without a leader.
_SETTINGS = FEW_THREADS | {"broker.session.timeout.ms": "60000", "broker.heartbeat.interval.ms": "2000"}
# Passwords by user. A user has no rights at first.
_PASSWORDS = {"alice": "alices-own-secret", "bob": "bobs-own-secret"}


def login(user: str) -> dict[str, str]:
    """librdkafka's properties with which the ``user``, alice or bob, logs in at ``SharedKafka.guarded``."""
    return {
        "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": user,
        "sasl.password": _PASSWORDS[user],
    }  # fmt: skip


class SharedKafka(Kafka):
    """The broker that all tests share, with ``guarded``, the address at which users log in."""

    guarded: str


@contextmanager
def kept() -> Iterator[int]:
    """A keeper for as long as the block runs; gives the port at which it listens."""
    command = [sys.executable, "-m", "tests.harness.keeper"]
    # A session of its own: Ctrl-C is for the tests, which then end the keeper.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin, process.stdout:
        yield int(process.stdout.readline())


@cache
def jvm() -> tuple[str, ...]:
    """Options for the JVM of a broker, which then maps its classes from an archive instead of loading them
    from jars.
    """
    program = java().resolve()
    stamp = hashlib.sha256(f"{program} {program.stat().st_mtime_ns}".encode()).hexdigest()[:12]
    archive = cached(f"kafka-classes-{VERSION}-{stamp}", _archive_classes) / _ARCHIVE
    return _QUICK, f"-XX:SharedArchiveFile={archive}", *_QUIET


def _archive_classes(folder: Path) -> None:
    """Writes the archive of classes: at its end, a JVM writes the classes that it has loaded by then."""
    with tempfile.TemporaryDirectory(prefix="kafka-") as aside:
        broker = Kafka(Path(aside), jvm=(_QUICK, f"-XX:ArchiveClassesAtExit={folder / _ARCHIVE}", *_QUIET)).start()
        broker.stop()


def shared_broker(port: int, folder: Path) -> SharedKafka:
    """The broker of the keeper at ``port``, which starts it in ``folder`` if it doesn't run yet."""
    with create_connection(("127.0.0.1", port), timeout=LIMIT_SECONDS) as connection:
        connection.sendall(f"{folder}\n".encode())
        with connection.makefile() as lines:
            answer = json.loads(lines.readline())
    assert "error" not in answer, answer["error"]
    broker = SharedKafka(Path(answer["folder"]), port=answer["port"], settings=_SETTINGS)
    broker.guarded = f"127.0.0.1:{answer['guarded']}"
    return broker


def _guard(port: int, guarded: int) -> dict[str, str]:
    """The broker's settings for its two listeners."""
    controller = free_port()
    users = " ".join(f'user_{name}="{password}"' for name, password in _PASSWORDS.items())
    return {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,GUARDED:SASL_PLAINTEXT",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},GUARDED://127.0.0.1:{guarded},CONTROLLER://127.0.0.1:{controller}",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.guarded.plain.sasl.jaas.config": (
            f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
        ),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.starting = threading.Lock()
        self.broker: Kafka | None = None
        self.guarded = 0


class _Request(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        folder = Path(self.rfile.readline().decode().removesuffix("\n"))
        try:
            with self.server.starting:
                if self.server.broker is None:
                    port, self.server.guarded = free_port(), free_port()
                    settings = _SETTINGS | _guard(port, self.server.guarded)
                    self.server.broker = Kafka(folder, port=port, settings=settings, jvm=jvm()).start()
            broker, guarded = self.server.broker, self.server.guarded
            answer = {"folder": str(broker.folder), "port": broker.port, "guarded": guarded}
        except UserError as error:
            answer = {"error": str(error)}
        self.wfile.write(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    with _Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(server.server_address[1], flush=True)
        sys.stdin.buffer.read()
        # A start that is under way ends first: nothing would end its broker.
        with server.starting:
            if server.broker is not None:
                server.broker.kill()
        server.shutdown()
