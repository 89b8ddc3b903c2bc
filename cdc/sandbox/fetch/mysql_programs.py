"""Finds mysqld and mysql on PATH or, if they are missing or too old, fetches them from Debian's packages."""

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cdc.errors import UserError
from cdc.sandbox.fetch.debian import unpacked_mysql, unpacked_mysql_80

__all__ = ["MySqlPrograms", "mysql_programs", "mysql_programs_80"]

_OLDEST = (8, 0)


@dataclass(frozen=True, slots=True)
class MySqlPrograms:
    """The command lines of ``server`` and ``client``, without options; ``client`` is empty if only a server is
    installed.

    ``options`` are the options that this server always needs, after ``--no-defaults``.
    """

    server: tuple[str, ...]
    client: tuple[str, ...]
    options: tuple[str, ...]
    banner: str

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the server: (major, minor, patch)."""
        return _version(self.banner)


@functools.cache
def mysql_programs() -> MySqlPrograms:
    """Finds the programs, and fetches them if needed. Raises UserError if they cannot be found or fetched."""
    path = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin"
    found = shutil.which("mysqld", path=path)
    if found:
        banner = _banner((found,))
        if _version(banner) >= _OLDEST and "MariaDB" not in banner:
            client = shutil.which("mysql", path=path)
            return MySqlPrograms(server=(found,), client=(client,) if client else (), options=(), banner=banner)
    return _from_debian(unpacked_mysql())


@functools.cache
def mysql_programs_80() -> MySqlPrograms:
    """The programs of a MySQL 8.0: from the folder ``$CDC_MYSQL_80``, or from PATH if they are version 8.0, or from
    Debian's last packages of it.

    Raises UserError if the programs cannot be found or fetched.
    """
    if named := os.environ.get("CDC_MYSQL_80"):
        path = ":".join(f"{named}/{folder}" for folder in ("usr/sbin", "usr/bin", "sbin", "bin", "libexec"))
        server, client = shutil.which("mysqld", path=path), shutil.which("mysql", path=path)
        if server is None:
            raise UserError(
                "there is no mysqld",
                code="CDC-SANDBOX-NO-MYSQLD",
                where=f"{named} (CDC_MYSQL_80)",
                hint="name the folder with bin/mysqld",
            )
        # The base directory is the folder above bin or sbin; the server finds its messages and character sets there.
        options = (f"--basedir={Path(server).parents[1]}",)
        return _of_80(MySqlPrograms((server,), (client,) if client else (), options, _banner((server,))))
    usual = mysql_programs()
    return usual if usual.version[:2] == _OLDEST else _of_80(_from_debian(unpacked_mysql_80()))


def _of_80(programs: MySqlPrograms) -> MySqlPrograms:
    if programs.version[:2] != _OLDEST:
        raise UserError(
            f"this is no MySQL 8.0: {programs.banner}", code="CDC-SANDBOX-NO-MYSQLD", where=programs.server[-1]
        )
    return programs


def _from_debian(root: Path) -> MySqlPrograms:
    # The packages need a newer C library than the machine's; only the library's own loader can load it.
    loaders = sorted(root.glob("usr/lib*/**/ld-linux*.so.*"))
    if not loaders:
        raise UserError(
            "the unpacked MySQL has no loader",
            code="CDC-SANDBOX-CACHE",
            where=str(root),
            hint="remove that folder, then try again",
        )
    libraries = ":".join(str(folder) for folder in (loaders[0].parent, *sorted(root.glob("usr/lib/*-linux-gnu"))))
    loader = (str(loaders[0]), "--library-path", libraries)
    server = (*loader, str(root / "usr/sbin/mysqld"))
    client = (*loader, str(root / "usr/bin/mysql"))
    # The package is not in its usual folder, so the server needs basedir to find its messages and character sets.
    options = (f"--basedir={root / 'usr'}",)
    return MySqlPrograms(server=server, client=client, options=options, banner=_banner(server))


def _banner(server: tuple[str, ...]) -> str:
    result = subprocess.run([*server, "--no-defaults", "--version"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(
            f"mysqld does not run: {result.stderr.strip()[:200]}", code="CDC-SANDBOX-START", where=server[-1]
        )
    return result.stdout.strip()


def _version(banner: str) -> tuple[int, ...]:
    match = re.search(r"Ver (\d+)\.(\d+)\.(\d+)", banner)
    return tuple(int(part) for part in match.groups()) if match else (0,)
