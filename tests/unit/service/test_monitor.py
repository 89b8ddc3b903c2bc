"""Health's verdict, and what a long run says in the log."""

import json
from collections.abc import Iterator

import pytest
from prometheus_client.core import Metric

from cdc.service.http_endpoint import Check, verdict
from cdc.service.monitor import Reporter
from tests.harness.wait import until


@pytest.mark.parametrize(
    ("checks", "healthy"),
    [
        ([], False),
        ([Check("a", True, "x")], True),
        ([Check("a", True, "x"), Check("b", False, "y")], False),
    ],
)
def test_health_is_that_every_check_is_ok(checks: list[Check], healthy: bool) -> None:
    found, body = verdict(checks)
    assert found == healthy
    assert json.loads(body) == {
        "status": "ok" if healthy else "failing",
        "checks": {check.name: {"ok": check.ok, "says": check.says} for check in checks},
    }


class Steps:
    """An activity of which each look finds ten records more."""

    def __init__(self) -> None:
        self._records = 0

    @property
    def records(self) -> int:
        self._records += 10
        return self._records

    def metrics(self) -> Iterator[Metric]:
        yield from ()

    def checks(self) -> Iterator[Check]:
        yield from ()

    def seconds_behind(self) -> float:
        return 0.26

    def line(self, *, rate: float) -> str:
        raise AssertionError("there is no terminal")

    def totals(self) -> dict[str, object]:
        return {"sequence": self._records}


def test_a_long_run_says_where_it_is_now_and_then() -> None:
    said: list[tuple[str, dict[str, object]]] = []
    reporter = Reporter(Steps(), line=None, log=lambda name, **fields: said.append((name, fields)), say_seconds=0.05)
    until(lambda: len(said) >= 3, what="three lines")
    reporter.close()
    assert {name for name, _ in said} == {"at work"}
    sequences = [fields["sequence"] for _, fields in said]
    assert sequences[:3] == [20, 30, 40]
    assert {fields["seconds_behind"] for _, fields in said} == {0.3}
    assert all(0 < int(str(fields["records_per_second"])) <= 250 for _, fields in said)
