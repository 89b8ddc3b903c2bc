"""Starts, stops and kills a MySQL or MariaDB server that keeps its data in a folder."""

import hashlib
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Self

import pymysql
from pymysql.connections import Connection

from cdc.errors import UserError
from cdc.sandbox.fetch.cache import cached
from cdc.sandbox.fetch.mysql_programs import MySqlPrograms, mariadb_programs, mysql_programs
from cdc.sandbox.server.process import Process, free_port
from cdc.service.mysql_connection import connected
from cdc.service.private_files import write_text

__all__ = ["MARIADB", "MYSQL", "PASSWORD", "USER", "Dialect", "MySql", "grants", "maria_db", "server_command"]

USER = "fluvio"
PASSWORD = "fluvio4cdc!"
_START_SECONDS = 300  # seconds; on an idle machine a start takes ten, so only a start that hangs takes longer than this
_SETTING_SECONDS = 5
_ATTEMPTS = 5
_LONGEST_SOCKET = 100  # bytes; unix(7) allows 107, and mysqld appends ".lock" for its lock file
_FROM_THE_START = "--lower-case-table-names="  # a server accepts this option only if it has no data yet
# The default folder for SELECT … INTO OUTFILE exists only if a package has been installed, and without this folder the
# server does not start. NULL means no folder.
_NO_FOLDER = "--secure-file-priv=NULL"
_COMMON = (
    _NO_FOLDER,
    "--mysqlx=OFF",
    "--skip-name-resolve",
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=128M",
    "--performance-schema=OFF",
    "--max-connections=200",
    "--character-set-server=utf8mb4",
    "--local-infile=ON",  # cdc-consumer uses LOAD DATA LOCAL to insert many rows
)
# cdc-producer requires these settings on a leader; docker/my.cnf contains the same settings.
_REPLICATION = (
    "--log-bin=binlog",
    "--log-replica-updates=ON",
    "--gtid-mode=ON",
    "--enforce-gtid-consistency=ON",
    "--binlog-row-metadata=FULL",
    "--binlog-row-image=FULL",
    # Without this setting, a user needs the privilege SUPER to create a function that is replicated.
    "--log-bin-trust-function-creators=ON",
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between MySQL and MariaDB servers.

    ``settings`` are options of the server, and ``grants`` is the file with the statements that create the user
    ``fluvio``. ``initialise(programs, folder, options)`` creates the data of a new server, including that user, in the
    folder ``data`` below ``folder``; ``options`` can't be changed later.
    """

    settings: tuple[str, ...]
    grants: Path
    initialise: Callable[[MySqlPrograms, Path, Sequence[str]], None]


def grants(name: str) -> Path:
    """Returns the path of the SQL file ``name`` with the statements that create the user ``fluvio``."""
    return Path(__file__).parents[1] / name


class MySql:
    """A MySQL or MariaDB server. Its folder contains its data, socket, log and pid file; ``port`` 0 means any free
    port.

    The user ``fluvio`` has the grants in the dialect's file; ``root`` has no password, and can connect only over the
    socket. ``dialect`` is MySQL by default, and ``extra_args`` override its settings. ``find`` returns the programs of
    a server of this dialect.
    """

    def __init__(
        self,
        folder: Path,
        *,
        port: int = 0,
        server_id: int = 1,
        name: str = "mysqld",
        extra_args: Sequence[str] = (),
        find: Callable[[], MySqlPrograms] = mysql_programs,
        dialect: "Dialect | None" = None,
    ) -> None:
        self.folder = folder.absolute()
        self.port = port
        self.server_id = server_id
        self.extra_args = tuple(extra_args)
        self._find = find
        self.dialect = dialect or MYSQL
        self.process = Process(name, folder=self.folder)
        self.data = self.folder / "data"
        self.socket = self.folder / "mysqld.sock"

    def start(self, *, outlive: bool = False) -> Self:
        """Starts the server on the data in its folder, and waits until it answers; the first start creates the data.

        Unless ``outlive`` is true, the server ends when this process ends. Raises UserError if there is no MySQL, if
        the port is in use, or if the server refuses a setting.
        """
        programs = self._find()
        if len(os.fsencode(self.socket)) > _LONGEST_SOCKET:
            raise UserError(
                "the path is too long for a MySQL socket",
                code="CDC-SANDBOX-PATH",
                where=str(self.socket),
                hint="a shorter --dir",
            )
        chosen = [option for option in self.extra_args if option.startswith(_FROM_THE_START)]
        _new_data(programs, self.dialect, self.data, chosen)
        if not self.running():
            # A killed server leaves the lock file of its socket behind. The pid in that file may now belong to another
            # program.
            self.socket.with_name(f"{self.socket.name}.lock").unlink(missing_ok=True)
        # If another process binds the free port first, another port is tried.
        for port in [self.port] if self.port else [free_port() for _ in range(_ATTEMPTS)]:
            self.process.start(self._command(programs, port), outlive=outlive)
            if self.process.comes_up(self._answers, seconds=_START_SECONDS):
                self.port = port
                return self
            if "Bind on TCP/IP port" not in self.process.said():
                reason = _first_error(self.process)
                raise UserError(
                    f"{self.process.name} did not start: {reason}",
                    code="CDC-SANDBOX-START",
                    where=str(self.process.log),
                )
        raise UserError(
            f"port {port} is in use", code="CDC-SANDBOX-PORT", where=self.process.name, hint="give another port"
        )

    def _command(self, programs: MySqlPrograms, port: int) -> list[str]:
        return [
            *server_command(programs, self.data),
            f"--port={port}",
            f"--socket={self.socket}",
            f"--pid-file={self.data / 'mysqld.pid'}",
            f"--server-id={self.server_id}",
            *self.dialect.settings,
            *self.extra_args,
        ]

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            # This connects to the server without pymysql first, because pymysql does not close its own socket if the
            # server's socket does not exist yet.
            if probe.connect_ex(str(self.socket)):
                return False
        try:
            with self.root():
                return True
        except pymysql.err.OperationalError:
            return False

    def stop(self) -> None:
        """Shuts the server down cleanly, if it is running."""
        if self.running():
            # During a shutdown the server waits for its connections to end. In this time a running event scheduler
            # would use a whole core.
            limits = {"connect_timeout": _SETTING_SECONDS, "read_timeout": _SETTING_SECONDS}
            with suppress(pymysql.MySQLError), self.root(**limits) as connection, connection.cursor() as cursor:
                cursor.execute("SET GLOBAL event_scheduler = OFF")
        self.process.stop()

    def kill(self) -> None:
        """Sends SIGKILL to the server, and waits until the process has ended."""
        self.process.kill()

    def running(self) -> bool:
        """Whether the server process is running."""
        return self.process.running()

    def connect(self, **options: Any) -> "Connection[Any]":
        """Connects as the user ``fluvio`` over TCP, with autocommit; ``options`` are arguments for pymysql."""
        settings: dict[str, Any] = {"user": USER, "password": PASSWORD, "autocommit": True} | options
        connection: Connection[Any] = connected(host="127.0.0.1", port=self.port, **settings)
        return connection

    def root(self, **options: Any) -> "Connection[Any]":
        """Connects as ``root`` over the socket, with autocommit; ``options`` are arguments for pymysql."""
        settings: dict[str, Any] = {"user": "root", "autocommit": True, "ssl_disabled": True} | options
        return pymysql.connect(unix_socket=str(self.socket), **settings)

    def write_client(self, script: Path) -> None:
        """Writes a shell script that runs the client ``mysql`` with a connection to this server as ``fluvio``. Raises
        UserError if there is no client.
        """
        client = self._find().client
        if not client:
            raise UserError(
                "there is a mysqld but no mysql client on PATH",
                code="CDC-SANDBOX-NO-CLIENT",
                hint="install mysql-client",
            )
        options = self.folder / "client.cnf"
        # The password is in a file, because other users of the machine can read the command line.
        write_text(
            options,
            f'[client]\nprotocol=tcp\nhost=127.0.0.1\nport={self.port}\nuser={USER}\npassword="{PASSWORD}"\n',
        )
        words = " ".join(f"'{word}'" for word in (*client, f"--defaults-file={options}"))
        script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        script.chmod(0o755)


def server_command(programs: MySqlPrograms, data: Path) -> list[str]:
    """Returns the command that starts a MySQL or MariaDB server on the data folder ``data``, without the settings of
    its dialect.
    """
    user = ["--user=root"] if os.geteuid() == 0 else []
    return [*programs.server, "--no-defaults", *programs.options, f"--datadir={data}", *user]


def _first_error(process: Process) -> str:
    said = process.said()
    errors = re.findall(r"\[ERROR\] (?:\[[^\]]*\] )*(.*)", said)
    return errors[0] if errors else said.rpartition("\n")[2] or f"no answer in {_START_SECONDS} s"


def _new_data(programs: MySqlPrograms, dialect: Dialect, data: Path, settings: Sequence[str]) -> None:
    """Creates the data of a new server, with the user ``fluvio``. The data are copied from the cache, because
    initialising takes seconds.

    ``settings`` are the options with which the server must be initialised.
    """
    if data.exists():
        return
    known = (programs.banner.encode(), dialect.grants.read_bytes(), *map(str.encode, settings))
    stamp = hashlib.sha256(b"".join(known)).hexdigest()[:12]
    template = cached(f"mysql-data-{stamp}", lambda folder: dialect.initialise(programs, folder, settings)) / "data"
    aside = data.with_name("data.new")
    shutil.rmtree(aside, ignore_errors=True)
    # The spare files of the redo log are half of the data, and a server creates those that it lacks.
    shutil.copytree(template, aside, ignore=shutil.ignore_patterns("#ib_redo*_tmp"))
    aside.rename(data)


def _initialise(programs: MySqlPrograms, folder: Path, chosen: Sequence[str]) -> None:
    data = folder / "data"
    log = folder / "initialize.log"
    server = [*server_command(programs, data), _NO_FOLDER, *chosen]
    command = [*server, "--initialize-insecure", f"--log-error={log}"]
    if subprocess.run(command, check=False, stdin=subprocess.DEVNULL).returncode:
        raise UserError(
            f"mysqld cannot initialise its data: {log.read_text()[-300:]}",
            code="CDC-SANDBOX-START",
        )
    # --initialize cannot create accounts. So the server is started once without a binlog, to create them.
    process = Process("first-start", folder=folder)
    settings = ["--skip-networking", "--skip-log-bin", "--mysqlx=OFF", "--socket=mysqld.sock"]
    process.start([*server, *settings, f"--init-file={MYSQL.grants}"])
    # The server prints this line after it has executed the init file. A clean shutdown then writes all changes to the
    # data files.
    ready = process.comes_up(lambda: "ready for connections" in process.said(), seconds=_START_SECONDS)
    if not (ready and process.stop()):
        raise UserError(
            f"the first start of mysqld failed: {_first_error(process)}",
            code="CDC-SANDBOX-START",
            where="mysqld --init-file",
        )
    # auto.cnf contains the server UUID. Without it, each copy of the data gets its own server UUID at its first start.
    (data / "auto.cnf").unlink()


MYSQL = Dialect((*_COMMON, *_REPLICATION), grants("grants.sql"), _initialise)


# Defines the settings of a MariaDB server, which can only be a leader, and initialises its data.

_SETTINGS = (
    "--skip-name-resolve",
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=128M",
    "--performance-schema=OFF",
    "--max-connections=200",
    "--character-set-server=utf8mb4",
    # cdc-producer requires these settings of a leader.
    "--log-bin=binlog",
    "--log-slave-updates=ON",
    "--gtid-strict-mode=ON",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--binlog-row-image=FULL",
    "--log-bin-trust-function-creators=ON",
    "--loose-character-set-collations=",  # this option exists from version 11 on
)
_TABLES = ("system_tables.sql", "performance_tables.sql", "system_tables_data.sql")
_PREFIXES = ("mysql_", "mariadb_")  # how the names of these files begin: up to version 10.11, and in later versions
_SHARED = ("share/mysql", "share/mariadb", "share")


def maria_db(folder: Path, **options: Any) -> MySql:
    """Returns a MariaDB server with its data in ``folder``; ``options`` are further arguments of ``MySql``."""
    return MySql(folder, **{"find": mariadb_programs} | options, dialect=MARIADB)


def _initialise_mariadb(programs: MySqlPrograms, folder: Path, chosen: Sequence[str]) -> None:
    data = folder / "data"
    data.mkdir()
    statements = ["CREATE DATABASE mysql;", "USE mysql;"]
    statements += [path.read_text() for path in _shared_files(programs)]
    # FLUSH PRIVILEGES makes the server read the privilege tables; before that, no account can be created.
    statements += ["FLUSH PRIVILEGES;", MARIADB.grants.read_text()]
    command = [*server_command(programs, data), *chosen, "--bootstrap", "--skip-log-bin"]
    done = subprocess.run(command, check=False, input="\n".join(statements), capture_output=True, text=True)
    if done.returncode or "ERROR:" in done.stderr:
        raise UserError(f"mariadbd cannot initialise its data: {done.stderr[-300:]}", code="CDC-SANDBOX-START")


def _shared_files(programs: MySqlPrograms) -> list[Path]:
    base = Path(programs.options[0].partition("=")[2])
    for name, prefix in product(_SHARED, _PREFIXES):
        found = [base / name / f"{prefix}{table}" for table in _TABLES]
        if found[0].exists():
            return found
    raise UserError("MariaDB's system tables are missing", code="CDC-SANDBOX-START", where=str(base))


MARIADB = Dialect(_SETTINGS, grants("mariadb_grants.sql"), _initialise_mariadb)
