"""Starts, finds and stops the sandbox's three servers in one folder (leader, follower and Kafka), and writes their
profiles.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import toml

from cdc.errors import UserError
from cdc.sandbox.fetch.jars import java
from cdc.sandbox.fetch.mysql_programs import mariadb_programs, mysql_programs, mysql_programs_80
from cdc.sandbox.server.kafka import VERSION as KAFKA_VERSION
from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql, maria_db
from cdc.sandbox.server.secured import SECRET, Certificates, SecuredBroker, create_account, tls_options
from cdc.service.private_files import make_folder, write_text

__all__ = ["NEWEST", "OLDEST", "TOPIC", "ProfileFiles", "Secured", "Servers"]

# Writes the three profiles for a sandbox. With the default ports they equal the profiles in the repository, unless the
# sandbox is secured.

_RESOURCE = "mysql-srv1"
TOPIC = "rust-mysql-cdc"


@dataclass(frozen=True, slots=True)
class Secured:
    """The logins in the profiles of a secured sandbox: the MySQL users of the three programs and their password, the
    file with the authority's certificate, and the properties for librdkafka.
    """

    producer: str
    consumer: str
    follower: str
    password: str
    authority: Path
    librdkafka: dict[str, str]


@dataclass(frozen=True, slots=True)
class ProfileFiles:
    """The paths of three profiles: for the leader's producer, for the consumer, and for the follower's producer."""

    producer: Path
    consumer: Path
    follower: Path

    @classmethod
    def below(cls, folder: Path) -> Self:
        """Returns the paths of the profiles in ``folder``."""
        return cls(*(folder / f"{name}_profile.toml" for name in ("producer", "consumer", "follower")))

    def write(self, *, leader_port: int, follower_port: int, kafka_port: int, secured: Secured | None = None) -> None:
        """Writes the files. Existing files are overwritten."""
        for path, content in (
            (self.producer, _content(_RESOURCE, leader_port, ["flvDb"], kafka_port, TOPIC)),
            (self.consumer, _content(_RESOURCE, follower_port, [], kafka_port, TOPIC)),
            (
                self.follower,
                _content(f"{_RESOURCE}-follower", follower_port, ["flvDb", "cdc"], kafka_port, f"{TOPIC}-follower"),
            ),
        ):
            if secured is not None:
                user = getattr(secured, path.name.removesuffix("_profile.toml"))
                content["database"] |= {"user": user, "password": secured.password}
                content["database"]["tls"] = {"ca": str(secured.authority)}
                content["kafka"]["librdkafka"] = secured.librdkafka
            write_text(path, toml.dumps({key: value for key, value in content.items() if value}))


def _content(resource: str, port: int, databases: list[str], kafka_port: int, topic: str) -> dict[str, Any]:
    return {
        "mysql_resource_name": resource,
        "database": {"ip_or_host": "127.0.0.1", "port": port, "user": USER, "password": PASSWORD},
        "filters": {"include_dbs": databases} if databases else {},
        "kafka": {"bootstrap_servers": f"127.0.0.1:{kafka_port}", "topic": topic},
    }


_NAMES = ("leader", "follower", "kafka")
_MARKER = ".cdc-sandbox"
_PORTS = "ports.json"
_CERTIFICATES = "certificates"
_MYSQL, _MARIADB = "mysql", "mariadb"
NEWEST, OLDEST = "newest", "8.0"
_PROGRAMS = {NEWEST: mysql_programs, OLDEST: mysql_programs_80}


class Servers:
    """The leader, the follower and the broker, each in its own folder below ``folder``; port 0 means any free port.
    ``leader`` is "mysql" or "mariadb"; ``mysql`` is the version of the MySQL servers, NEWEST or OLDEST. With ``secure``
    the servers accept connections over TLS only, and the profiles have users with the least privileges.
    """

    def __init__(
        self,
        folder: Path,
        *,
        leader: str = _MYSQL,
        mysql: str = NEWEST,
        leader_port: int = 0,
        follower_port: int = 0,
        kafka_port: int = 0,
        secure: bool = False,
    ) -> None:
        self.folder = folder.absolute()
        self._kind = leader
        self._mysql = mysql
        if secure and leader == _MARIADB:
            raise UserError(
                "a secured sandbox has a MySQL leader", code="CDC-SANDBOX-SECURE", hint="leave out --leader or --secure"
            )
        self.certificates = Certificates(self.folder / _CERTIFICATES)
        self._broker = SecuredBroker(self.certificates) if secure else None
        options: dict[str, Any] = {"extra_args": tls_options(self.certificates)} if secure else {}
        make = maria_db if leader == _MARIADB else partial(MySql, find=_PROGRAMS[mysql])
        self.leader = make(self.folder / "leader", port=leader_port, server_id=1, name="leader", **options)
        self.follower = MySql(
            self.folder / "follower", port=follower_port, server_id=2, name="follower", find=_PROGRAMS[mysql], **options
        )
        self.kafka = Kafka(self.folder / "kafka", port=kafka_port, security=self._broker)
        self.profiles = ProfileFiles.below(self.folder)

    @classmethod
    def found(cls, folder: Path) -> Self:
        """Finds the servers that this or another process has started in ``folder``. Raises UserError if the folder is
        not a sandbox.
        """
        if not (folder / _MARKER).exists():
            raise UserError(
                "there is no sandbox", code="CDC-SANDBOX-MISSING", where=str(folder), hint="start one: cdc-sandbox up"
            )
        file = folder / _PORTS
        return cls(folder, **(json.loads(file.read_text()) if file.exists() else {}))

    def _each(self) -> Iterator[tuple[str, MySql | Kafka]]:
        yield from zip(_NAMES, (self.leader, self.follower, self.kafka), strict=True)

    def start(self, *, outlive: bool = False, say: Callable[[str], None]) -> Self:
        """Starts all three servers, or none. If a server does not start, the servers that were started are killed.
        Raises UserError.
        """
        for name, server in self._each():
            if server.running():
                raise UserError(
                    f"{name} runs already",
                    code="CDC-SANDBOX-EXISTS",
                    where=str(self.folder),
                    hint="cdc-sandbox down, or another --dir",
                )
        self._claim()
        self._require_same_kind()
        java()  # checks for Java before anything is fetched or started
        if self._broker is not None:
            self.certificates.write()
        started: list[MySql | Kafka] = []
        try:
            for name, server in self._each():
                started.append(server)
                server.start(outlive=outlive)
                say(f"{name:9} 127.0.0.1:{server.port}")
        except BaseException:  # BaseException includes Ctrl-C
            for server in started:
                server.kill()
            raise
        ports = {f"{name}_port": server.port for name, server in self._each()}
        more = {} if self._broker is None else {"secure": True}
        (self.folder / _PORTS).write_text(json.dumps({"leader": self._kind, "mysql": self._mysql, **ports, **more}))
        self.profiles.write(**ports, secured=self._secured())
        if _PROGRAMS[self._mysql]().client:
            self.leader.write_client(self.folder / "mysql-leader")
            self.follower.write_client(self.folder / "mysql-follower")
        return self

    def allow(self) -> None:
        """Gives the user of the programs all rights that it needs on the broker, if the sandbox is secured."""
        if self._broker is not None:
            self._broker.allow(topics=TOPIC)

    def _secured(self) -> Secured | None:
        """Creates the users of a secured sandbox; returns what the profiles need to connect as these users."""
        if self._broker is None:
            return None
        self.allow()
        return Secured(
            producer=create_account(self.leader, "leader_reader.sql"),
            consumer=create_account(self.follower, "follower_applier.sql"),
            follower=create_account(self.follower, "follower_reader.sql"),
            password=SECRET,
            authority=self.certificates.authority,
            librdkafka=self._broker.client_properties(),
        )

    def stop(self) -> list[str]:
        """Stops the running servers, in the reverse order of their start; returns their names."""
        running = [(name, server) for name, server in self._each() if server.running()]
        for _, server in reversed(running):
            server.stop()
        return [name for name, _ in running]

    def kill(self) -> None:
        """Sends SIGKILL to all servers."""
        for _, server in self._each():
            server.kill()

    def _claim(self) -> None:
        """Marks the folder as a sandbox. Raises UserError if the folder is not a sandbox, but contains files with the
        sandbox's names, because ``wipe`` would remove them.
        """
        existing = [name for name in _NAMES if (self.folder / name).exists()]
        if existing and not (self.folder / _MARKER).exists():
            raise UserError(
                f"{existing[0]} exists already",
                code="CDC-SANDBOX-EXISTS",
                where=str(self.folder),
                hint="choose another --dir",
            )
        make_folder(self.folder)
        (self.folder / _MARKER).touch()

    def _require_same_kind(self) -> None:
        """Raises UserError if servers of another kind or version have written the data in the folder: no server reads
        the data of a newer server, and MySQL 9 does not upgrade the data of MySQL 8.0.
        """
        file = self.folder / _PORTS
        before = json.loads(file.read_text()) if file.exists() else {}
        for option, now, usual in (("leader", self._kind, _MYSQL), ("mysql", self._mysql, NEWEST)):
            if before and before.get(option, usual) != now:
                raise UserError(
                    f"the data there are of servers with --{option} {before.get(option, usual)}, not {now}",
                    code="CDC-SANDBOX-EXISTS",
                    where=str(self.folder),
                    hint="start them with that option; or cdc-sandbox down --wipe, or another --dir",
                )

    def wipe(self) -> None:
        """Removes the files of the servers, but no other files in the folder. The servers must not be running."""
        if not (self.folder / _MARKER).exists():
            return
        for name in (*_NAMES, _CERTIFICATES):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (_PORTS, _MARKER, "mysql-leader", "mysql-follower"):
            (self.folder / name).unlink(missing_ok=True)

    def status(self) -> dict[str, bool]:
        """Maps the name and address of each server to whether it runs."""
        return {f"{name:9} 127.0.0.1:{server.port}": server.running() for name, server in self._each()}

    def directions(self) -> str:
        """Returns a text that explains to the user how to connect."""
        version = ".".join(map(str, _PROGRAMS[self._mysql]().version))
        leader = f"MySQL {version}"
        if self._kind == _MARIADB:
            leader = "MariaDB " + ".".join(map(str, mariadb_programs().version))
        clients = [f"{self.folder}/mysql-{name}" for name in ("leader", "follower")]
        lines = [
            f"leader     {leader} on 127.0.0.1:{self.leader.port}, user {USER}, password {PASSWORD}",
            f"follower   MySQL {version} on 127.0.0.1:{self.follower.port}, the same",
            f"kafka      Apache Kafka {KAFKA_VERSION} on {self.kafka.bootstrap_servers}",
            f"profiles   {self.folder}/*_profile.toml",
            *(f"client     {client}" for client in clients if Path(client).exists()),
            f"logs       {self.folder}/*/*.log",
        ]
        if self._broker is not None:
            lines.insert(
                3, f"secured    TLS only, by {self.certificates.authority}; the profiles have users of their own"
            )
        return "\n".join(lines)
