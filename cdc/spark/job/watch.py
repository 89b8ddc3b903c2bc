"""Repeats the audit at an interval, prints a line for each verdict, and serves the newest verdict as metrics."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cdc.errors import CdcError
from cdc.model.values import visible
from cdc.service.http_endpoint import Check, Endpoint
from cdc.service.process import print_line, stop_on_signals
from cdc.spark.job.session import SparkGone
from cdc.spark.report.outcome import Audit

__all__ = ["Verdicts", "watch", "watched"]

_LATE = 3  # after this number of intervals without a finished audit, /healthz reports a failure
_CANCEL_SECONDS = 1.0  # the jobs of an audit are cancelled again at this interval until it has returned


@dataclass(slots=True)
class Verdicts:
    """The outcomes of the audits so far.

    The endpoint's threads read this object without a lock while an audit runs, so each change assigns whole fields.
    """

    interval: float
    counts: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0, 2: 0})
    newest: Audit | None = None
    failure: str = ""
    ended_at: float = field(default_factory=time.time)
    seconds: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether any audit has ended."""
        return sum(self.counts.values()) > 0

    @property
    def exit_status(self) -> int:
        """The exit status of the newest audit; 2 if the newest audit failed, or if no audit has ended yet."""
        return 2 if self.failure or self.newest is None else self.newest.exit_status

    def add(self, audit: Audit | None, failure: str, *, seconds: float) -> None:
        """Adds the outcome of an audit that took ``seconds``: ``audit``, or None and the reason of its ``failure``."""
        self.newest, self.failure = audit or self.newest, failure
        self.ended_at, self.seconds = time.time(), seconds
        self.counts[self.exit_status] += 1

    def line(self) -> str:
        """Formats one line about the newest audit."""
        when = datetime.fromtimestamp(self.ended_at, UTC).isoformat(sep=" ", timespec="seconds")[:19]
        audit = self.newest
        if self.failure or audit is None:
            return f"{when} could not judge: {self.failure}"
        what = audit.verdict + (f" at sequence {audit.sequence}" if audit.sequence is not None else "")
        if audit.why:
            what += f": {audit.reasons[0] if audit.reasons else '; '.join(audit.why)}"
        counts = f"{audit.drifted_rows} rows drifted, {audit.foreign_writes} foreign writes"
        if audit.accepted_rows or audit.accepted_objects:
            counts += f", {audit.accepted_rows} rows and {audit.accepted_objects} definitions accepted"
        if audit.schema_drift:
            counts += f", {audit.schema_drift} definitions differ"
        return f"{when} {what} ({counts}, {self.seconds:.1f} s)"

    def checks(self) -> Iterator[Check]:
        """Yields the checks of ``/healthz``: whether audits end in time, and whether the newest audit reached a
        verdict.

        Neither drift nor a table that is being copied makes a check fail.
        """
        age = time.time() - self.ended_at
        late = age > _LATE * self.interval + self.seconds
        yield Check("audits", not late, f"the last one ended {age:.0f} s ago" if self.ended else "none yet")
        waits = self.newest is not None and not self.failure and not self.newest.reasons
        judged = waits or self.exit_status != 2
        yield Check("verdict", judged, self.line() if self.ended else "none yet", of_servers=False)

    def metrics(self) -> Iterator[Metric]:
        """Yields the metrics for ``/metrics``."""
        audits = CounterMetricFamily("cdc_audit_audits", "Audits that ended, by exit status.", labels=["exit_status"])
        for status, count in self.counts.items():
            audits.add_metric([str(status)], count)
        yield audits
        if not self.ended:
            return
        yield _gauge(
            "exit_status", "Exit status of the last audit: 0 no drift, 1 drift, 2 could not judge.", self.exit_status
        )
        yield _gauge("age_seconds", "Seconds since the last audit ended.", time.time() - self.ended_at)
        yield _gauge("duration_seconds", "How long the last audit took.", self.seconds)
        if self.newest is not None:
            yield _ages(self.newest)
        if self.newest is not None and not self.failure:
            yield from _found(self.newest)


def _ages(audit: Audit) -> Metric:
    """Builds the metric for the ages of both commit logs."""
    ages = GaugeMetricFamily(
        "cdc_audit_topic_age_seconds",
        "Seconds since the newest entry of the side's commit log that an audit read was written.",
        labels=["side"],
    )
    for side, topic in (("leader", audit.leader), ("follower", audit.follower)):
        if topic.newest_us is not None:
            ages.add_metric([side], max(0.0, time.time() - topic.newest_us / 1e6))
    return ages


def _found(audit: Audit) -> Iterator[Metric]:
    """Builds the metrics of an audit that did not fail."""
    if audit.sequence is not None:
        yield _gauge("sequence", "The leader's sequence at which both sides were compared last.", audit.sequence)
        if audit.behind_records is not None:
            yield _gauge(
                "behind_records", "Records of the leader that the follower has not applied.", audit.behind_records
            )
        if audit.behind_seconds is not None:
            yield _gauge(
                "behind_seconds", "Seconds since the leader committed the oldest of them.", audit.behind_seconds
            )
        rows = GaugeMetricFamily("cdc_audit_drifted_rows", "Rows that drifted.", labels=["database", "table"])
        for line in audit.tables:
            rows.add_metric([line.database, line.table], line.missing + line.extra + line.different)
        yield rows
        yield _gauge("accepted_rows", "Rows that differ and that --accept accepts.", audit.accepted_rows)
        yield _gauge("tables_being_copied", "Tables that are not compared until their copy is complete.",
                     len(audit.under_copy))  # fmt: skip
        yield _gauge(
            "schema_drift", "Tables, views and other objects that the sides define differently.", audit.schema_drift
        )
    yield _gauge("foreign_writes", "Follower transactions that did not come from the leader.", audit.foreign_writes)
    if audit.lag is not None:
        lags = GaugeMetricFamily(
            "cdc_audit_lag_seconds", "Seconds that transactions took.", labels=["stage", "quantile"]
        )
        for name, stage in audit.lag.stages.items():
            for quantile in ("p50", "p95", "p99", "max"):
                lags.add_metric([name, quantile], getattr(stage.total, f"{quantile}_us") / 1e6)
        yield lags


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_audit_{name}", says, value=value)


def watched(
    audit: Callable[[], Audit],
    *,
    interval: float,
    listen: tuple[str, int] | None,
    info: Mapping[str, str],
    cancel: Callable[[], None],
) -> int:
    """Runs ``watch`` until SIGTERM or SIGINT, and returns its exit status.

    ``listen`` is the host and port of /metrics and /healthz, ``info`` are the labels of ``cdc_info``; ``cancel`` makes
    a running ``audit`` fail.
    """
    verdicts, stop, ended = Verdicts(interval), stop_on_signals(), threading.Event()
    endpoint = Endpoint.open(*listen, metrics=verdicts.metrics, checks=verdicts.checks, info=info) if listen else None

    def cancelled() -> None:
        stop.wait()
        # Cancelling is repeated, since it does not affect jobs that the audit starts afterwards.
        while not ended.is_set():
            cancel()
            ended.wait(_CANCEL_SECONDS)

    cancelling = threading.Thread(target=cancelled, name="stop", daemon=True)
    cancelling.start()
    try:
        return watch(audit, verdicts, stop=stop)
    finally:
        ended.set()
        stop.set()
        # The thread uses the Spark session, which the caller stops next.
        cancelling.join()
        if endpoint is not None:
            endpoint.close()


def watch(audit: Callable[[], Audit], verdicts: Verdicts, *, stop: threading.Event) -> int:
    """Runs ``audit`` every ``verdicts.interval`` seconds until ``stop`` is set; returns the exit status of the last
    audit.

    An audit that fails counts as "could not judge", and the next audit is run. Two failures are raised instead: the
    failure of the first audit, since the user most likely has to fix its cause, and SparkGone, since no audit can
    follow it.
    """
    while not stop.is_set():
        started, failure, found = time.monotonic(), "", None
        try:
            found = audit()
        except Exception as error:
            if stop.is_set():
                break
            if verdicts.newest is None or isinstance(error, SparkGone):
                raise
            failure = str(error).partition("\n")[0] if isinstance(error, CdcError) else f"Spark failed: {error!r:.200}"
        verdicts.add(found, failure, seconds=time.monotonic() - started)
        print_line(visible(verdicts.line()))
        stop.wait(max(0.0, verdicts.interval - (time.monotonic() - started)))
    return verdicts.exit_status
