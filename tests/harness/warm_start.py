"""Runs our programs without the third of a second that their imports take, as forks of a process that has imported
them.

A run is a process of its own with the program's ``main``, arguments, environment, output and exit status; only the
start of the interpreter is shared. A process that forks is ``python -m tests.harness.warm_start`` with a socket as its
standard input. A request is one message there: JSON, and the descriptors of a socket for the answers, of standard
output and of standard error. The answers are the run's process id, then its exit status, negative for a signal.

Forks of one process have the same hashes of texts, and so the same order of sets. So there are two such processes, and
a program that is started again comes from the other one: so the tests still show a dependence on that order.
"""

import atexit
import contextlib
import faulthandler
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NoReturn, Self, TextIO

from cdc.consumer.__main__ import main as consumer
from cdc.producer.__main__ import main as producer
from cdc.repair.__main__ import main as repair
from cdc.tail.__main__ import main as tail
from cdc.web.__main__ import main as web
from tests.altered import killed_consumer, killed_producer, small_chunks

__all__ = ["PROGRAMS", "WarmProcess", "run_warm", "runs_so_far"]

PROGRAMS: dict[str, Callable[[], int]] = {
    "cdc-producer": producer,
    "cdc-consumer": consumer,
    "cdc-repair": repair,
    "cdc-tail": tail,
    "cdc-web": web,
    "killed_producer": killed_producer.main,
    "killed_consumer": killed_consumer.main,
    "small_chunks": small_chunks.main,
}
_BYTES = 1 << 17
_runs: Counter[str] = Counter()


def run_warm(program: str, *arguments: str, seconds: float) -> "subprocess.CompletedProcess[str]":
    """Runs a program to its end, in this process's folder and environment. Raises TimeoutExpired after ``seconds``."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        with WarmProcess(program, *arguments, stdout=output.fileno(), stderr=errors.fileno()) as process:
            status = process.wait(seconds)
        for file in (output, errors):
            file.seek(0)
        return subprocess.CompletedProcess([program, *arguments], status, output.read(), errors.read())


class WarmProcess:
    """A run in the background, in this process's folder and environment, with what ``subprocess.Popen`` has of it.

    ``stderr`` is a descriptor, or ``subprocess.PIPE``. What still runs at the end of a ``with`` block is killed.
    """

    def __init__(self, program: str, *arguments: str, stdout: int = 1, stderr: int = 2) -> None:
        self.args = [program, *arguments]
        self.returncode: int | None = None
        self.stderr: TextIO | None = None
        self._reader: threading.Thread | None = None
        self._said: list[str] = []
        request = {"command": self.args, "folder": str(Path.cwd()), "environment": dict(os.environ)}
        self._answers, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, ExitStack() as opened:
            if stderr == subprocess.PIPE:
                read, stderr = os.pipe()
                opened.callback(os.close, stderr)
                self.stderr = os.fdopen(read)
            descriptors = [theirs.fileno(), stdout, stderr]
            socket.send_fds(_next_forker(program), [json.dumps(request).encode()], descriptors)
        self.pid = int(self._answers.recv(_BYTES))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._answers.close()
        if self.stderr is not None:
            self.stderr.close()

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        with contextlib.suppress(BlockingIOError):
            self._answered(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same once it has ended. Raises TimeoutExpired after ``timeout`` seconds."""
        try:
            self._answered(timeout)
        except TimeoutError as error:
            raise subprocess.TimeoutExpired(self.args, timeout or 0) from error
        assert self.returncode is not None
        return self.returncode

    def _answered(self, timeout: float | None) -> None:
        if self.returncode is None:
            self._answers.settimeout(timeout)
            self.returncode = int(self._answers.recv(_BYTES))
            self._answers.close()

    def communicate(self, timeout: float) -> tuple[None, str | None]:
        """Waits for the end; returns what it has written since to its standard error. Raises TimeoutExpired."""
        stream = self.stderr
        if stream is None or stream.closed:
            self.wait(timeout)
            return None, None
        if self._reader is None:
            self._reader = threading.Thread(target=lambda: self._said.append(stream.read()), daemon=True)
            self._reader.start()
        self.wait(timeout)
        self._reader.join(timeout)
        stream.close()
        return None, "".join(self._said)

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """SIGTERM, unless it has ended."""
        self.send_signal(signal.SIGTERM)


def runs_so_far() -> int:
    """How many runs this process has begun."""
    return _runs.total()


def _next_forker(program: str) -> socket.socket:
    """A process that forks, another one than for the last run of ``program``."""
    _runs[program] += 1
    return _forker(_runs[program] % 2)


@cache
def _forker(_number: int) -> socket.socket:
    """Starts a process that forks; it ends when this process has ended."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command, root = [sys.executable, "-m", "tests.harness.warm_start"], Path(__file__).parents[2]
    with theirs:
        process = subprocess.Popen(command, stdin=theirs, cwd=root, start_new_session=True)
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours


def _forked() -> Callable[[], int]:
    """Forks for each request until there are no more; only the fork that becomes the program returns, with its
    ``main``.
    """
    requests, runs = socket.socket(fileno=os.dup(0)), dict[int, socket.socket]()
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler nothing would be written to ``wake``
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            ended.recv(_BYTES)
            _answer(runs)
        if requests not in ready:
            continue
        message, descriptors, _, _ = socket.recv_fds(requests, _BYTES, 3)
        if not message:
            sys.exit()
        answers, pid = socket.socket(fileno=descriptors[0]), os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for each in (requests, ended, wake, answers, *runs.values()):
                each.close()
            return _program(json.loads(message), *descriptors[1:])
        answers.send(str(pid).encode())
        runs[pid] = answers
        for descriptor in descriptors[1:]:
            os.close(descriptor)


def _answer(runs: dict[int, socket.socket]) -> None:
    """Sends the exit status of each run that has ended."""
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with runs.pop(pid) as answers, contextlib.suppress(BrokenPipeError):  # the test has given up waiting
                answers.send(str(os.waitstatus_to_exitcode(status)).encode())


def _program(request: dict[str, object], output: int, errors: int) -> Callable[[], int]:
    """Sets this process up as the requested program."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, descriptor in enumerate((nothing, output, errors)):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(str(request["folder"]))
    os.environ.clear()
    os.environ.update(request["environment"])
    time.tzset()
    faulthandler.enable()  # SIGABRT ends a run that hangs, and writes the stacks of its threads
    sys.argv[:] = request["command"]
    return PROGRAMS[sys.argv[0]]


def _ended(main: Callable[[], int]) -> NoReturn:
    """Run the program, and end as the interpreter does, but for taking its modules apart, which takes longer than all
    that most runs do."""
    try:
        status = main()
    except SystemExit as error:
        if not isinstance(error.code, int):
            raise
        status = error.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    "localhost".encode("idna")  # a module with large tables, that each program would import at its first connection
    # What has been imported is no garbage: no fork looks through it, and none gets a copy of its pages for that.
    gc.collect()
    gc.freeze()
    _ended(_forked())
