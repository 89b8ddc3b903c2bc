"""Systemd's socket receives when a program has started, what it does, and that it ends."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.core import Metric

from cdc.service.http_endpoint import Check
from cdc.service.monitor import Reporter, Systemd
from tests.harness.wait import LIMIT_SECONDS


class Connecting:
    """An activity whose servers answer after a while: from its third look on."""

    records = 0

    def __init__(self) -> None:
        self._looks = 0

    def metrics(self) -> Iterator[Metric]:
        yield from ()

    def checks(self) -> Iterator[Check]:
        yield from ()

    def seconds_behind(self) -> None:
        return None

    def line(self, *, rate: float) -> str:
        return "connecting" if self._looks < 3 else "sequence 7"

    def totals(self) -> dict[str, object]:
        self._looks += 1
        return {} if self._looks < 3 else {"sequence": 7}


@pytest.fixture(params=["a file", "an abstract name"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    """The address of a socket as systemd opens it, and what it receives next."""
    name = str(tmp_path / "notify") if request.param == "a file" else f"\0cdc{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(name)
        notify.settimeout(LIMIT_SECONDS)
        yield name.replace("\0", "@"), lambda: notify.recv(4096).decode()


def test_a_start_is_over_once_the_servers_have_answered(
    listening: tuple[str, Callable[[], str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, received = listening
    monkeypatch.setattr("cdc.service.monitor._REPORT_SECONDS", 0.01)
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    systemd = Systemd.from_environment()
    assert systemd is not None
    assert Systemd.from_environment() is None, "a child would report in its parent's place"
    reporter = Reporter(Connecting(), line=None, log=lambda *_, **__: None, systemd=systemd)
    assert received() == "STATUS=connecting"
    assert received() == "READY=1\nSTATUS=sequence 7"
    reporter.close()
    assert received() == "STOPPING=1"


def test_a_run_that_is_over_at_once_has_started(listening: tuple[str, Callable[[], str]]) -> None:
    address, received = listening
    activity = Connecting()
    activity.totals(), activity.totals()
    Reporter(activity, line=None, log=lambda *_, **__: None, systemd=Systemd(address)).close()
    assert [received(), received()] == ["READY=1\nSTATUS=sequence 7", "STOPPING=1"]


def test_a_socket_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    systemd = Systemd(str(tmp_path / "gone"))
    systemd.report(ready=True, status="connecting")
    systemd.stopping()


def test_a_report_that_was_not_delivered_is_made_again(tmp_path: Path) -> None:
    path = str(tmp_path / "notify")
    systemd = Systemd(path)
    systemd.report(ready=True, status="at work")  # systemd is busy, and does not listen
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(path)
        notify.settimeout(LIMIT_SECONDS)
        systemd.report(ready=True, status="at work")
        assert notify.recv(4096).decode() == "READY=1\nSTATUS=at work"


def test_a_name_in_the_status_is_no_report_of_its_own(listening: tuple[str, Callable[[], str]]) -> None:
    address, received = listening
    Systemd(address).report(ready=False, status="copying a\nREADY=1\ud800")
    assert received() == "STATUS=copying a␊READY=1\\ud800"
