"""Runs pt-table-checksum (Percona Toolkit) for comparison with the audit, on a native replica of the same leader."""

import re
import shutil
import subprocess
from pathlib import Path

from replica import NativeReplica

from cdc.sandbox.server.mysql import PASSWORD, USER, MySql

__all__ = ["Refused", "TableChecksum", "installed"]

_PROGRAM = "pt-table-checksum"


class Refused(Exception):
    """The program refuses these servers; the message is its own."""


class TableChecksum:
    """A native replica of ``leader`` that follows it, and the program that checks it.

    The program sums chunk by chunk into a table on the leader, in statements that do the same on the replica when they
    are replicated, and compares the two results. A follower that is fed by cdc-consumer could not apply them: they are
    logged as statements, so a native replica is needed.
    """

    def __init__(self, leader: MySql, folder: Path) -> None:
        # The program finds the replica by the host it reports.
        self.replica = MySql(folder, server_id=3, extra_args=["--report-host=127.0.0.1"]).start()
        self._leader = leader
        native = NativeReplica(leader, self.replica)
        native.receive()
        native.apply()
        native.follow()

    def run(self) -> int:
        """Checks the tables of ``bench``; returns the number of compared rows. Raises Refused."""
        # Both servers log rows, which the program refuses for the sake of replicas of the replica; there are none.
        options = ["--databases=bench", "--no-check-binlog-format", "--recursion-method=hosts"]
        source = f"h=127.0.0.1,P={self._leader.port},u={USER},p={PASSWORD}"
        done = subprocess.run([_PROGRAM, *options, source], capture_output=True, text=True, check=False)
        compared = re.search(r"^\S+ +0 +0 +(\d+) .* bench\.t$", done.stdout, flags=re.MULTILINE)
        if done.returncode or not compared:
            said = done.stderr.strip() or done.stdout.strip()
            raise Refused(f"{_version()} ended with {done.returncode}: {said}")
        return int(compared[1])


def installed() -> bool:
    """Whether the program is on PATH."""
    return shutil.which(_PROGRAM) is not None


def _version() -> str:
    return subprocess.run([_PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.strip()
