"""What cdc-lake says where Spark ends or fails."""

import pytest
from py4j.protocol import Py4JError

from cdc.lake import program
from cdc.spark.job.session import SparkGone


def test_what_is_said_of_spark(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """That its JVM has ended is no fault of the folder's, and what failed is in the last cause."""
    raised: list[Exception] = [
        Py4JError("An error occurred while calling o1.save.\n: a.B: failed\n\tat a.C\nCaused by: a.D: disk full\n"),
        ConnectionRefusedError(111, "Connection refused"),
    ]

    def fails(_: object) -> int:
        raise raised.pop(0)

    monkeypatch.setattr(program, "_run", fails)
    assert program.run(["profile.toml", "--to", "lake"]) == 2
    assert capsys.readouterr().err == "cdc-lake: Spark failed: Py4JError: a.D: disk full\n"
    with pytest.raises(SparkGone, match="Spark's JVM has ended"):
        program.run(["profile.toml", "--to", "lake"])
