"""What sources answer: errors become texts, programs' metrics and reports of audits are read, however they look."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.core import GaugeMetricFamily

from cdc.config.profile import Metrics, Profile, ServerAddress, Web
from cdc.errors import UserError
from cdc.service.http_endpoint import Check, Endpoint
from cdc.spark.report.files import HTML, JSON
from cdc.web.rendering import render
from cdc.web.sources import (
    Answer,
    AuditSource,
    EndpointSource,
    NoAnswer,
    Polled,
    StreamSource,
    Watchers,
    address,
    figures,
)

REPORT: dict[str, Any] = {
    "verdict": "drift", "audited_at": "2026-11-27", "leader": {"resource": "a"}, "follower": {"resource": "b"},
    "sequence": 7, "tables": [{}, {}], "drifted_rows": 3, "drifted_by_cause": {"x": 3}, "schema_drift": 0,
    "foreign_writes": 1, "reasons": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NoAnswer("gone"), "gone"),
        (UserError("gone", where="there"), "gone; at there"),
        (ValueError("x"), "ValueError: x"),
    ],
)
def test_an_error_keeps_the_newest_value(error: Exception, text: str) -> None:
    answers = iter([1, error, 2])

    def ask() -> int:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    polled = Polled("source", ask, seconds=1)
    assert polled.answer == Answer()
    polled.look()
    at = polled.answer.at
    assert polled.answer == Answer(1, at) and at > 0
    polled.look()
    assert polled.answer == Answer(1, at, text)
    polled.look()
    assert (polled.answer.value, polled.answer.error) == (2, "")


def test_who_watches_shortens_the_pause() -> None:
    watchers, stop = Watchers(), threading.Event()
    with watchers:
        watchers.pause(0.0, stop=stop)  # does not wait for the longer pause of an unwatched page
    stop.set()
    watchers.pause(1e9, stop=stop)


def test_metrics_of_a_program() -> None:
    lines = ["a 1.5", "# TYPE b counter", "b_total 2", 'c{table="x.y"} 3', 'd{z="1"} 4']
    assert figures("\n".join([*lines, ""])) == ({"a": 1.5, "b_total": 2.0, "c": 3.0}, "x.y")


def test_a_program_answers() -> None:
    metric = GaugeMetricFamily("cdc_consumer_waiting", "", value=1)
    checks = [Check("stream", True, "fine"), Check("kafka", False, "away")]
    endpoint = Endpoint.open("127.0.0.1", 0, metrics=lambda: [metric], checks=lambda: checks, info={})
    try:
        answer = EndpointSource(ServerAddress("127.0.0.1", endpoint.port))()
    finally:
        endpoint.close()
    assert answer.failing == {"kafka": "away"} and answer.figures["cdc_consumer_waiting"] == 1
    with pytest.raises(NoAnswer, match=f"http://127.0.0.1:{endpoint.port}/metrics"):
        EndpointSource(ServerAddress("127.0.0.1", endpoint.port))()


@pytest.mark.parametrize(
    ("metrics", "web", "expected"),
    [
        (Metrics(), Web(), None),
        (Metrics(port=5), Web(), ServerAddress("127.0.0.1", 5)),
        (Metrics("0.0.0.0", 5), Web(), ServerAddress("127.0.0.1", 5)),
        (Metrics("::", 5), Web(), ServerAddress("::1", 5)),
        (Metrics("10.0.0.1", 5), Web(), ServerAddress("10.0.0.1", 5)),
        (Metrics(), Web(metrics="producer:9464"), ServerAddress("producer", 9464)),
    ],
)
def test_where_a_program_listens(metrics: Metrics, web: Web, expected: ServerAddress | None) -> None:
    assert address(Profile(metrics=metrics, web=web)) == expected


def test_a_report_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    source, path = AuditSource(tmp_path), tmp_path / JSON
    with pytest.raises(NoAnswer, match="no audit has written its report yet"):
        source()
    path.write_text(json.dumps(REPORT))
    (tmp_path / HTML).touch()
    first = source()
    assert (first.verdict, first.tables, first.drifted_rows, first.page) == ("drift", 2, 3, True)
    assert source() is first
    path.write_text(json.dumps(REPORT | {"verdict": "no drift", "drifted_rows": 0}))
    assert source().verdict == "no drift"


def test_what_an_audit_did_not_compare_is_shown_beside_its_verdict(tmp_path: Path) -> None:
    def shown(**report: Any) -> str:
        (tmp_path / JSON).write_text(json.dumps(REPORT | {"verdict": "no drift", "drifted_rows": 0} | report))
        return render("audit.html", answer=Answer(AuditSource(tmp_path)()))

    assert "not compared" not in shown()
    page = shown(tables=[{"not_compared": 277}, {"not_compared": 1}], under_copy=["a.b"])
    assert 'Rows not compared</dt><dd class="notable">278<' in page
    assert 'Tables not compared, being copied</dt><dd class="notable">1<' in page


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"verdict": 1}', json.dumps(REPORT | {"tables": 5})])
def test_a_report_that_cannot_be_read(text: str, tmp_path: Path) -> None:
    (tmp_path / JSON).write_text(text)
    with pytest.raises(NoAnswer, match="can't be read as an audit's report"):
        AuditSource(tmp_path)()


def test_brokers_that_are_away() -> None:
    profile = Profile.parse(
        '[kafka]\nbootstrap_servers = "127.0.0.1:9"\n[kafka.librdkafka]\n"socket.timeout.ms" = 10', name="p"
    )
    with pytest.raises(NoAnswer, match=r"Kafka at 127\.0\.0\.1:9: no answer"):
        StreamSource(profile)()
