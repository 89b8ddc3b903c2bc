"""Defines the settings of a MariaDB server, which can only be a leader, and initialises its data."""

import subprocess
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from cdc.errors import UserError
from cdc.sandbox.fetch.mysql_programs import MySqlPrograms, mariadb_programs
from cdc.sandbox.server.mysql import Dialect, MySql, grants, server_command

__all__ = ["MARIADB", "maria_db"]

_SETTINGS = (
    "--skip-name-resolve",
    "--bind-address=127.0.0.1",
    "--innodb-buffer-pool-size=128M",
    "--performance-schema=OFF",
    "--max-connections=200",
    "--character-set-server=utf8mb4",
    # cdc-producer requires these settings of a leader.
    "--log-bin=binlog",
    "--log-slave-updates=ON",
    "--gtid-strict-mode=ON",
    "--binlog-format=ROW",
    "--binlog-row-metadata=FULL",
    "--binlog-row-image=FULL",
    "--log-bin-trust-function-creators=ON",
    "--loose-character-set-collations=",  # this option exists from version 11 on
)
_TABLES = ("system_tables.sql", "performance_tables.sql", "system_tables_data.sql")
_PREFIXES = ("mysql_", "mariadb_")  # of these files: up to version 10.11, and in later versions
_SHARED = ("share/mysql", "share/mariadb", "share")


def maria_db(folder: Path, **options: Any) -> MySql:
    """Returns a MariaDB server with its data in ``folder``; ``options`` are further arguments of ``MySql``."""
    return MySql(folder, **{"find": mariadb_programs} | options, dialect=MARIADB)


def _initialise(programs: MySqlPrograms, folder: Path, chosen: Sequence[str]) -> None:
    data = folder / "data"
    data.mkdir()
    statements = ["CREATE DATABASE mysql;", "USE mysql;"]
    statements += [path.read_text() for path in _shared_files(programs)]
    # FLUSH PRIVILEGES makes the server read the privilege tables; before that, no account can be created.
    statements += ["FLUSH PRIVILEGES;", MARIADB.grants.read_text()]
    command = [*server_command(programs, data), *chosen, "--bootstrap", "--skip-log-bin"]
    done = subprocess.run(command, check=False, input="\n".join(statements), capture_output=True, text=True)
    if done.returncode or "ERROR:" in done.stderr:
        raise UserError(f"mariadbd cannot initialise its data: {done.stderr[-300:]}", code="CDC-SANDBOX-START")


def _shared_files(programs: MySqlPrograms) -> list[Path]:
    base = Path(programs.options[0].partition("=")[2])
    for name, prefix in product(_SHARED, _PREFIXES):
        found = [base / name / f"{prefix}{table}" for table in _TABLES]
        if found[0].exists():
            return found
    raise UserError("MariaDB's system tables are missing", code="CDC-SANDBOX-START", where=str(base))


MARIADB = Dialect(_SETTINGS, grants("mariadb_grants.sql"), _initialise)
