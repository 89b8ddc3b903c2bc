"""One audit after the other: a line for each verdict, and the newest one for Prometheus."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cdc.errors import CdcError
from cdc.model.printable import visible
from cdc.service.health import Check
from cdc.service.http_endpoint import Endpoint
from cdc.service.process import stop_on_signals
from cdc.spark.job.session import SparkGone
from cdc.spark.report.outcome import Audit

__all__ = ["Verdicts", "watch", "watched"]

_LATE = 3  # intervals without an audit's end after which the watch is not well
_CANCEL_SECONDS = 1.0  # from one cancelling of jobs to the next, until the audit that was under way has returned


@dataclass(slots=True)
class Verdicts:
    """What the audits so far said. The endpoint's threads read it while the next audit runs: each field is set once."""

    interval: float
    counts: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0, 2: 0})
    newest: Audit | None = None
    failure: str = ""
    ended_at: float = field(default_factory=time.time)
    seconds: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether an audit has ended."""
        return sum(self.counts.values()) > 0

    @property
    def exit_status(self) -> int:
        """That of the newest audit; 2 where it failed, or there is none yet."""
        return 2 if self.failure or self.newest is None else self.newest.exit_status

    def take(self, audit: Audit | None, failure: str, *, seconds: float) -> None:
        """The outcome of one audit, which took so many ``seconds``: either ``audit`` or why there is none."""
        self.newest, self.failure = audit or self.newest, failure
        self.ended_at, self.seconds = time.time(), seconds
        self.counts[self.exit_status] += 1

    def line(self) -> str:
        """What to print of the newest audit."""
        when = datetime.fromtimestamp(self.ended_at, UTC).isoformat(sep=" ", timespec="seconds")[:19]
        audit = self.newest
        if self.failure or audit is None:
            return f"{when} could not judge: {self.failure}"
        what = audit.verdict + (f" at sequence {audit.sequence}" if audit.sequence is not None else "")
        if audit.reasons:
            what += f": {audit.reasons[0]}"
        counts = f"{audit.drifted_rows} rows drifted, {audit.foreign_writes} foreign writes"
        if audit.schema_drift:
            counts += f", {audit.schema_drift} definitions differ"
        return f"{when} {what} ({counts}, {self.seconds:.1f} s)"

    def checks(self) -> Iterator[Check]:
        """For ``/healthz``: the audits go on, and judge. Drift is for ``/metrics`` to tell."""
        age = time.time() - self.ended_at
        late = age > _LATE * self.interval + self.seconds
        yield Check(
            "audits", not late, f"the last one ended {age:.0f} s ago" if sum(self.counts.values()) else "none yet"
        )
        yield Check("verdict", self.exit_status != 2, self.line() if sum(self.counts.values()) else "none yet")

    def metrics(self) -> Iterator[Metric]:
        """For ``/metrics``."""
        told = CounterMetricFamily("cdc_audit_audits", "Audits that ended, by exit status.", labels=["exit_status"])
        for status, count in self.counts.items():
            told.add_metric([str(status)], count)
        yield told
        if not self.ended:
            return
        yield _gauge("exit_status", "Of the last audit: 0 no drift, 1 drift, 2 could not judge.", self.exit_status)
        yield _gauge("age_seconds", "Since the last audit ended.", time.time() - self.ended_at)
        yield _gauge("duration_seconds", "How long the last audit took.", self.seconds)
        if self.newest is not None:
            yield _ages(self.newest)
        if self.newest is not None and not self.failure:
            yield from _found(self.newest)


def _ages(audit: Audit) -> Metric:
    ages = GaugeMetricFamily(
        "cdc_audit_topic_age_seconds",
        "Since the side's producer wrote the newest entry of its commit log that an audit saw.",
        labels=["side"],
    )
    for side, topic in (("leader", audit.leader), ("follower", audit.follower)):
        if topic.newest_us is not None:
            ages.add_metric([side], max(0.0, time.time() - topic.newest_us / 1e6))
    return ages


def _found(audit: Audit) -> Iterator[Metric]:
    if audit.sequence is not None:
        yield _gauge("sequence", "The leader sequence at which both sides were compared last.", audit.sequence)
        if audit.behind_records is not None:
            yield _gauge("behind_records", "Records of the leader that the follower lacks.", audit.behind_records)
        if audit.behind_seconds is not None:
            yield _gauge("behind_seconds", "Since the commit of the oldest of them.", audit.behind_seconds)
        rows = GaugeMetricFamily("cdc_audit_drifted_rows", "Rows that drifted.", labels=["database", "table"])
        for line in audit.tables:
            rows.add_metric([line.database, line.table], line.missing + line.extra + line.different)
        yield rows
        yield _gauge("schema_drift", "Tables, views … that are not defined alike on both sides.", audit.schema_drift)
    yield _gauge("foreign_writes", "Follower transactions that did not come from the leader.", audit.foreign_writes)
    if audit.lag is not None:
        lags = GaugeMetricFamily("cdc_audit_lag_seconds", "Of all transactions.", labels=["stage", "quantile"])
        for stage, told in audit.lag.stages.items():
            for quantile in ("p50", "p95", "p99", "max"):
                lags.add_metric([stage, quantile], getattr(told.total, f"{quantile}_us") / 1e6)
        yield lags


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_audit_{name}", says, value=value)


def watched(
    audit: Callable[[], Audit], *, interval: float, listen: tuple[str, int] | None, cancel: Callable[[], None]
) -> int:
    """``watch`` until SIGTERM or SIGINT, heard at ``listen``; ``cancel`` makes an ``audit`` fail that is under way."""
    verdicts, stop, ended = Verdicts(interval), stop_on_signals(), threading.Event()
    endpoint = Endpoint.open(*listen, metrics=verdicts.metrics, checks=verdicts.checks) if listen else None

    def cancelled() -> None:
        stop.wait()
        # A job that begins after a cancel knows nothing of it.
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
        # What it cancels with must not go away under it.
        cancelling.join()
        if endpoint is not None:
            endpoint.close()


def watch(audit: Callable[[], Audit], verdicts: Verdicts, *, stop: threading.Event) -> int:
    """Run ``audit`` every ``verdicts.interval`` seconds until ``stop`` is set; the last one's exit status.

    An audit that fails is no verdict: it is told as one that could not judge, and the next one may do. But the first
    one's failure is raised, since it is most likely the user's to mend, and so is Spark's end: no audit can follow it.
    """
    while not stop.is_set():
        begun, failure, found = time.monotonic(), "", None
        try:
            found = audit()
        except Exception as error:
            if stop.is_set():
                break
            if verdicts.newest is None or isinstance(error, SparkGone):
                raise
            failure = str(error).partition("\n")[0] if isinstance(error, CdcError) else f"Spark failed: {error!r:.200}"
        verdicts.take(found, failure, seconds=time.monotonic() - begun)
        print(visible(verdicts.line()), flush=True)
        stop.wait(max(0.0, verdicts.interval - (time.monotonic() - begun)))
    return verdicts.exit_status
