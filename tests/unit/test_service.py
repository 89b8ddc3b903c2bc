"""The log: what a field looks like in it. Signals: what waits ends, wherever it is."""

import json
import logging
import subprocess
import sys

import pytest

from cdc.position import Position
from cdc.service import event, setup_logging
from cdc.uri import Uri


def test_fields_in_json_are_numbers_or_the_text_of_the_other_form(capsys: pytest.CaptureFixture[str]) -> None:
    setup_logging(level="info", form="json")
    fields = {"position": Position("binlog.000001", 4), "uri": Uri("srv", "d", "t"), "count": 7, "none": None}
    event(logging.getLogger("cdc.test"), "conflict", **fields)
    body = json.loads(capsys.readouterr().err)
    assert body | fields | {"position": "binlog.000001:4", "uri": "flv://srv/d/t"} == body
    assert body["event"] == "conflict"


# Raises SIGTERM where ``wait`` holds the event's lock: at its second line, for which Python calls the tracer.
_SIGNAL_INSIDE_WAIT = """
import signal, sys, threading
from cdc.service import stop_on_signals

stop, lines = stop_on_signals(), []

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
    done = subprocess.run([sys.executable, "-c", _SIGNAL_INSIDE_WAIT], timeout=60, check=False)
    assert done.returncode == 0
