"""cdc-consumer, killed by itself at a named point: ``run("killed_consumer", PROFILE, POINT, SEQUENCE, OPTION…)``.

The points are those of a statement on its way through the ledger; it dies at that of the record SEQUENCE. At "lost "
and a point it loses its connection instead, once, and at "lost asking " and a text before the question with that text.
"before packet" and "after packet" mean the packet of that number, from 1 on, that it sends with rows or a COMMIT.
"""

import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import Any

from cdc.consumer import __main__ as program
from cdc.consumer import startup
from cdc.consumer.errors import Interrupted
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
    gtid = ""  # under which its statement runs; the server gives it one if the user may assign none
    intended = False
    reached = False

    def _pass(self, point: str) -> None:
        if point == self.point:
            os.kill(os.getpid(), signal.SIGKILL)
        if f"lost {point}" == self.point:
            Killed.point = ""
            self.close()
            raise Interrupted("lost")


class Applying(Killed):
    """The session with the rows, the ledger and the checkpoint."""

    sent = ""
    packets = 0

    def _single(self) -> Session:
        """The session of statements."""
        return Executing(self.address, stop=self._stop, parent=self)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query; one asks for the intents, of which a killed consumer may have left some for later."""
        asking = self.point.removeprefix("lost ")
        if asking.startswith("asking ") and asking.removeprefix("asking ") in sql:
            self._pass(asking)
        found = super().rows(sql)
        if sql.startswith("SELECT sequence, gtid FROM"):
            for sequence, gtid in found:
                if int(sequence) == self.sequence:
                    Killed.gtid, Killed.intended = gtid, True
                    self._pass("before the intent")
                    self._pass("after the intent")
        return found

    def send(self, packet: Sequence[bytes], *loads: Any) -> None:
        """Send a packet; the intent commits at once, the end of the statement with the next COMMIT."""
        text = b";".join(packet)
        self.sent = ""
        self.packets += 1
        if self.packets == self.sequence:
            self._pass("before packet")
        if intent := re.search(rf"VALUES \('[^']*', {self.sequence}, '([^']*)'".encode(), text):
            self.sent, Killed.gtid, Killed.intended = "the intent", intent[1].decode(), True
        elif self.reached and b"COMMIT" in packet:
            self.sent = "the commit"
        self._pass(f"before {self.sent}")
        super().send(packet, *loads)
        if self.packets == self.sequence:
            self._pass("after packet")
        self.reached = self.reached or f"AND sequence={self.sequence} AND state='intent'".encode() in text

    def receive(self) -> list[int]:
        """Receive the counts of the packet."""
        counts = super().receive()
        self._pass(f"after {self.sent}")
        return counts


class Executing(Killed):
    """The session of the statements; the one that follows the SET of gtid_next is it, or the intent without a GTID."""

    def run(self, packet: Sequence[bytes]) -> list[int]:
        """Run a packet, statement by statement."""
        if len(packet) > 1:
            return super().run(packet)
        if not self.reached and self.gtid:
            self.reached = packet[-1].endswith(f"gtid_next='{self.gtid}'".encode())
            return super().run(packet)
        if not self.reached and not self.intended:
            return super().run(packet)
        self._pass("before the statement")
        if self.point == "in the statement":
            # Sent, and nobody is there any more to hear how it ends.
            self.send(packet)
        self._pass("in the statement")
        counts = super().run(packet)
        self._pass("after the statement")
        self.reached, Killed.intended, Killed.gtid = False, False, ""
        return counts


def main() -> int:
    """The program, altered; its exit status where it comes to its end."""
    _, profile, Killed.point, sequence, *options = sys.argv
    Killed.sequence = int(sequence)
    replace(startup, "Session", Applying)
    sys.argv = ["cdc-consumer", profile, "--until-current", *options]
    return program.main()
