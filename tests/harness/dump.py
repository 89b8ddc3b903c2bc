"""Copies a leader's database as an operator does: with mysqldump and the mysql client."""

import re
import subprocess
from pathlib import Path

from cdc.model.gtid import GtidSet
from cdc.sandbox.fetch.mysql_programs import mysql_programs
from cdc.sandbox.server.mysql import MySql

__all__ = ["dump", "restore"]

_OPTIONS = ["--single-transaction", "--set-gtid-purged=COMMENTED", "--routines", "--skip-triggers"]
_PURGED = re.compile(r"GTID_PURGED=(?:/\*!80000 '\+'\*/ )?'\+?([^']*)'")


def dump(server: MySql, *databases: str) -> tuple[str, str]:
    """The dump, and the GTID set that it names."""
    text = _run("mysqldump", server, [*_OPTIONS, "--databases", *databases])
    found = _PURGED.search(text)
    assert found, text[:1000]
    return text, str(GtidSet.parse(found[1].replace("\n", "")))


def restore(server: MySql, text: str) -> None:
    """Runs the dump on another server."""
    _run("mysql", server, [], text)


def _run(program: str, server: MySql, options: list[str], text: str | None = None) -> str:
    *loader, client = mysql_programs().client
    login = ["--no-defaults", f"--socket={server.socket}", "--user=root"]
    command = [*loader, str(Path(client).with_name(program)), *login, *options]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, timeout=60).stdout
