"""Alerts and dashboard ask for what the programs export, and each alert has its drills."""

from collections import defaultdict

import yaml

from tests.checks.alerts import DRILLS, alerts, asked_for, exported


def test_every_metric_that_is_asked_for_is_exported() -> None:
    assert asked_for() - exported() == set()
    assert {"cdc_info", "cdc_consumer_delay_seconds_bucket", "cdc_audit_exit_status"} <= asked_for()


def test_every_alert_has_a_drill_in_which_it_fires_and_one_in_which_it_does_not() -> None:
    fires: defaultdict[str, set[bool]] = defaultdict(set)
    for drill in yaml.safe_load(DRILLS.read_text(encoding="utf-8"))["tests"]:
        for expected in drill["alert_rule_test"]:
            fires[expected["alertname"]].add(bool(expected["exp_alerts"]))
    assert dict(fires) == {name: {True, False} for name in alerts()}
