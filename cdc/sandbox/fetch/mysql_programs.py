"""Finds the programs of MySQL and of MariaDB. They may be installed on this machine, or be in a folder that an
environment variable names; otherwise they come from Debian's packages."""

import functools
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdc.errors import UserError
from cdc.sandbox.fetch.debian import unpacked_mariadb, unpacked_mariadb_118, unpacked_mysql, unpacked_mysql_80

__all__ = ["MySqlPrograms", "mariadb_programs", "mariadb_programs_118", "mysql_programs", "mysql_programs_80"]

_OLDEST = (8, 0)


@dataclass(frozen=True, slots=True)
class MySqlPrograms:
    """The command lines of ``server`` and ``client``, without options; ``client`` is empty if only a server is
    installed.

    ``options`` are options that this server always needs; they follow ``--no-defaults``. ``banner`` is the text with
    the server's version.
    """

    server: tuple[str, ...]
    client: tuple[str, ...]
    options: tuple[str, ...]
    banner: str

    @property
    def version(self) -> tuple[int, ...]:
        """The version of the server as (major, minor, patch)."""
        return _version(self.banner)


@functools.cache
def mysql_programs() -> MySqlPrograms:
    """Finds MySQL 8.0 or newer on PATH; otherwise fetches MySQL from Debian. Raises UserError if neither is
    possible."""
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
    """Finds MySQL 8.0 in the folder ``$CDC_MYSQL_80`` or on PATH; otherwise fetches Debian's last packages of MySQL
    8.0.

    Raises UserError if the programs cannot be found or fetched.
    """
    if named := os.environ.get("CDC_MYSQL_80"):
        return _of_80(_in_folder(named, "CDC_MYSQL_80", "mysqld", "mysql"))
    usual = mysql_programs()
    return usual if usual.version[:2] == _OLDEST else _of_80(_from_debian(unpacked_mysql_80()))


@functools.cache
def mariadb_programs() -> MySqlPrograms:
    """Finds MariaDB in the folder ``$CDC_MARIADB``; otherwise fetches Debian's packages of MariaDB 10.11.

    Raises UserError if the programs cannot be found or fetched.
    """
    return _mariadb("CDC_MARIADB", unpacked_mariadb)


@functools.cache
def mariadb_programs_118() -> MySqlPrograms:
    """Returns the programs of a MariaDB 11.8: from the folder ``$CDC_MARIADB_118``, or from Debian's packages.

    Raises UserError if they cannot be found or fetched.
    """
    return _mariadb("CDC_MARIADB_118", unpacked_mariadb_118)


def _mariadb(variable: str, unpacked: Callable[[], Path]) -> MySqlPrograms:
    if named := os.environ.get(variable):
        found = _in_folder(named, variable, "mariadbd", "mariadb")
    else:
        found = _from_debian(unpacked(), "mariadbd", "mariadb")
    if "MariaDB" not in found.banner:
        raise UserError(f"this is no MariaDB: {found.banner}", code="CDC-SANDBOX-NO-MYSQLD", where=found.server[-1])
    return found


def _in_folder(named: str, variable: str, server_name: str, client_name: str) -> MySqlPrograms:
    """Finds the programs in the folder ``named``, the value of the environment variable ``variable``."""
    path = ":".join(f"{named}/{folder}" for folder in ("usr/sbin", "usr/bin", "sbin", "bin", "libexec"))
    server, client = shutil.which(server_name, path=path), shutil.which(client_name, path=path)
    if server is None:
        raise UserError(
            f"there is no {server_name}",
            code="CDC-SANDBOX-NO-MYSQLD",
            where=f"{named} ({variable})",
            hint=f"name the folder with bin/{server_name}",
        )
    # The server finds its messages and character sets through basedir, the folder that contains bin or sbin.
    options = (f"--basedir={Path(server).parents[1]}",)
    return MySqlPrograms((server,), (client,) if client else (), options, _banner((server,)))


def _of_80(programs: MySqlPrograms) -> MySqlPrograms:
    if programs.version[:2] != _OLDEST:
        raise UserError(
            f"this is no MySQL 8.0: {programs.banner}", code="CDC-SANDBOX-NO-MYSQLD", where=programs.server[-1]
        )
    return programs


def _from_debian(root: Path, server_name: str = "mysqld", client_name: str = "mysql") -> MySqlPrograms:
    # The packages need a newer C library than the machine's C library. Only the loader in the packages can load it.
    # Debian 12 has the C library in /lib, later releases have it in /usr/lib.
    loaders = sorted(root.glob("usr/lib*/**/ld-linux*.so.*")) or sorted(root.glob("lib/**/ld-linux*.so.*"))
    if not loaders:
        raise UserError(
            "the unpacked server has no loader",
            code="CDC-SANDBOX-CACHE",
            where=str(root),
            hint="remove that folder, then try again",
        )
    folders = (loaders[0].parent, *sorted(root.glob("usr/lib/*-linux-gnu")), *sorted(root.glob("lib/*-linux-gnu")))
    libraries = ":".join(map(str, folders))
    loader = (str(loaders[0]), "--library-path", libraries)
    server = (*loader, str(root / "usr/sbin" / server_name))
    client = (*loader, str(root / "usr/bin" / client_name))
    # The server is not in the folder for which it was built. So it needs basedir to find its messages and character
    # sets.
    options = (f"--basedir={root / 'usr'}",)
    return MySqlPrograms(server=server, client=client, options=options, banner=_banner(server))


def _banner(server: tuple[str, ...]) -> str:
    result = subprocess.run([*server, "--no-defaults", "--version"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise UserError(
            f"{Path(server[-1]).name} does not run: {result.stderr.strip()[:200]}",
            code="CDC-SANDBOX-START",
            where=server[-1],
        )
    return result.stdout.strip()


def _version(banner: str) -> tuple[int, ...]:
    match = re.search(r"Ver (\d+)\.(\d+)\.(\d+)", banner)
    return tuple(int(part) for part in match.groups()) if match else (0,)
