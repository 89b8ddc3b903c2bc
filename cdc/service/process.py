"""What every program does around its work: logging, orderly stop on a signal, errors as one line and a status."""

import json
import logging
import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TextIO

from cdc.errors import CdcError
from cdc.model.printable import UNSEEN, visible

__all__ = ["LIBRDKAFKA", "LastLine", "complain", "event", "exit_status", "setup_logging", "stop_on_signals"]

# librdkafka reports each failed attempt to connect; what matters of it reaches the user as an error of ours.
LIBRDKAFKA = logging.getLogger("cdc.librdkafka")
LIBRDKAFKA.setLevel(logging.CRITICAL)

_ERASE = "\r\x1b[K"  # to the line's begin, and clear to its end (ECMA-48, EL)
_COLUMNS = 80  # of a terminal that does not know


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        body = {"time": stamp, "level": record.levelname.lower(), "event": record.getMessage()}
        fields = {name: _plain(value) for name, value in getattr(record, "fields", {}).items()}
        # What JSON lets stand as it is but would steer a terminal; escaped it is the same JSON.
        return UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(body | fields, ensure_ascii=False))


def _plain(value: object) -> object:
    """Numbers as they are, all else as the text format has it: a position is ``file:offset``."""
    return value if isinstance(value, str | int | float | None) else str(value)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}"
        words = [stamp, record.levelname.lower(), record.getMessage()]
        for key, value in getattr(record, "fields", {}).items():
            text = str(value)
            words.append(f"{key}={json.dumps(text, ensure_ascii=False)}" if " " in text else f"{key}={text}")
        return visible(" ".join(words))


class LastLine(logging.StreamHandler[TextIO]):
    """Log lines on a terminal, with a last line below them that is rewritten in place."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._line = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a log line where the last line stands, and that one again below it. Called with the lock held."""
        if self._line:
            self.stream.write(_ERASE)
        super().emit(record)
        self._draw()

    def show(self, line: str) -> None:
        """Replace the last line; an empty one takes it away."""
        columns = os.get_terminal_size(self.stream.fileno()).columns or _COLUMNS
        self.acquire()
        try:
            if line or self._line:
                self.stream.write(_ERASE)
            # One column is left free: in the last one some terminals begin a new line.
            self._line = visible(line)[: columns - 1]
            self._draw()
        finally:
            self.release()

    def _draw(self) -> None:
        self.stream.write(self._line)
        self.stream.flush()


def setup_logging(*, level: str, form: str) -> LastLine | None:
    """Log to standard error, one line an event, as ``key=value`` text or as JSON lines.

    Where that is a terminal, returns what can show a last line below them.
    """
    last_line = LastLine(sys.stderr) if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    handler = last_line or logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    root = logging.getLogger("cdc")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
    if form == "json":
        sys.excepthook = _tell_defect
    return last_line


def event(logger: logging.Logger, name: str, /, *, level: int = logging.INFO, **fields: object) -> None:
    """Log one event with its fields."""
    logger.log(level, name, extra={"fields": fields})


def complain(program: str, error: CdcError | str) -> None:
    """Say why ``program`` ends, or what failed, on standard error: in one line, or as JSON where the log is JSON."""
    root = logging.getLogger("cdc")
    if not any(isinstance(handler.formatter, _JsonFormatter) for handler in root.handlers):
        print(f"{program}: {visible(str(error))}", file=sys.stderr, flush=True)
    elif isinstance(error, CdcError):
        fields = {"error": error.what, "where": error.where, "hint": error.hint, "exit_status": error.exit_status}
        event(root, "ended", level=logging.ERROR, program=program, **fields)
    else:
        event(root, "failed", level=logging.ERROR, program=program, error=error)


def _tell_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A defect of ours, for which Python alone would write many lines that are no JSON."""
    text = "".join(traceback.format_exception(kind, error, trace))
    event(logging.getLogger("cdc"), "defect", level=logging.CRITICAL, error=repr(error), traceback=text)


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set. A second signal ends the process at once, as users expect of Ctrl-C."""
    stop = threading.Event()
    # The handler runs in the main thread between any two instructions, those inside ``stop.wait`` among them, which
    # holds the event's lock: setting it there would wait for that lock for ever. A put into this queue waits for none.
    heard: queue.SimpleQueue[int] = queue.SimpleQueue()
    first = True

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not first:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        first = False
        heard.put(number)

    def pass_on() -> None:
        heard.get()
        stop.set()

    threading.Thread(target=pass_on, name="signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    return stop


def exit_status(work: Callable[[], int], *, program: str) -> int:
    """Run ``work``; turn the errors a user can meet into one line on standard error and an exit status."""
    try:
        return work()
    except CdcError as error:
        complain(program, error)
        return error.exit_status
    except BrokenPipeError:
        # The reader of our output (head, less) has seen enough; Python would print a traceback at exit.
        sys.stderr.close()
        return 0
