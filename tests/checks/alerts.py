"""The metrics that alerts and dashboard ask for, and those that the programs export."""

import json
import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry, ProcessCollector

__all__ = ["DRILLS", "ROOT", "RULES", "alerts", "asked_for", "exported", "questions"]

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/cdc.rules.yml"
DRILLS = ROOT / "deploy/prometheus/cdc.rules.test.yml"
_DASHBOARD = ROOT / "deploy/grafana/cdc.json"
_MODULES = {
    "cdc_producer_": "cdc/producer/metrics.py",
    "cdc_consumer_": "cdc/consumer/metrics.py",
    "cdc_audit_": "cdc/spark/job/watch.py",
    "cdc_lake_": "cdc/lake/program.py",
    "": "cdc/service/http_endpoint.py",
}


def alerts() -> dict[str, str]:
    """The query of each alert."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule["expr"] for group in groups for rule in group["rules"]}


def questions() -> list[str]:
    """The queries of the dashboard, for all leaders."""
    panels: list[dict[str, Any]] = json.loads(_DASHBOARD.read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    return [query.replace("$leader", ".*").replace("$__rate_interval", "5m") for query in queries]


def asked_for() -> set[str]:
    """The metrics in alerts and dashboard."""
    text = "\n".join([*alerts().values(), *questions()])
    return set(re.findall(r"\b(?:cdc|process)_\w+", re.sub(r'"[^"]*"', '""', text)))


def exported() -> set[str]:
    """The names of the samples that the programs may export, by their modules of metrics."""
    found = {sample.name for metric in _process() for sample in metric.samples}
    for prefix, module in _MODULES.items():
        text = (ROOT / module).read_text(encoding="utf-8")
        found |= {f"{prefix}{name}_total" for name in re.findall(r'_count\(\s*"(\w+)"', text)}
        found |= {prefix + name for name in re.findall(r'_(?:value|of_table|gauge)\(\s*"(\w+)"', text)}
        found |= set(re.findall(r'GaugeMetricFamily\(\s*"(cdc_\w+)"', text))
        histograms = re.findall(r'\.metric\(\s*"(cdc_\w+)"', text)
        found |= {f"{name}_{end}" for name in histograms for end in ("bucket", "count", "sum")}
    return found


def _process() -> list[Any]:
    return list(ProcessCollector(registry=CollectorRegistry()).collect())
