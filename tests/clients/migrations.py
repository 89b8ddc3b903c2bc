"""Flyway and Liquibase of Maven Central, with the histories of changes in data/."""

import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdc.sandbox.fetch.jars import fetched_jars, java
from cdc.sandbox.server.mysql import PASSWORD, USER, MySql

__all__ = ["Migrations"]

_DATA = Path(__file__).parent / "data"
_DRIVER = "com.mysql:mysql-connector-j:9.5.0"
_FLYWAY = ("org.flywaydb:flyway-mysql:11.14.1", _DRIVER)
_LIQUIBASE = ("org.liquibase:liquibase-core:5.0.1", "info.picocli:picocli:4.7.7", _DRIVER)


@dataclass(frozen=True)
class Migrations:
    """What migrates one database of a server, as our user over TCP."""

    server: MySql
    database: str

    def flyway(self) -> str:
        """Apply all migrations."""
        words = [str(_DATA / "flyway/Migrate.java"), self._url, USER, PASSWORD, str(_DATA / "flyway")]
        return self._run("flyway-11", _FLYWAY, words)

    def liquibase(self, command: str, *options: str) -> str:
        """Run a command, such as ``update``, with the history."""
        login = [f"--url={self._url}", f"--username={USER}", f"--password={PASSWORD}"]
        start = ["liquibase.integration.commandline.LiquibaseCommandLine", "--analytics-enabled=false"]
        start += [f"--search-path={_DATA}", command, "--changelog-file=liquibase.xml"]
        return self._run("liquibase-5", _LIQUIBASE, [*start, *login, *options])

    @property
    def _url(self) -> str:
        options = "allowPublicKeyRetrieval=true&sslMode=DISABLED"
        return f"jdbc:mysql://127.0.0.1:{self.server.port}/{self.database}?{options}"

    @staticmethod
    def _run(name: str, artifacts: tuple[str, ...], words: list[str]) -> str:
        jars = ":".join(map(str, _jars(name, artifacts)))
        command = [str(java()), "-XX:TieredStopAtLevel=1", "-cp", jars, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, f"{words[0]}\n{(done.stdout + done.stderr)[-3000:]}"
        return done.stdout + done.stderr


@cache
def _jars(name: str, artifacts: tuple[str, ...]) -> list[Path]:
    return fetched_jars(name, artifacts, label=name.replace("-", " ").capitalize())
