"""Prometheus's own tool reads the alerts, drills each of them, and reads the dashboard's queries."""

import json
import subprocess
from functools import cache
from pathlib import Path

import pytest

from cdc.sandbox.fetch.mysql_programs import Packages, unpacked
from tests.checks.alerts import DRILLS, ROOT, RULES, alerts, questions
from tests.harness.debian import fetched

pytestmark = pytest.mark.integration

_PACKAGES = Packages(label="Prometheus", suite="bookworm", names=("prometheus",), hint="these tests need Debian's apt")


@cache
def _tool() -> Path:
    return fetched(lambda: unpacked("prometheus", _PACKAGES)) / "usr/bin/promtool"


def promtool(*arguments: str | Path) -> tuple[int, str]:
    done = subprocess.run([_tool(), *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_alert_fires_in_its_drill_and_not_beside_it() -> None:
    assert promtool("test", "rules", DRILLS)[0] == 0, promtool("test", "rules", DRILLS)[1]


def test_a_drill_fails_without_its_alert(tmp_path: Path) -> None:
    rules = RULES.read_text(encoding="utf-8")
    for name in ("cdc.rules.yml", "cdc.rules.test.yml"):
        (tmp_path / name).write_text((RULES.parent / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "cdc.rules.yml").write_text(rules.replace("_seconds > 60", "_seconds > 62"), encoding="utf-8")
    status, said = promtool("test", "rules", tmp_path / "cdc.rules.test.yml")
    assert status != 0
    assert "alertname: CdcProducerBehind" in said
    assert "alertname: CdcDown" not in said


def test_configuration_and_queries_can_be_read(tmp_path: Path) -> None:
    assert promtool("check", "config", ROOT / "deploy/prometheus/prometheus.yml")[0] == 0
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(questions())]
    (tmp_path / "queries.yml").write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    status, said = promtool("check", "rules", tmp_path / "queries.yml")
    assert (status, f"{len(rules)} rules found" in said) == (0, True), said
    assert len(alerts()) >= 20
