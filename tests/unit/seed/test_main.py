"""What cdc-seed says of a Spark that fails."""

import sys

import pytest
from py4j.protocol import Py4JError

from cdc.seed import __main__ as program

TRACE = (
    "An error occurred while calling o1.collect.\n: a.B: a job failed\n\tat c.d(e.java:1)\nCaused by: f.G: disk full\n"
)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Py4JError(TRACE), "Py4JError: f.G: disk full"),
        (ConnectionResetError("by peer"), "ConnectionResetError: by peer"),
    ],
)
def test_spark_that_fails(
    error: Exception, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(arguments: object) -> int:
        raise error

    monkeypatch.setattr(program, "_run", fails)
    monkeypatch.setattr(sys, "argv", ["cdc-seed", "--leader", "a.toml", "--follower", "b.toml"])
    assert program.main() == 2
    assert capsys.readouterr().err == f"cdc-seed: Spark failed: {says}\n"
