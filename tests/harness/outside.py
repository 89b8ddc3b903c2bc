"""The outside view of a running program: its metrics and health over HTTP, its terminal."""

import json
import math
import os
import pty
import signal
import subprocess
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from tests.harness.programs import BIN
from tests.harness.wait import LIMIT_SECONDS


def get(port: int, path: str) -> tuple[int, str]:
    """The answer's status and body; (0, the reason) if there is no answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, HTTPException) as error:
        return 0, repr(error)
    finally:
        connection.close()


class Samples(dict[str, float]):
    """Samples by name; a missing one is not equal to, less or more than anything."""

    def __missing__(self, name: str) -> float:
        return math.nan


def scrape(port: int) -> Samples:
    """The samples of /metrics; empty if nothing answers."""
    status, body = get(port, "/metrics")
    families = text_string_to_metric_families(body) if status == 200 else ()
    return Samples({sample.name: sample.value for family in families for sample in family.samples})


def labels(port: int, name: str) -> list[dict[str, str]]:
    """The labels of each sample of this name."""
    families = text_string_to_metric_families(get(port, "/metrics")[1])
    return [sample.labels for family in families for sample in family.samples if sample.name == name]


def health(port: int) -> tuple[int, dict[str, Any]]:
    """The status of /healthz and its checks by name."""
    status, body = get(port, "/healthz")
    return status, json.loads(body)["checks"] if status else {}


class Terminal:
    """A terminal of ``columns`` columns that a program writes to; ``text`` is its output so far."""

    def __init__(self, columns: int) -> None:
        self._ours, self.theirs = pty.openpty()
        termios.tcsetwinsize(self.theirs, (24, columns))
        self.text = ""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        try:
            while chunk := os.read(self._ours, 4096):
                self.text += chunk.decode()
        except OSError:
            return  # EIO: the program and we have closed it
        finally:
            os.close(self._ours)

    def close(self) -> None:
        os.close(self.theirs)
        self._thread.join()

    def screen(self) -> list[str]:
        """The lines as a user sees them."""
        lines: list[str] = []
        for line in self.text.replace("\r\n", "\n").split("\n"):
            assert "\x1b" not in line.replace("\r\x1b[K", ""), line
            lines.append(line.rpartition("\r\x1b[K")[2])
        return lines


@contextmanager
def on_terminal(program: str, profile: Path, *, columns: int = 120) -> Iterator[Terminal]:
    """Runs one of our programs on a terminal; SIGTERM must end it well."""
    terminal = Terminal(columns)
    try:
        process = subprocess.Popen([BIN / program, profile], stderr=terminal.theirs, env=os.environ | {"TERM": "xterm"})
        try:
            yield terminal
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(LIMIT_SECONDS)
    finally:
        terminal.close()
    assert process.returncode == 0, terminal.text
