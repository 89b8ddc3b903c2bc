"""Starts a program under a guard process, finds a running program through its lock file, stops or kills it; finds free
ports.
"""

import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdc.errors import ServerGone, UserError

__all__ = ["Process", "free_port", "is_free", "wait_until"]

# Checks whether a TCP port on this machine is free, and finds free ports.

# The range is below the kernel's ephemeral ports (32768 and up). So no outgoing connection can occupy the port of a
# server between a kill and the next start.
_RANGE = range(20000, 32000)


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Servers also set this option, so that a connection in TIME_WAIT does not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(*, other_than: int = 0) -> int:
    """Finds a free port.

    While this process is running, no other call returns the same port. So a killed server finds its port free when it
    is started again. But another program may bind the port first; the caller must then try another port.
    """
    for _ in range(1000):
        port = random.choice(_RANGE)
        if port != other_than and is_free(port) and _reserve(port):
            return port
    raise UserError(f"no free port between {_RANGE.start} and {_RANGE.stop}", code="CDC-SANDBOX-PORT")


def _reserve(port: int) -> bool:
    """Reserves ``port`` until this process ends; returns whether that succeeded.

    To reserve a port, this process binds the UDP port with the same number, because the servers do not use UDP.
    ``free_port`` returns a port only if it can bind its UDP port.
    """
    mark = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        mark.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    mark.detach()  # keeps the socket open, although the object is deleted
    return True


_GUARD = Path(__file__).with_name("guard.py")


def wait_until(condition: Callable[[], bool], *, seconds: float, every: float = 0.05) -> bool:
    """Checks ``condition`` every ``every`` seconds until it is true; returns whether it became true within
    ``seconds``."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


class Process:
    """A program, identified by its pid file ``<folder>/<name>.pid``, with its output in ``<folder>/<name>.log``.

    The program holds a lock on its pid file until it ends, for whatever reason. So any process can check the lock to
    see whether the program is running, and never kills a later program with the same pid.
    """

    def __init__(self, name: str, *, folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._pid_file = folder / f"{name}.pid"
        self._guard: subprocess.Popen[bytes] | None = None
        self._log_start = 0  # the offset in the log file at which the output of the last start begins

    def start(
        self, command: Sequence[str | Path], *, outlive: bool = False, environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts ``command``. Unless ``outlive`` is true, the program ends when this process ends. Raises UserError if
        the program is already running.
        """
        self._forget_guard()
        # The program inherits the lock. After this block only the program holds it.
        with self._locked() as lock, self.log.open("ab") as log:
            mode = "free" if outlive else "bound"
            self._log_start = log.tell()
            guard = subprocess.Popen(
                [sys.executable, "-S", "-E", _GUARD, mode, str(lock), str(log.fileno()), *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                pass_fds=(lock, log.fileno()),
                env=environment,
                start_new_session=True,
            )
            assert guard.stdout is not None
            with guard.stdout as output:
                pid = output.readline()
            os.pwrite(lock, pid, 0)
        self._guard = guard
        if outlive:
            self._forget_guard()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._pid_file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._pid_file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise UserError(
                f"{self.name} runs already",
                code="CDC-SANDBOX-EXISTS",
                where=str(self._pid_file.parent),
                hint="stop it, or use another --dir",
            ) from None
        try:
            os.ftruncate(descriptor, 0)
            yield descriptor
        finally:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        """The program's process id. Raises ServerGone if the program is not running."""
        if not self.running():
            raise ServerGone(f"{self.name} does not run", code="CDC-SANDBOX-SERVER", where=str(self.log))
        return int(self._pid_file.read_text())

    def running(self) -> bool:
        """Whether the program is running, even if another process started it."""
        try:
            descriptor = os.open(self._pid_file, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def comes_up(self, answers: Callable[[], bool], *, seconds: float) -> bool:
        """Waits until ``answers()`` is true; returns whether it became true within ``seconds``. If it did not, or if
        the program has ended, kills the program.
        """
        ended = False

        def decided() -> bool:
            nonlocal ended
            ended = not self.running()
            return ended or answers()

        if wait_until(decided, seconds=seconds) and not ended:
            return True
        self.kill()
        return False

    def wait(self, *, seconds: float) -> int:
        """Waits until the program ends; returns its exit status. Raises ServerGone after ``seconds``, or if another
        process started the program.
        """
        if self._guard is None:
            raise ServerGone(f"{self.name} was not started here", code="CDC-SANDBOX-SERVER", where=str(self.log))
        try:
            return self._guard.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise ServerGone(
                f"{self.name} did not end within {seconds:.0f} s", code="CDC-SANDBOX-SERVER", where=str(self.log)
            ) from None
        finally:
            self.kill()

    def stop(self, *, seconds: float = 60) -> bool:
        """Sends SIGTERM to the program, and SIGKILL after ``seconds``. Returns whether the program ended without
        SIGKILL.
        """
        self._signal(os.kill, signal.SIGTERM)
        ended = wait_until(lambda: not self.running(), seconds=seconds)
        self.kill()
        return ended

    def kill(self) -> None:
        """Sends SIGKILL to the program and its children, if the program is running, and waits until the program has
        ended.
        """
        self._signal(os.killpg, signal.SIGKILL)
        if not wait_until(lambda: not self.running(), seconds=30):
            raise ServerGone(f"{self.name} does not die", code="CDC-SANDBOX-SERVER", where=str(self._pid_file))
        self._forget_guard()

    def _signal(self, send: Callable[[int, int], None], number: int) -> None:
        if not self.running():
            return
        try:
            send(self.pid, number)
        except (ProcessLookupError, ServerGone):
            return  # the program ended after running() was called

    def _forget_guard(self) -> None:
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            self._guard.wait()
            self._guard = None

    def said(self) -> str:
        """Returns the output of the program since this process last started it."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace").strip()
