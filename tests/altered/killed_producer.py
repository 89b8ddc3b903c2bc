"""cdc-producer, killed by itself at a named point: ``run("killed_producer", PROFILE, POINT, COUNT[, "eager"])``.

The points are those of its Kafka transactions, each passed many times; it dies at the COUNTth. An eager one commits
after every change, wherever in a leader transaction that is.
"""

import os
import signal
import sys
from typing import Any

import confluent_kafka

from cdc.producer import __main__ as program
from cdc.producer import stream
from cdc.producer.sink import kafka_transactions
from tests.altered.replaced import replace

POINTS = (
    "before begin", "after begin", "before a record", "after a record", "after a flush", "before commit",
    "after commit",
)  # fmt: skip


class Killed(confluent_kafka.Producer):
    """A producer that dies where ``point`` is passed for the ``left``th time."""

    point = ""
    left = 0

    def _pass(self, point: str) -> None:
        if point == self.point:
            Killed.left -= 1
            if Killed.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def begin_transaction(self) -> None:
        self._pass("before begin")
        super().begin_transaction()
        self._pass("after begin")

    def produce(self, *arguments: Any, **named: Any) -> None:
        self._pass("before a record")
        super().produce(*arguments, **named)
        self._pass("after a record")
        if self.point == "after a flush" and Killed.left <= 1:
            # What is out by now is in the broker's log, without a commit.
            self.flush()
        self._pass("after a flush")

    def commit_transaction(self, *arguments: Any) -> None:
        self._pass("before commit")
        super().commit_transaction(*arguments)
        self._pass("after commit")


def main() -> int:
    """The program, altered; its exit status where it comes to its end."""
    _, profile, Killed.point, count, *options = sys.argv
    Killed.left = int(count)
    if "eager" in options:
        options.remove("eager")
        replace(stream, "must_commit", lambda *_: True)
    replace(kafka_transactions, "Producer", Killed)
    sys.argv = ["cdc-producer", profile, "--until-current", *options]
    return program.main()


if __name__ == "__main__":
    sys.exit(main())
