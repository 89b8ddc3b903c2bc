"""MySQL from Debian's sid suite, unpacked into the cache: no root, the system and its apt untouched."""

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cdc.errors import UserError
from cdc.sandbox.cache import cached, run_fetch

__all__ = ["mirror", "unpacked_mysql"]

_PACKAGES = ("mysql-server-core", "mysql-client-core")
_KEYRINGS = Path("/usr/share/keyrings")
_APT = Path("/etc/apt")
_INSTALL = "install mysql-server (8.0 or newer), so that mysqld is on PATH"


def unpacked_mysql() -> Path:
    """The root folder of the unpacked packages, with ``usr/sbin/mysqld`` and all libraries it needs.

    Raises UserError where this machine cannot have them.
    """
    return cached(f"mysql-debian-sid-{platform.machine()}", _fetch)


def _fetch(folder: Path) -> None:
    for tool in ("apt-get", "apt-config", "dpkg"):
        if shutil.which(tool) is None:
            raise UserError(f"there is neither a MySQL server nor {tool} on PATH", hint=_INSTALL)
    apt = folder / "apt"
    environment = {"APT_CONFIG": str(_private_apt(apt)), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    run_fetch(["apt-get", "update"], label="Debian sid's package index", into=apt / "lists", environment=environment)
    archives = apt / "archives"
    run_fetch(
        ["apt-get", "install", "--yes", "--no-install-recommends", "--download-only", *_PACKAGES],
        label="MySQL server and client",
        into=archives,
        environment=environment,
    )
    for package in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, folder], check=True)
    shutil.rmtree(apt)


def _private_apt(folder: Path) -> Path:
    """An apt configuration of our own, in which nothing is installed and only Debian sid is known."""
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    sources = folder / "sid.sources"
    sources.write_text(
        f"Types: deb\nURIs: {mirror(_APT)}\nSuites: sid\nComponents: main\nSigned-By: {_keyring(_KEYRINGS)}\n"
    )
    config = folder / "apt.conf"
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::parts": "/dev/null",  # the machine's hooks are for its own packages
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
    config.write_text("".join([*_machines_way_out(), *lines]))
    return config


def _machines_way_out() -> Iterator[str]:
    """How the machine's apt reaches its mirror (proxy, certificates, timeouts) counts for ours too."""
    dump = subprocess.run(["apt-config", "dump"], check=True, capture_output=True, text=True).stdout
    for line in dump.splitlines(keepends=True):
        if line.startswith("Acquire::") and not line.startswith("Acquire::IndexTargets"):
            yield line


def _keyring(folder: Path) -> Path:
    for name in ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp"):
        if (folder / name).exists():
            return folder / name
    raise UserError(
        "Debian's signatures cannot be checked: no debian-archive-keyring", where=str(folder), hint=_INSTALL
    )


@dataclass(frozen=True, slots=True)
class _Source:
    uri: str
    suites: list[str]
    components: list[str]


def mirror(apt: Path) -> str:
    """The Debian mirror that the machine's own apt sources below ``apt`` name. Raises UserError without one.

    Both forms of sources.list(5) are read: one line, and deb822.
    """
    lists = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]
    for file in lists:
        if not file.is_file() or file.suffix not in (".list", ".sources"):
            continue
        text = file.read_text(errors="replace")
        for source in _deb822(text) if file.suffix == ".sources" else _one_line(text):
            # deb.debian.org/debian, or a mirror's …/debian; the security archive has no sid
            if "main" in source.components and source.uri.rstrip("/").endswith("/debian"):
                return source.uri
    raise UserError("apt's sources name no Debian mirror and there is no mysqld", where=str(apt), hint=_INSTALL)


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
