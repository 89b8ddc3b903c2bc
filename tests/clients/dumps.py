"""mysqldump, mysqlimport and mysql as they come with the server, and mydumper of Debian's, run as a DBA runs them."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdc.sandbox.fetch.mysql_programs import Packages, mysql_programs, unpacked
from cdc.sandbox.server.mysql import MySql

__all__ = ["Dumps"]

_MYDUMPER = Packages(label="mydumper", suite="sid", names=("mydumper",), hint="these tests need Debian's apt")


@dataclass(frozen=True)
class Dumps:
    """The programs on one server, as root over its socket."""

    server: MySql

    def dump(self, *options: str) -> bytes:
        """What mysqldump prints."""
        # Without, a dump sets the GTIDs of the server and turns its binlog off, and the same server refuses it.
        return self._run([*_beside_mysql("mysqldump"), *self._login, "--set-gtid-purged=OFF", *options])

    def load(self, text: bytes, *options: str) -> None:
        """mysql executes the text."""
        self._run([*_beside_mysql("mysql"), *self._login, *options], text)

    def mysqlimport(self, *options: str) -> None:
        self._run([*_beside_mysql("mysqlimport"), *self._login, *options])

    def mydumper(self, program: str, *options: str) -> bytes:
        """mydumper, or its myloader."""
        root = _mydumper()
        libraries = next(root.glob("usr/lib/*-linux-gnu"))
        loader = str(next(root.glob("usr/lib*/**/ld-linux*.so.*")))
        login = ["--user=root", f"--socket={self.server.socket}"]
        command = [loader, "--library-path", str(libraries), str(root / "usr/bin" / program), *login, *options]
        return self._run(command, environment={"MARIADB_PLUGIN_DIR": str(libraries / "libmariadb3/plugin")})

    @property
    def _login(self) -> list[str]:
        return ["--no-defaults", "--user=root", f"--socket={self.server.socket}", "--default-character-set=utf8mb4"]

    @staticmethod
    def _run(command: list[str], text: bytes = b"", *, environment: dict[str, str] | None = None) -> bytes:
        env = dict(os.environ) | (environment or {})
        done = subprocess.run(command, input=text, capture_output=True, timeout=300, check=False, env=env)
        assert done.returncode == 0, f"{command[-3:]}: {done.stderr.decode(errors='replace')[-2000:]}"
        return done.stdout


def _beside_mysql(program: str) -> list[str]:
    *start, mysql = mysql_programs().client
    return [*start, str(Path(mysql).with_name(program))]


@cache
def _mydumper() -> Path:
    return unpacked("mydumper", _MYDUMPER)
