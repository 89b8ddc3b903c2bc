"""MySQL's own regression tests out of Debian's package, each run on a leader by the server's own test client.

The client is ``mysqltest``, the files are in its language (MySQL manual, "The MySQL Test Framework"). No result is
compared with the expected one: what matters is what the leader logs, and a test that fails halfway has logged, too.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdc.sandbox.fetch.mysql_programs import Packages, unpacked
from cdc.sandbox.server.mysql import MySql

__all__ = ["DATABASES", "KEPT", "Suite"]

_PACKAGES = Packages(
    label="MySQL's own tests", suite="sid", names=("mysql-testsuite",), hint="these tests need Debian's apt"
)
KEPT = "kept"
DATABASES = ("test", KEPT)  # which a test finds empty
_SECONDS = 120
# What is about storing and altering: of the folders of tests those, of their names none of these.
_FOLDERS = ("t", "collations", "engines", "gcol", "gis", "innodb", "innodb_fts", "innodb_gis", "json", "jp", "parts")
_OTHER_NAMES = re.compile(r"big|rpl_|upgrade|perfschema|mysql(dump|admin|binlog)|plugin|ssl|auth|acl|explain|opt_")
# What needs more than one server that goes on running: a restart, other servers, a debug build. The engines are those
# without transactions, and without GTIDs, binlog or rows in it there is nothing to follow.
_NEEDS_MORE = re.compile(
    rb"re?start_mysqld|kill_(mysqld|and_restart)|shutdown_mysqld|^\s*shutdown\s*;|have_debug\.inc|have_ndb|rpl/init"
    rb"|master-slave|(have|force)_myisam|engine\s*=?\s*(myisam|memory|heap|archive|csv|merge|blackhole)"
    rb"|gtid_mode_off|not_log_bin|reset\s+(master|binary)|binlog_format\w*(statement|mixed)",
    re.MULTILINE | re.IGNORECASE,
)
_SOURCE = re.compile(rb"^\s*(?:--)?\s*source\s+([\w./$-]+?);?\s*$", re.MULTILINE)
_NAME = rb"`?[\w$]+`?(?:\.`?[\w$]+`?)?"
_DROP = re.compile(rb"\s*drop\s+table\s+(?:if\s+exists\s+)?(%b(?:\s*,\s*%b)*)\s*;\s*" % (_NAME, _NAME), re.IGNORECASE)


@dataclass(frozen=True)
class Suite:
    """The unpacked package below ``root``, which needs a newer C library than the machine's: its own."""

    root: Path

    @classmethod
    def fetched(cls) -> "Suite":
        """Raises UserError where it cannot be fetched."""
        return _fetched()

    @property
    def _folder(self) -> Path:
        return self.root / "usr/lib/mysql-test"

    def tests(self) -> list[Path]:
        """The tests that need nothing but one running server, by their paths in the suite's folder."""
        folders = [self._folder / ("t" if each == "t" else f"suite/{each}") for each in _FOLDERS]
        found = sorted(path for folder in folders for path in folder.rglob("*.test"))
        return [
            path.relative_to(self._folder)
            for path in found
            if not _OTHER_NAMES.search(path.stem) and not _NEEDS_MORE.search(self._whole(path, set()))
        ]

    def _whole(self, path: Path, read: set[Path]) -> bytes:
        """The text of a test with all that it reads in."""
        if path in read or not path.is_file():
            return b""
        read.add(path)
        text = path.read_bytes()
        named = [match[1].decode() for match in _SOURCE.finditer(text)]
        parts = (self._whole(folder / name, read) for name in named for folder in (self._folder, path.parent))
        return text + b"".join(parts)

    def run(self, test: Path, server: MySql, folder: Path) -> str:
        """Run a test to its end, or until it fails or takes too long; the client's last words, empty where it passed.

        Tables that it drops are kept in the database ``kept`` instead, so that there is something to compare.
        """
        var, script = folder / "var", folder / "this.test"
        shutil.rmtree(var, ignore_errors=True)
        for name in ("tmp", "log"):
            (var / name).mkdir(parents=True)
        (var / "std_data").symlink_to(self._folder / "std_data")
        script.write_bytes(keeping_tables((self._folder / test).read_bytes()))
        try:
            done = subprocess.run(
                self._command(server, script, var), env=self._environment(server, var), cwd=self._folder,
                capture_output=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"not at its end after {_SECONDS} s"
        return done.stderr.decode(errors="replace")[-300:] if done.returncode else ""

    def _command(self, server: MySql, script: Path, var: Path) -> list[str]:
        options = {
            "socket": server.socket, "port": server.port, "user": "root", "database": DATABASES[0], "test-file": script,
            "tmpdir": var / "tmp", "logdir": var / "log", "basedir": f"{self._folder}/", "max-connect-retries": 2,
            "character-sets-dir": self.root / "usr/share/mysql/charsets",
        }  # fmt: skip
        written = [f"--{name}={value}" for name, value in options.items()]
        return [*self._loader(), str(self._folder / "bin/mysqltest"), "--no-defaults", "--silent", *written]

    def _loader(self) -> list[str]:
        loader = next(self.root.glob("usr/lib*/**/ld-linux*.so.*"))
        libraries = [loader.parent, *self.root.glob("usr/lib/*-linux-gnu")]
        return [str(loader), "--library-path", ":".join(map(str, libraries))]

    def _environment(self, server: MySql, var: Path) -> dict[str, str]:
        return dict(os.environ) | {
            "MYSQL_TEST_DIR": str(self._folder),
            "MYSQLTEST_VARDIR": str(var),
            "MYSQL_TMP_DIR": str(var / "tmp"),
            "MASTER_MYPORT": str(server.port),
            "MASTER_MYSOCK": str(server.socket),
            "MYSQLD_DATADIR": f"{server.data}/",
            "MYSQL_SHAREDIR": str(self.root / "usr/share/mysql"),
            "MYSQL_CHARSETSDIR": str(self.root / "usr/share/mysql/charsets"),
            "TZ": "GMT-3",
            "LC_ALL": "C",
        }


@cache
def _fetched() -> Suite:
    return Suite(unpacked("mysql-suite", _PACKAGES))


def keeping_tables(script: bytes) -> bytes:
    """A test that renames the tables that it drops, to ``kept``.`1` and so on, where the server lets it."""
    lines: list[bytes] = []
    number, before = 0, b""
    for line in script.split(b"\n"):
        drop = _DROP.fullmatch(line)
        # An --error before the line is about the line itself.
        if drop and not before.lower().startswith((b"--error", b"error ")):
            lines.append(b"--disable_abort_on_error")
            for name in drop[1].split(b","):
                number += 1
                lines.append(b"RENAME TABLE %b TO %b.`%d`;" % (name.strip(), KEPT.encode(), number))
            lines += [b"DROP TABLE IF EXISTS %b;" % drop[1], b"--enable_abort_on_error"]
        else:
            lines.append(line)
        before = line.strip() or before
    return b"\n".join(lines)
