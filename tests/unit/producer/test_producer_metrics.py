"""Metrics, the status line and the log: a table that is copied, and merged messages."""

import threading
from typing import Any

from cdc.kafka.broker_checks import Brokers
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.copy.progress_log import Copying
from cdc.producer.metrics import ProducerMetrics
from cdc.service.retry import Retry


def _metrics(copying: Copying | None) -> ProducerMetrics:
    retry = Retry(seconds=0, log=lambda *_, **__: None, stop=threading.Event())
    metrics = ProducerMetrics(retry=retry, brokers=Brokers({}), topics=(), heartbeat_seconds=1)
    source: Any = type("Source", (), {"silence": 0.0})()
    metrics.connected(source, Entry(0, Position("b.1", 4), "", ""), copying=lambda: copying)
    return metrics


def _figures(metrics: ProducerMetrics) -> dict[str, float]:
    return {
        sample.name.removeprefix("cdc_producer_") + sample.labels.get("table", ""): sample.value
        for metric in metrics.metrics()
        for sample in metric.samples
    }


def test_the_table_that_is_copied_is_shown_with_its_estimate() -> None:
    metrics = _metrics(Copying("d.t", 1000, 5000, 100.0, 2_000_000.0))
    metrics.copied(rows=1500, size=9000, tables_left=3, unrepeatable=1)
    assert metrics.line(rate=0).startswith("copied 1,000 of about 5,000 rows, 40 s left of d.t  2.0 MB/s  3 tables")
    totals = metrics.totals()
    assert (totals["copying"], totals["rows_estimated"], totals["seconds_left"]) == ("d.t", 5000, 40)
    figures = {"copied_rows_total": 1500, "copied_bytes_total": 9000, "tables_to_copy": 3, "copying_rowsd.t": 1000}
    assert (figures | {"copying_rows_estimatedd.t": 5000, "copying_seconds_leftd.t": 40}).items() <= (
        _figures(metrics).items()
    )


def test_a_follower_that_the_copy_waits_for_is_shown() -> None:
    metrics = _metrics(Copying("d.t", 1000, None, 0.0, 0.0, waits_for="f:3306"))
    assert metrics.line(rate=0).startswith("copied 1,000 rows of d.t  waiting for follower f:3306  ")
    assert metrics.totals()["waits_for"] == "f:3306"
    assert _figures(metrics)["copying_waitsd.t"] == 1


def test_what_is_not_known_is_left_out() -> None:
    metrics = _metrics(Copying("d.t", 1000, None, 0.0, 0.0))
    assert metrics.line(rate=0).startswith("copied 1,000 rows of d.t  b.1:4  ")
    assert not {"copying_rows_estimatedd.t", "copying_seconds_leftd.t"} & _figures(metrics).keys()
    assert "copying" not in _metrics(None).totals()


def test_a_narrow_terminal_shows_how_far_a_table_is() -> None:
    metrics = _metrics(Copying("shop.order_items", 12_345_678, 23_456_789, 100_000.0, 9_000_000.0, waits_for="f:3306"))
    shown = metrics.line(rate=123_456)[:79]
    assert shown == "copied 12,345,678 of about 23,456,789 rows, 111 s left of shop.order_items  wai"


def test_rows_are_counted_across_connections() -> None:
    metrics = _metrics(None)
    for _ in range(2):
        metrics.copied(rows=10, size=100, tables_left=1, unrepeatable=2)
    metrics.connected(None, Entry(0, Position("b.1", 4), "", ""), copying=lambda: None)  # type: ignore[arg-type]
    metrics.copied(rows=5, size=50, tables_left=0, unrepeatable=1)
    figures = _figures(metrics)
    assert (figures["copied_rows_total"], figures["copied_bytes_total"]) == (15, 150)
    assert figures["unrepeatable_statements_total"] == 3


def test_a_standby_shows_nothing_of_the_stream_that_it_once_wrote() -> None:
    metrics = _metrics(Copying("d.t", 1000, 5000, 100.0, 2_000_000.0))
    entry = Entry(5, Position("b.1", 90), "", "")
    metrics.committed(entry, size=9, seconds=0.1, through_us=1_000_000, transactions=1, filtered=0)
    assert {"behind_seconds", "next_sequence", "copying_rowsd.t"} <= _figures(metrics).keys()
    metrics.standby = True
    assert (
        not {"behind_seconds", "next_sequence", "leader_silence_seconds", "copying_rowsd.t"} & _figures(metrics).keys()
    )
    assert _figures(metrics)["standby"] == 1
    assert (metrics.totals(), metrics.seconds_behind()) == ({"standby": True}, None)
    (stream, _) = metrics.checks()
    assert (stream.ok, stream.says) == (True, metrics.line(rate=0))


def test_merged_messages_are_counted_over_connections() -> None:
    metrics = _metrics(None)
    metrics.merged(3)
    metrics.merged(5)
    source: Any = type("Source", (), {"silence": 0.0})()
    metrics.connected(source, Entry(0, Position("b.1", 4), "", ""), copying=lambda: None)
    metrics.merged(2)
    assert _figures(metrics)["deduplicated_total"] == 7
