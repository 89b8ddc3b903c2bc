"""Percona Toolkit and sysbench out of Debian's packages, run as a DBA runs them."""

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdc.sandbox.fetch.mysql_programs import Packages, unpacked
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql

__all__ = ["SIZE", "Tools", "source", "sysbench"]

SIZE = 5_000  # rows of sysbench's table

_PACKAGES = Packages(
    label="Percona Toolkit and sysbench",
    suite="sid",
    names=("percona-toolkit", "sysbench"),
    hint="these tests need Debian's apt",
)


@dataclass(frozen=True)
class Tools:
    """The unpacked packages below ``root``, which need a newer C library than the machine's: their own."""

    root: Path

    @classmethod
    def fetched(cls) -> "Tools":
        """Raises UserError where they cannot be fetched."""
        return _fetched()

    def run(self, tool: str, *options: str, status: int = 0) -> str:
        """Run a tool to its end; what it printed. It must end with ``status``."""
        done = subprocess.run(
            self._command(tool, options), env=self._environment(), capture_output=True, text=True, timeout=300,
            check=False,
        )  # fmt: skip
        assert done.returncode == status, f"{tool} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def start(self, tool: str, *options: str) -> "subprocess.Popen[str]":
        """Start a tool in the background; its output in one stream."""
        return subprocess.Popen(
            self._command(tool, options), env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip

    @property
    def _libraries(self) -> Path:
        return next(self.root.glob("usr/lib/*-linux-gnu"))

    def _command(self, tool: str, options: tuple[str, ...]) -> list[str]:
        libraries = self._libraries
        loader = [str(next(self.root.glob("usr/lib*/**/ld-linux*.so.*"))), "--library-path", str(libraries)]
        if not tool.startswith("pt-"):
            return [*loader, str(self.root / "usr/bin" / tool), *options]
        folders = [self.root / "usr/share/perl5", *libraries.glob("perl5/5*"), *libraries.glob("perl/5*")]
        folders += [*self.root.glob("usr/share/perl/5*"), libraries / "perl-base"]
        perl = [str(self.root / "usr/bin/perl"), *(f"-I{folder}" for folder in folders)]
        return [*loader, *perl, str(self.root / "usr/bin" / tool), *options]

    def _environment(self) -> dict[str, str]:
        plugins = self._libraries / "libmariadb3/plugin"
        scripts = f"{self.root / 'usr/share/sysbench'}/?.lua"
        return dict(os.environ) | {"MARIADB_PLUGIN_DIR": str(plugins), "LUA_PATH": scripts}


@cache
def _fetched() -> Tools:
    return Tools(unpacked("percona", _PACKAGES))


def source(server: MySql, **more: str) -> str:
    """What names a server, and a database (D) and table (t) there, to the tools."""
    parts = {"h": "127.0.0.1", "P": str(server.port), "u": USER, "p": PASSWORD} | more
    return ",".join(f"{key}={value}" for key, value in parts.items())


def sysbench(tools: Tools, leader: MySql, *options: str) -> list[str]:
    """sysbench with one table, which ``prepare`` makes and ``run`` writes to."""
    login = [f"--mysql-port={leader.port}", "--mysql-host=127.0.0.1", f"--mysql-user={USER}", "--mysql-db=sb"]
    lua = str(tools.root / "usr/share/sysbench/oltp_write_only.lua")
    return ["sysbench", lua, *login, f"--mysql-password={PASSWORD}", "--tables=1", f"--table-size={SIZE}", *options]
