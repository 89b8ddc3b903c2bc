"""Runs the work of a program: signals set an event that stops the work, and an error becomes one line of output and an
exit status.

``process_name`` returns a unique name for a process. The name includes the host, and is written to the commit log.
"""

import errno
import os
import queue
import re
import signal
import socket
import sys
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType

from cdc.errors import CdcError, UserError
from cdc.service.logs import print_error

__all__ = ["described", "exit_status", "print_line", "printed", "process_name", "stop_on_signals"]

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def stop_on_signals(log: Callable[..., None] | None = None) -> threading.Event:
    """Returns an event that SIGTERM and SIGINT set. A second signal ends the process at once, as users expect of
    Ctrl-C.

    Programs that run until they are stopped pass ``log``; ``log(event, **fields)`` is called for the first signal.
    """
    stop = threading.Event()
    # The handler runs in the main thread between any two instructions, perhaps inside ``stop.wait``, which holds the
    # event's lock: if the handler set the event, it would wait for that lock for ever. So the handler only calls
    # SimpleQueue.put, which is safe in a handler.
    received: queue.SimpleQueue[int] = queue.SimpleQueue()
    first = True

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not first:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        first = False
        received.put(number)

    def set_event() -> None:
        # An operator who finds that the program has ended must see in the log that nothing has failed.
        number = received.get()
        if log is not None:
            log("ended by a signal", signal=signal.Signals(number).name)
        stop.set()

    threading.Thread(target=set_event, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    return stop


def exit_status(work: Callable[[], int], *, program: str) -> int:
    """Runs ``work`` and returns its exit status. For a CdcError, prints one line to standard error and returns the
    error's exit status."""
    _open_closed_streams()
    try:
        status = work()
        sys.stdout.flush()
    except CdcError as error:
        return _said(program, error)
    except BrokenPipeError:
        # The program that reads the output (head, less) has closed it. Python would print a traceback about this at
        # exit.
        _discard(1)
        return 0
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _discard(1)
        return _said(
            program, UserError(f"the disk is full: {error}", code="CDC-DISK-FULL", hint="make room, and run it again")
        )
    return status


def printed(lines: Iterable[str], *, program: str, status: int = 0) -> int:
    """Prints the result of a program's work, and returns ``status``, the exit status of the work.

    If the output can't be written, the work is done nevertheless: one line on standard error reports the error, and a
    ``status`` of 0 is replaced by the error's status. If the reader has closed the output, nothing is reported, as in
    other programs.
    """
    try:
        for line in lines:
            print(line)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard(1)
    except OSError as error:
        _discard(1)
        what = f"all is done, but standard output can't be written: {error.strerror}"
        hint = "make room; only what was to be printed is lost"
        said = _said(program, UserError(what, code="CDC-OUTPUT-LOST", hint=hint))
        return status or said
    return status


def print_line(line: str) -> None:
    """Prints a line of output of a program that runs until it is stopped. Raises UserError if the line can't be
    written, or if the reader has closed the output.
    """
    try:
        print(line, flush=True)
    except OSError as error:
        _discard(1)
        hint = "give the output a reader, or make room where it is written, and start again, which continues"
        what = f"standard output can't be written: {error.strerror}"
        raise UserError(what, code="CDC-OUTPUT-UNWRITABLE", hint=hint) from None


def _open_closed_streams() -> None:
    """Opens /dev/null for each closed standard stream.

    Otherwise Python has None in place of the stream, and the next opened file gets the stream's descriptor, to which a
    library may then write its log.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Each open returns the lowest free descriptor, so in this order each stream gets its own number.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "w" if number else "r", encoding="utf-8"))


def _said(program: str, error: CdcError) -> int:
    """Prints the error to standard error, if that is possible; returns the error's exit status."""
    try:
        print_error(program, error)
    except OSError:
        _discard(2)
    return error.exit_status


def _discard(descriptor: int) -> None:
    """Discards the data that Python still buffers for an output that can't be written. Otherwise Python would try to
    write them at exit, fail again, and replace the exit status.
    """
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


_PARTS = re.compile(r"(?P<host>.+) (?P<pid>\d+) [0-9a-f-]{36}", re.DOTALL)


def process_name() -> str:
    """Returns a name for this process; each call returns a new, unique name."""
    return f"{socket.gethostname()} {os.getpid()} {uuid.uuid4()}"


def described(name: str) -> str:
    """Describes the host and process id in ``name``, for a message; names from older versions of cdc do not contain
    them.
    """
    parts = _PARTS.fullmatch(name)
    return f"process {parts['pid']} on host {parts['host']}" if parts else "its version does not say where it runs"
