"""Unpacks Debian packages into the cache, without root, and without changing the system or its apt configuration."""

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from cdc.errors import UserError
from cdc.sandbox.fetch.cache import cached, run_fetch

__all__ = [
    "NoDebian", "Packages", "mirror", "unpacked", "unpacked_mariadb", "unpacked_mariadb_118", "unpacked_mysql",
    "unpacked_mysql_80",
]  # fmt: skip

_KEYRINGS = Path("/usr/share/keyrings")
_APT = Path("/etc/apt")


class NoDebian(UserError):
    """This machine cannot fetch Debian's packages. Either apt is missing or not set up for Debian, or Debian has no
    such packages for the machine's architecture.
    """


@dataclass(frozen=True, slots=True)
class Packages:
    """The packages ``names`` of Debian's ``suite``, with their dependencies. ``hint`` describes what users can do if
    the packages can't be fetched.

    Packages in ``without`` are not unpacked, since the machine's own packages are used. ``pooled`` are packages that
    are no longer in any suite; each has its path in Debian's archive (for x86_64) and its SHA-256. The dependencies of
    these packages are fetched from ``suite``; it may name several suites.
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
