"""A program that is killed and started again, whatever state its servers are in."""

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.harness.wait import until
from tests.harness.warm_start import PROGRAMS, WarmProcess

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
        self._process: subprocess.Popen[bytes] | WarmProcess | None = None
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
        self._signal(signal.SIGKILL)

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
                self._signal(signal.SIGTERM)
            self._thread.join(0.1)
            if time.monotonic() > give_up and told is not None:
                self._signal(signal.SIGKILL)
                self._thread.join()
                raise AssertionError(f"it does not end within {STOP_SECONDS} s: {self._tail()}")

    def _run(self) -> None:
        with self._log.open("ab") as log:
            while not self._stop.is_set() and not self.broken:
                self._process = self._started(log.fileno())
                if not self._may_end_so(self._process.wait()):
                    self.broken = self._tail()
                self._stop.wait(0.2)

    def _started(self, errors: int) -> "subprocess.Popen[bytes] | WarmProcess":
        """Starts the program; one of ours without the time that its imports take."""
        program, *arguments = map(str, self._command)
        if (name := Path(program).name) in PROGRAMS:
            return WarmProcess(name, *arguments, stderr=errors)
        return subprocess.Popen([program, *arguments], stderr=errors)

    def _signal(self, number: int) -> None:
        """Unless it has ended: only the thread that waits for it may ask that of a process."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def _may_end_so(self, status: int) -> bool:
        if status == 2:
            return AWAY.search(self._tail().splitlines()[-1]) is not None
        return status in (4, 0, -signal.SIGKILL, -signal.SIGTERM)

    def _tail(self) -> str:
        return self._log.read_text()[-2000:]
