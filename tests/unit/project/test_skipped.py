"""A tool that tests fetch from Debian: where it can't be had they are skipped, and CI fails."""

import pytest

from cdc.sandbox.fetch.mysql_programs import NoDebian
from tests.harness.debian import fetched


def nothing() -> None:
    raise NoDebian("no apt")


def test_only_ci_fails_without_debian(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetched(lambda: 7) == 7
    monkeypatch.delenv("CDC_REQUIRE_INTEGRATION", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no apt"):
        fetched(nothing)
    monkeypatch.setenv("CDC_REQUIRE_INTEGRATION", "1")
    with pytest.raises(NoDebian):
        fetched(nothing)
