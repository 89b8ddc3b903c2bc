"""The exit status of cdc-audit after an unexpected error."""

import signal
from collections.abc import Iterator

import pytest

from cdc.spark import __main__


@pytest.fixture(autouse=True)
def _handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_any_failure_is_no_verdict(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Python's own exit status for it, 1, would mean drift."""

    def fails(options: object) -> int:
        raise ImportError("PySpark is of another version\nthan that")

    monkeypatch.setattr(__main__, "_run", fails)
    assert __main__.main() == 2
    assert capsys.readouterr().err == "cdc-audit: Spark failed: ImportError: PySpark is of another version\n"
