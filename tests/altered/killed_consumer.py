"""cdc-consumer, killed by itself at a named point: ``run("killed_consumer", PROFILE, POINT, SEQUENCE)``.

The points are those of a statement on its way through the ledger; it dies at that of the record SEQUENCE.
"""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cdc.consumer import __main__ as program
from cdc.consumer import pipeline
from cdc.consumer.follower.session import Session
from tests.altered.replaced import replace

POINTS = (
    "before the intent", "after the intent", "before the statement", "in the statement", "after the statement",
    "before the commit", "after the commit",
)  # fmt: skip


class Killed(Session):
    """A session that dies at ``point`` of the record ``sequence``."""

    point = ""
    sequence = -1
    intended = -1
    reached = False

    def _pass(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


class Applying(Killed):
    """The session with the rows, the ledger and the checkpoint."""

    sent = ""

    def another(self) -> Session:
        """The session of a statement."""
        return Executing(self._database, stop=self._stop, parent=self)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query; one asks for the intent of the statement that is next."""
        if sql.startswith("SELECT gtid FROM") and (of := sql.rpartition("AND sequence=")[2]).isdigit():
            Killed.intended = int(of)
        return super().rows(sql)

    def send(self, packet: Sequence[bytes]) -> None:
        """Send a packet; the intent commits at once, the end of the statement with the next COMMIT."""
        text = b";".join(packet)
        self.sent = ""
        if f"VALUES ({self.sequence}, NOW(6)".encode() in text:
            self.sent = "the intent"
        elif self.reached and b"COMMIT" in packet:
            self.sent = "the commit"
        self._pass(f"before {self.sent}")
        super().send(packet)
        self.reached = self.reached or f"AND sequence={self.sequence} AND state='intent'".encode() in text

    def receive(self, meanwhile: Callable[[], bool] | None = None) -> list[int]:
        """Receive the counts of the packet."""
        counts = super().receive(meanwhile)
        self._pass(f"after {self.sent}")
        return counts


class Executing(Killed):
    """The session of one statement; the one after SET gtid_next is it."""

    def run(self, packet: Sequence[bytes]) -> list[int]:
        """Run a packet."""
        if not self.reached:
            self.reached = self.intended == self.sequence and packet[-1].startswith(b"SET gtid_next")
            return super().run(packet)
        self._pass("before the statement")
        if self.point == "in the statement":
            # Sent, and nobody is there any more to hear how it ends.
            self.send(packet)
        self._pass("in the statement")
        counts = super().run(packet)
        self._pass("after the statement")
        return counts


def main() -> int:
    """The program, altered; its exit status where it comes to its end."""
    _, profile, Killed.point, sequence = sys.argv
    Killed.sequence = int(sequence)
    replace(pipeline, "Session", Applying)
    sys.argv = ["cdc-consumer", profile, "--until-current"]
    return program.main()
