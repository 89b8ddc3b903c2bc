"""A program that is killed and started again, whatever state its servers are in."""

import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.harness.wait import until

__all__ = ["Supervised"]

STOP_SECONDS = 60
# Messages of an end with status 2 that mean that a server was away at the start, or had not noticed the end of a killed
# consumer; the numbers are MySQL's for a lost connection.
AWAY = re.compile(
    r"cannot be reached|does not answer|no answer (?:within|for)|the topic cannot be read|no broker leads it"
    r"|holds the lock"
    r"|the follower(?:'s schema cdc)? cannot be used: .*\(MySQL error (?:1053|2003|2006|2013)\)"
)


class Supervised:
    """A program that is started again whenever it ends, as a service manager does.

    It may end because a server is away when it starts (2) or stays away (4); any other end is a failure.
    """

    def __init__(self, command: Sequence[str | Path], log: Path) -> None:
        self._command = command
        self._log = log
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._process: subprocess.Popen[bytes] | None = None
        self.broken = ""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the program until the block's end."""
        self._thread.start()
        try:
            until(lambda: self._process, what="the program's start")
            yield
        finally:
            self.stop()

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()

    def stop(self) -> None:
        """Ends the program. Raises an error if it does not end, and kills it then, so that the test ends
        nevertheless.
        """
        self._stop.set()
        told, give_up = None, time.monotonic() + STOP_SECONDS
        # The thread may just be starting one more process: that one gets a signal too.
        while self._thread.is_alive():
            if self._process is not told and self._process is not None:
                told = self._process
                told.send_signal(signal.SIGTERM)
            self._thread.join(0.1)
            if time.monotonic() > give_up and told is not None:
                told.kill()
                self._thread.join()
                raise AssertionError(f"it does not end within {STOP_SECONDS} s: {self._tail()}")

    def _run(self) -> None:
        with self._log.open("ab") as log:
            while not self._stop.is_set() and not self.broken:
                self._process = subprocess.Popen(self._command, stderr=log)
                if not self._may_end_so(self._process.wait()):
                    self.broken = self._tail()
                self._stop.wait(0.2)

    def _may_end_so(self, status: int) -> bool:
        if status == 2:
            return AWAY.search(self._tail().splitlines()[-1]) is not None
        return status in (4, 0, -signal.SIGKILL, -signal.SIGTERM)

    def _tail(self) -> str:
        return self._log.read_text()[-2000:]
