"""The log: what a field looks like in it. Signals: what waits ends, wherever it is."""

import json
import logging
import re
import subprocess
import sys

import pytest

from cdc.errors import PromiseError
from cdc.model.names import Uri
from cdc.model.position import Position
from cdc.model.values import UNSEEN
from cdc.service.logs import event, setup_logging
from cdc.service.process import exit_status


def test_fields_in_json_are_numbers_or_the_text_of_the_other_form(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging(level="info", form="json")
    fields = {"position": Position("binlog.000001", 4), "uri": Uri("srv", "d", "t"), "count": 7, "none": None}
    event(logging.getLogger("cdc.test"), "conflict", **fields)
    body = json.loads(capsys.readouterr().err)
    assert body | fields | {"position": "binlog.000001:4", "uri": "flv://srv/d/t"} == body
    assert body["event"] == "conflict"


def test_a_line_of_text_has_its_date_and_zone(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging(level="info", form="text")
    event(logging.getLogger("cdc.test"), "start", level=logging.INFO)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info start\n", capsys.readouterr().err)


STEERING = "a\x1b[2J\x9b\x7f\u202eb"


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_would_steer_a_terminal_is_escaped(capsys: pytest.CaptureFixture[str], form: str) -> None:
    setup_logging(level="info", form=form)
    event(logging.getLogger("cdc.test"), "conflict", key=STEERING, reason=f"of {STEERING}")
    assert exit_status(lambda: fails(PromiseError("no", code="CDC-NO", where=STEERING)), program="cdc-test") == 3
    said = capsys.readouterr().err
    assert not UNSEEN.search(said.replace("\n", ""))
    if form == "json":
        log, last = (json.loads(line) for line in said.splitlines())
        assert (log["key"], last["where"]) == (STEERING, STEERING)
        told = (last["level"], last["event"], last["program"], last["code"], last["error"], last["exit_status"])
        assert told == ("error", "ended", "cdc-test", "CDC-NO", "no", 3)
    else:
        assert said.splitlines()[-1] == "cdc-test: [CDC-NO] no; at a␛[2J\\u009b␡\\u202eb"


def fails(error: Exception) -> int:
    raise error


_DEFECT = """
from cdc.service.logs import setup_logging
setup_logging(level="info", form="json")
print(1 / 0)
"""


def test_a_defect_is_one_line_of_json() -> None:
    done = subprocess.run([sys.executable, "-c", _DEFECT], timeout=60, check=False, capture_output=True)
    assert "ZeroDivisionError" in json.loads(done.stderr)["traceback"]


# Raises SIGTERM where ``wait`` holds the event's lock: at its second line, for which Python calls the tracer.
_SIGNAL_INSIDE_WAIT = """
import logging, signal, sys, threading
from functools import partial
from cdc.service.logs import event, setup_logging
from cdc.service.process import stop_on_signals

setup_logging(level="info", form="text")
stop, lines = stop_on_signals(partial(event, logging.getLogger("cdc.test"))), []

def trace(frame, what, _):
    if frame.f_code is threading.Event.wait.__code__ and what == "line":
        lines.append(frame.f_lineno)
        if len(lines) == 2:
            signal.raise_signal(signal.SIGTERM)
    return trace

sys.settrace(trace)
sys.exit(0 if stop.wait(30) and len(lines) > 1 else 1)
"""


def test_a_signal_inside_of_a_wait_ends_it() -> None:
    command = [sys.executable, "-c", _SIGNAL_INSIDE_WAIT]
    done = subprocess.run(command, timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "ended by a signal signal=SIGTERM" in done.stderr


@pytest.mark.parametrize(
    ("work", "redirected", "status"),
    [
        ("print", "> /dev/full", 2),
        ("print", "| true", 0),
        ("has_done", "> /dev/full", 2),
        ("has_done", "| true", 0),
        ("has_drift", "> /dev/full", 1),
        ("has_drift", "| true", 1),
        ("runs_on", "> /dev/full", 2),
        ("runs_on", "| true", 2),
        ("fails", "2> /dev/full", 2),
        ("asks", ">&-", 0),
        ("asks", "2>&-", 0),
        ("fails", "2>&-", 2),
        ("asks", "<&- >&- 2>&-", 0),
    ],
)
def test_an_output_that_cannot_be_written_gives_no_traceback(work: str, redirected: str, status: int) -> None:
    code = (
        "import os, sys; from cdc.errors import UserError\n"
        "from cdc.service.process import exit_status, print_line, printed\n"
        "def fails():\n    raise UserError('no')\n"
        "def asks():\n    sys.stdout.isatty(), sys.stderr.isatty()\n"
        "    return os.open('/dev/zero', os.O_RDONLY) < 3\n"
        "def prints():\n    [print(number) for number in range(100000)]\n    return 0\n"
        "numbers = map(str, range(100000))\n"
        "def has_done():\n    return printed(numbers, program='cdc-test')\n"
        "def has_drift():\n    return printed(numbers, program='cdc-test', status=1)\n"
        "def runs_on():\n    [print_line(number) for number in numbers]\n    return 0\n"
        f"sys.exit(exit_status({work.replace('print', 'prints')}, program='cdc-test'))"
    )
    command = f'set -o pipefail; {sys.executable} -c "$0" {redirected}'
    done = subprocess.run(["bash", "-c", command, code], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (status, False), done.stderr
    assert done.stderr.count("\n") <= 1
    assert work != "runs_on" or "start again, which continues" in done.stderr
