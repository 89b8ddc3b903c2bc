"""Finds the programs of MySQL and of MariaDB. They may be installed on this machine, or be in a folder that an
environment variable names; otherwise they come from Debian's packages."""

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cdc.errors import UserError
from cdc.sandbox.fetch.cache import cached, run_fetch

__all__ = [
    "MySqlPrograms",
    "NoDebian",
    "Packages",
    "mariadb_programs",
    "mariadb_programs_118",
    "mirror",
    "mysql_programs",
    "mysql_programs_80",
    "unpacked",
    "unpacked_mariadb",
    "unpacked_mariadb_118",
    "unpacked_mysql",
    "unpacked_mysql_80",
]

# Unpacks Debian packages into the cache, without root, and without changing the system or its apt configuration.

_KEYRINGS = Path("/usr/share/keyrings")
_APT = Path("/etc/apt")


class NoDebian(UserError):
    """This machine cannot fetch Debian's packages. Either apt is missing or not set up for Debian, or Debian has no
    MySQL or MariaDB packages for the machine's architecture.
    """


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages ``names`` of Debian's ``suite``, with their dependencies. ``hint`` describes what users can do if
    the packages can't be fetched.

    Packages in ``without`` are not unpacked, since the machine's own packages are used. ``pooled`` are packages that
    are no longer in any suite: their paths in Debian's archive (for x86_64) and their SHA-256. Their dependencies are
    fetched from ``suite``, which may name several suites for this purpose.
    """

    label: str
    suite: str
    names: tuple[str, ...]
    hint: str
    without: tuple[str, ...] = ()
    pooled: tuple[tuple[str, str], ...] = ()


_MYSQL = Packages(
    label="MySQL server and client",
    suite="sid",
    names=("mysql-server-core", "mysql-client-core"),
    hint="install mysql-server (8.0 or newer), so that mysqld is on PATH",
)
_POOL_80 = "pool/main/m/mysql-8.0"
_MYSQL_80 = Packages(
    label="MySQL 8.0 server and client",
    suite="sid trixie",
    names=(),
    hint="set CDC_MYSQL_80 to the folder of a MySQL 8.0, with bin/mysqld or usr/sbin/mysqld in it",
    pooled=(
        (
            f"{_POOL_80}/mysql-server-core-8.0_8.0.45-1_amd64.deb",
            "0d6227408f63c01dadce99c1639f2427cc88495a0b3ed3292a85d9c2aa64e1fd",
        ),
        (
            f"{_POOL_80}/mysql-client-core-8.0_8.0.45-1_amd64.deb",
            "cbb6881d471c60bcb3f6ac2fd2b8e982c11836a0ce98469aef89b49d9a346aea",
        ),
    ),
)

_MARIADB = Packages(
    label="MariaDB 10.11 server and client",
    suite="bookworm",
    names=("mariadb-server-core", "mariadb-client-core"),
    hint="set CDC_MARIADB to the folder of a MariaDB, with bin/mariadbd or usr/sbin/mariadbd in it",
)


_IN_118 = "set CDC_MARIADB_118 to the folder of a MariaDB 11.8, with bin/mariadbd or usr/sbin/mariadbd in it"


def unpacked_mysql() -> Path:
    """Unpacks the MySQL packages. Returns their root folder, which contains ``usr/sbin/mysqld`` and all libraries that
    mysqld needs.

    Raises UserError if the packages cannot be fetched.
    """
    return unpacked("mysql", _MYSQL)


def unpacked_mysql_80() -> Path:
    """Unpacks the packages of the last MySQL 8.0 that Debian distributed; see ``unpacked_mysql``."""
    return unpacked("mysql-8.0", _MYSQL_80)


def unpacked_mariadb() -> Path:
    """Unpacks the packages of MariaDB 10.11; see ``unpacked_mysql``."""
    return unpacked("mariadb-10.11", _MARIADB)


def unpacked_mariadb_118() -> Path:
    """Returns the root folder of the unpacked packages of MariaDB 11.8; see ``unpacked_mysql``."""
    newer = replace(_MARIADB, label="MariaDB 11.8 server and client", suite="trixie", hint=_IN_118)
    return unpacked("mariadb-11.8", newer)


def unpacked(name: str, packages: Packages) -> Path:
    """Unpacks ``packages``; returns their root folder. The name of the folder in the cache consists of ``name``, the
    suite and the architecture of the machine.

    Raises UserError if the packages cannot be fetched, NoDebian if this machine cannot fetch them at all.
    """
    suites = packages.suite.replace(" ", "-")
    return cached(f"{name}-debian-{suites}-{platform.machine()}", partial(_fetch, packages))


def _fetch(packages: Packages, folder: Path) -> None:
    for tool in ("apt-get", "apt-config", "dpkg"):
        if shutil.which(tool) is None:
            raise NoDebian(
                f"cannot fetch {packages.label} from Debian: there is no {tool} on PATH",
                code="CDC-SANDBOX-FETCH",
                hint=packages.hint,
            )
    if packages.pooled and platform.machine() != "x86_64":
        raise NoDebian(
            f"Debian has no {packages.label} for {platform.machine()}", code="CDC-SANDBOX-FETCH", hint=packages.hint
        )
    apt = folder / "apt"
    config = _private_apt(apt, packages)
    environment = {"APT_CONFIG": str(config), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    index = f"Debian {packages.suite}'s package index"
    run_fetch(["apt-get", "update"], label=index, into=apt / "lists", environment=environment)
    archives = apt / "archives"
    pooled = [_pooled(path, sha256, archives, packages, environment) for path, sha256 in packages.pooled]
    run_fetch(
        ["apt-get", "install", "--yes", "--no-install-recommends", "--download-only", *packages.names, *pooled],
        label=packages.label,
        into=archives,
        environment=environment,
    )
    for package in sorted(archives.glob("*.deb")):
        if package.name.partition("_")[0] not in packages.without:
            subprocess.run(["dpkg", "-x", package, folder], check=True)
    shutil.rmtree(apt)


def _pooled(path: str, sha256: str, archives: Path, packages: Packages, environment: dict[str, str]) -> Path:
    """Downloads the package at ``path`` in Debian's archive. apt's helper checks the package's SHA-256."""
    uri, target = f"{mirror(_APT, packages.hint).rstrip('/')}/{path}", archives / path.rpartition("/")[2]
    helper = "/usr/lib/apt/apt-helper"
    run_fetch(
        [helper, "download-file", uri, target, f"SHA256:{sha256}"],
        label=target.name,
        into=archives,
        environment=environment,
    )
    return target


def _private_apt(folder: Path, packages: Packages) -> Path:
    """Writes a private configuration of apt. With it, apt knows no installed packages, and only the suites of
    ``packages``.
    """
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    sources = folder / "debian.sources"
    sources.write_text(
        f"Types: deb\nURIs: {mirror(_APT, packages.hint)}\nSuites: {packages.suite}\nComponents: main\n"
        f"Signed-By: {_keyring(_KEYRINGS, packages.hint)}\n"
    )
    config = folder / "apt.conf"
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::parts": "/dev/null",  # disables the hooks in the machine's configuration
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": folder,
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder,
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "Dir::Cache::archives": folder / "archives",
        "Dir::Log": folder,
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
        "Acquire::GzipIndexes": "true",
    }
    lines = [f'{key} "{value}";\n' for key, value in settings.items()]
    config.write_text("".join([*_machines_network_settings(), *lines]))
    return config


def _machines_network_settings() -> Iterator[str]:
    """Yields the settings with which the machine's own apt connects to its mirror: proxy, certificates and timeouts."""
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True).stdout
    for line in dump.splitlines(keepends=True):
        if line.startswith("Acquire::") and not line.startswith("Acquire::IndexTargets"):
            yield line


def _keyring(folder: Path, hint: str) -> Path:
    for name in ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp"):
        if (folder / name).exists():
            return folder / name
    raise NoDebian(
        "Debian's signatures cannot be checked: no debian-archive-keyring",
        code="CDC-SANDBOX-FETCH",
        where=str(folder),
        hint=hint,
    )


@dataclass(frozen=True, slots=True)
class _Source:
    uri: str
    suites: list[str]
    components: list[str]


def mirror(apt: Path, hint: str) -> str:
    """Finds the Debian mirror in the machine's own apt sources, which are in the folder ``apt``. Raises NoDebian, with
    ``hint``, if the sources name no mirror.

    Reads both formats of sources.list(5), the one-line format and deb822.
    """
    lists = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    for file in lists:
        if not file.is_file() or file.suffix not in (".list", ".sources"):
            continue
        text = file.read_text(errors="replace")
        for source in _deb822(text) if file.suffix == ".sources" else _one_line(text):
            # Accepts deb.debian.org/debian, and …/debian on another mirror. Does not accept the security archive,
            # because it has no sid.
            if "main" in source.components and source.uri.rstrip("/").endswith("/debian"):
                return source.uri
    raise NoDebian("apt's sources name no Debian mirror", code="CDC-SANDBOX-FETCH", where=str(apt), hint=hint)


def _one_line(text: str) -> Iterator[_Source]:
    for line in text.splitlines():
        match = re.match(r"deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)\s+([^#]+)", line.strip())
        if match:
            yield _Source(uri=match[1], suites=[match[2]], components=match[3].split())


def _deb822(text: str) -> Iterator[_Source]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for stanza in re.split(r"\n\s*\n", "\n".join(lines)):
        fields = {
            name.lower(): value.split()
            for name, value in re.findall(r"^([\w-]+):((?:.*)(?:\n[ \t].*)*)", stanza, flags=re.MULTILINE)
        }
        if "deb" in fields.get("types", []) and fields.get("enabled", ["yes"])[0] not in ("no", "false"):
            for uri in fields.get("uris", []):
                yield _Source(uri=uri, suites=fields.get("suites", []), components=fields.get("components", []))


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
