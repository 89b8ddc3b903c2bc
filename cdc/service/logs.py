"""Writes the events of a program, and the error with which it ends, to standard error, as ``key=value`` text or as JSON
lines."""

import json
import logging
import os
import sys
import time
import traceback
from types import TracebackType
from typing import TextIO

from cdc.errors import CdcError
from cdc.model.values import UNSEEN, visible

__all__ = ["LIBRDKAFKA", "LastLine", "event", "print_error", "setup_logging"]

# librdkafka logs each failed attempt to connect, and fatal errors. That log is turned off, since cdc itself reports the
# errors that matter.
LIBRDKAFKA = logging.getLogger("cdc.librdkafka")
LIBRDKAFKA.setLevel(logging.CRITICAL + 1)

_ERASE = "\r\x1b[K"  # moves to the start of the line and clears it to its end (ECMA-48, EL)
_COLUMNS = 80  # the width of a terminal that does not report its width


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        body = {"time": stamp, "level": record.levelname.lower(), "event": record.getMessage()}
        fields = {name: _plain(value) for name, value in getattr(record, "fields", {}).items()}
        # In JSON, some characters that control a terminal need no escaping. Here they are escaped, too; this does not
        # change the meaning of the JSON.
        return UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(body | fields, ensure_ascii=False))


def _plain(value: object) -> object:
    """Returns strings, numbers and None unchanged, and other values as the text that the text format contains: a
    position becomes ``file:offset``.
    """
    return value if isinstance(value, str | int | float | None) else str(value)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        words = [stamp, record.levelname.lower(), record.getMessage()]
        for key, value in getattr(record, "fields", {}).items():
            text = str(value)
            words.append(f"{key}={json.dumps(text, ensure_ascii=False)}" if " " in text else f"{key}={text}")
        return visible(" ".join(words))


class LastLine(logging.StreamHandler[TextIO]):
    """Writes log lines to a terminal, and below them a progress line that is rewritten in place."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._line = ""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a log line in place of the progress line, and the progress line again below it. Called with the
        handler's lock held."""
        if self._line:
            self.stream.write(_ERASE)
        super().emit(record)
        self._draw()

    def show(self, line: str) -> None:
        """Replaces the progress line; an empty ``line`` removes it."""
        columns = os.get_terminal_size(self.stream.fileno()).columns or _COLUMNS
        self.acquire()
        try:
            if line or self._line:
                self.stream.write(_ERASE)
            # One column is left free, since some terminals start a new line after the last column.
            self._line = visible(line)[: columns - 1]
            self._draw()
        finally:
            self.release()

    def _draw(self) -> None:
        self.stream.write(self._line)
        self.stream.flush()


def setup_logging(*, level: str, form: str) -> LastLine | None:
    """Sets up logging to standard error, one line per event, as ``key=value`` text or as JSON lines.

    If standard error is a terminal, returns the handler that can show a progress line below the log.
    """
    last_line = LastLine(sys.stderr) if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None
    handler = last_line or logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if form == "json" else _TextFormatter())
    root = logging.getLogger("cdc")
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    root.propagate = False
    if form == "json":
        sys.excepthook = _log_defect
    return last_line


def event(logger: logging.Logger, name: str, /, *, level: int = logging.INFO, **fields: object) -> None:
    """Logs the event ``name`` with its fields."""
    logger.log(level, name, extra={"fields": fields})


def print_error(program: str, error: CdcError | str) -> None:
    """Writes the error with which ``program`` ends, or an error after which it continues, to standard error, as one
    line in the format of the log."""
    root = logging.getLogger("cdc")
    if not any(isinstance(handler.formatter, _JsonFormatter) for handler in root.handlers):
        code = f"[{error.code}] " if isinstance(error, CdcError) and error.code else ""
        print(f"{program}: {code}{visible(str(error))}", file=sys.stderr, flush=True)
    elif isinstance(error, CdcError):
        fields = {
            "code": error.code, "error": error.what, "where": error.where, "hint": error.hint,
            "exit_status": error.exit_status,
        }  # fmt: skip
        event(root, "ended", level=logging.ERROR, program=program, **fields)
    else:
        event(root, "failed", level=logging.ERROR, program=program, error=error)


def _log_defect(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Logs an unexpected error (a defect of cdc) as one JSON line, which contains Python's traceback."""
    text = "".join(traceback.format_exception(kind, error, trace))
    event(logging.getLogger("cdc"), "defect", level=logging.CRITICAL, error=repr(error), traceback=text)
