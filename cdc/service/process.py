"""Runs a program's work: signals set an event that stops it, errors become one line and an exit status.

``process_name`` returns the name of a process in the commit log, which is unique and contains the host of the process.
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
    """An event that SIGTERM and SIGINT set. A second signal ends the process at once, as users expect of Ctrl-C.

    ``log(event, **fields)`` is called for the first signal; programs that run until they are stopped pass it.
    """
    stop = threading.Event()
    # The handler runs in the main thread between any two instructions, also inside ``stop.wait``, which holds the
    # event's lock: setting the event there would wait for that lock for ever. SimpleQueue.put is safe in a handler.
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
        # An operator who finds the program ended must see that nothing has failed.
        number = received.get()
        if log is not None:
            log("ended by a signal", signal=signal.Signals(number).name)
        stop.set()

    threading.Thread(target=set_event, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    return stop


def exit_status(work: Callable[[], int], *, program: str) -> int:
    """Runs ``work`` and returns its exit status; a CdcError becomes one line on standard error and its exit status."""
    _open_closed_streams()
    try:
        status = work()
        sys.stdout.flush()
    except CdcError as error:
        return _said(program, error)
    except BrokenPipeError:
        # The reader of our output (head, less) has closed it; Python would print a traceback at exit.
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
    """Prints the result of a program's work, and returns ``status``, the exit status of the work: a failed output can't
    undo the work.

    If the output can't be written, one line reports the error, and a status of 0 is replaced by the error's status. If
    the reader has closed the output, nothing is reported, as in other programs.
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
    """Prints a line of a program that runs until it is stopped. Raises UserError if the line can't be written, or if
    the output has no reader.
    """
    try:
        print(line, flush=True)
    except OSError as error:
        _discard(1)
        hint = "give it a reader, or room where it is written to, and start again, which goes on"
        what = f"standard output can't be written: {error.strerror}"
        raise UserError(what, code="CDC-OUTPUT-UNWRITABLE", hint=hint) from None


def _open_closed_streams() -> None:
    """Opens /dev/null for each closed standard stream.

    Otherwise Python has None in place of the stream, and the next file that is opened gets its descriptor, to which a
    library may write its log.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # In this order each stream gets its own descriptor, which is the lowest free descriptor.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "w" if number else "r", encoding="utf-8"))


def _said(program: str, error: CdcError) -> int:
    """Prints the error, if that is possible; returns its exit status."""
    try:
        print_error(program, error)
    except OSError:
        _discard(2)
    return error.exit_status


def _discard(descriptor: int) -> None:
    """Discards the data that Python still buffers for an output that can't be written: writing them would fail again at
    exit, with another status.
    """
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


_PARTS = re.compile(r"(?P<host>.+) (?P<pid>\d+) [0-9a-f-]{36}", re.DOTALL)


def process_name() -> str:
    """A new unique name for this process at each call."""
    return f"{socket.gethostname()} {os.getpid()} {uuid.uuid4()}"


def described(name: str) -> str:
    """The host and process id in ``name``, for a message; names of older versions do not contain them."""
    parts = _PARTS.fullmatch(name)
    return f"process {parts['pid']} on host {parts['host']}" if parts else "its version does not say where it runs"
