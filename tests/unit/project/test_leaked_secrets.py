"""A password in what a program puts out fails the test in which that happens."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc.sandbox.server.kafka import Kafka
from cdc.sandbox.server.mysql import PASSWORD, MySql
from tests.harness import leaked_secrets
from tests.harness.leaked_secrets import judged, require_no_secret, require_none_below
from tests.harness.programs import write_profile

SECRET = 'a "quoted" secret'


@pytest.fixture(autouse=True)
def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secret is that of a profile, as a test writes it."""
    monkeypatch.setattr(leaked_secrets, "_noted", {PASSWORD})
    write_profile(tmp_path, MySql(tmp_path), Kafka(tmp_path), name="p", kafka={"librdkafka": {"sasl.password": SECRET}})


@pytest.mark.parametrize("text", [f"login {PASSWORD}", f"x{SECRET}y", '{"a": "a \\"quoted\\" secret"}'])
def test_a_secret_is_found_in_output(text: str) -> None:
    with pytest.raises(AssertionError, match="a secret is in the log"):
        require_no_secret(text, where="the log")
    report = judged(SimpleNamespace(passed=True, outcome="passed", sections=[("stderr", text)], longrepr=None))
    assert report.outcome == "failed"


def test_other_output_passes(tmp_path: Path) -> None:
    require_no_secret("Access denied for user 'fluvio'", where="the log")
    report = judged(SimpleNamespace(passed=True, outcome="passed", sections=[("stderr", "fine")], longrepr=None))
    assert report.outcome == "passed"
    require_none_below(tmp_path)  # the profile itself has it


@pytest.mark.parametrize("name", ["report/report.json", "program.log", "stderr"])
def test_a_secret_is_found_in_files(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"user x, password {PASSWORD}")
    try:
        with pytest.raises(AssertionError, match="a secret is in"):
            require_none_below(tmp_path)
    finally:
        path.unlink()
