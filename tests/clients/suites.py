"""Test suites of Python libraries for databases, out of their source packages, run as their makers run them."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cdc.sandbox.fetch.cache import cached, run_fetch
from cdc.sandbox.server.mysql import MySql

__all__ = ["run_django", "run_sqlalchemy"]

# Pure Python: mysqlclient would need a compiler.
_DRIVER = ("PyMySQL==1.1.2", "cryptography")
_SETTINGS = """
import pymysql
pymysql.version_info = (2, 2, 1, "final", 0)  # what Django asks of mysqlclient
pymysql.install_as_MySQLdb()

def database(name):
    login = {{"ENGINE": "django.db.backends.mysql", "USER": "root", "HOST": {socket!r}}}
    return login | {{"NAME": name, "TEST": {{"NAME": "suite_" + name, "CHARSET": "utf8mb4"}}}}

DATABASES = {{"default": database("default"), "other": database("other")}}
SECRET_KEY = "of tests"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""


@dataclass(frozen=True)
class _Suite:
    """The tests of ``package``, in the ``version`` that its source package has, run with other ``requirements``."""

    package: str
    version: str
    requirements: tuple[str, ...]

    def run(self, where: str, *command: str, log: Path, modules: Path) -> None:
        """Run python with ``command`` in a folder of the source package; what it says is in ``log``.

        That tests fail is their maker's business. Modules are looked for in the folder ``modules``, too.
        """
        folder = cached(f"{self.package}-{self.version}", self._fetch)
        python, environment = folder / "environment/bin/python", dict(os.environ) | {"PYTHONPATH": str(modules)}
        with log.open("w") as said:
            place = folder / "source" / where
            subprocess.run([python, *command], cwd=place, env=environment, stdout=said, stderr=said, check=False)

    def _fetch(self, folder: Path) -> None:
        """Into an environment of its own: nothing of it is for this project."""
        label, own = f"{self.package} {self.version} with its tests", folder / "environment"
        run_fetch([sys.executable, "-m", "venv", own], label=f"an environment for {label}", into=own)
        pip: Sequence[str | Path] = [own / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
        source = ["download", "--no-deps", "--no-binary", self.package, "--dest", folder]
        run_fetch([*pip, *source, f"{self.package}=={self.version}"], label=label, into=folder)
        archive = next(folder.glob("*.tar.gz"))
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
        archive.unlink()
        next(path for path in folder.glob(f"{self.package}-*") if path.is_dir()).rename(folder / "source")
        needed = [folder / "source", *self.requirements]
        run_fetch([*pip, "install", *needed], label=f"what {label} needs", into=own)


_DJANGO = _Suite("django", "5.2.19", _DRIVER)
# They make tables of MyISAM with foreign keys, which stop the consumer, as documented.
_NO_FOLLOWER_HAS = "not test_misordered_lastrow and not DefaultTest"
_SQLALCHEMY = _Suite("sqlalchemy", "2.0.58", (*_DRIVER, "pytest<9"))


def run_django(server: MySql, folder: Path, apps: Sequence[str]) -> str:
    """Run the tests of the apps, of all where none is named; they leave their databases. How it ended."""
    (folder / "suite_settings.py").write_text(_SETTINGS.format(socket=str(server.socket)))
    log = folder / "django.log"
    options = ["--settings=suite_settings", "--keepdb", "--noinput", "--parallel=1"]
    _DJANGO.run("tests", "runtests.py", *options, *apps, log=log, modules=folder)
    said = log.read_text().splitlines()
    return " ".join(line for line in said if line.startswith(("Ran ", "OK", "FAILED (")))


def run_sqlalchemy(server: MySql, folder: Path, tests: Sequence[str]) -> str:
    """Run the tests that use a database, of these files or folders. How it ended."""
    url = f"mysql+pymysql://root@localhost/test?charset=utf8mb4&unix_socket={server.socket}"
    log = folder / "sqlalchemy.log"
    options = ["-p", "no:cacheprovider", "-q", "--backend-only", f"--dburi={url}", "-k", _NO_FOLLOWER_HAS]
    _SQLALCHEMY.run(".", "-m", "pytest", *options, *tests, log=log, modules=folder)
    return log.read_text().splitlines()[-1].strip("= ")
