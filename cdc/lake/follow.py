"""Lets a lake follow its topics until a signal: repeats runs, logs a line for each run, and serves metrics of the
newest run."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from cdc.lake.outcome import Copying, Refused, Run, refused_run
from cdc.lake.pipeline import Lake
from cdc.model.values import visible
from cdc.service.http_endpoint import Check, Endpoint
from cdc.service.process import print_line
from cdc.spark.frames.messages import Source

__all__ = ["Following"]

# /healthz fails if no run has ended for this many seconds, plus the interval, plus the duration of the last run
_LATE = 60.0


class Following:
    """Runs ``lake`` repeatedly; ``source`` reads the topics up to their present ends. ``info`` has the labels of
    ``cdc_info``.

    The threads of the HTTP endpoint only read this object.
    """

    def __init__(self, source: Callable[[], Source], lake: Lake, *, interval: float, info: Mapping[str, str]) -> None:
        self._source, self._lake, self._interval, self._info = source, lake, interval, info
        self._newest: Run | None = None
        self._checked_at, self._seconds, self._waits = time.time(), 0.0, ""

    def run(self, stop: threading.Event, *, listen: tuple[str, int] | None) -> int:
        """Runs the lake until ``stop`` is set, and returns the exit status.

        Raises the errors of a run, but waits while tables are being copied into the stream. If tables are refused, the
        lake continues with the other tables; Refused is raised at the end if tables are still refused.
        """
        endpoint = (
            Endpoint.open(*listen, metrics=self._metrics, checks=self._checks, info=self._info) if listen else None
        )
        try:
            while not stop.is_set():
                begun = time.monotonic()
                self._once()
                self._checked_at = time.time()
                stop.wait(max(0.0, self._interval - (time.monotonic() - begun)))
            if self._newest is not None and self._newest.refused:
                raise refused_run(self._newest)
            return 0
        finally:
            if endpoint is not None:
                endpoint.close()

    def _once(self) -> None:
        begun, source = time.monotonic(), self._source()
        if self._newest is not None and source.newest == self._newest.sequence:
            return
        try:
            self._newest = self._lake.advance(source)
        except Copying as error:
            if str(error) != self._waits:
                print_line(visible(f"{_now()} waits: {error.what}"))
            self._waits = str(error)
            return
        except Refused as error:  # the run itself has logged the reason
            self._newest = error.run
        self._waits, self._seconds = "", time.monotonic() - begun
        print_line(visible(f"{_now()} {self._newest.line(self._seconds)}"))

    def _checks(self) -> Iterator[Check]:
        age = time.time() - self._checked_at
        if self._newest is None and not self._waits:
            # The first run reads the whole stream, which may take hours, so its duration has no limit here. If the run
            # fails, the program ends.
            yield Check("runs", True, f"the first one began {age:.0f} s ago")
            return
        if self._newest is not None:
            refused = len(self._newest.refused)
            yield Check("tables", not refused, f"{refused} are refused", of_servers=False)
        yield Check("runs", age < _LATE + self._interval + self._seconds, f"the last one ended {age:.0f} s ago")

    def _metrics(self) -> Iterator[Metric]:
        run = self._newest
        yield _gauge("waiting", "1 while a copy of tables into the stream is not complete.", bool(self._waits))
        if run is None:
            return
        yield _gauge("sequence", "The leader's sequence as of which all tables are.", run.sequence)
        yield _gauge("duration_seconds", "How long the newest run took.", self._seconds)
        yield _gauge("records", "Records that the newest run read.", run.records)
        if run.ts_us is not None:
            yield _gauge("committed_timestamp_seconds", "When the leader committed that transaction.", run.ts_us / 1e6)
        tables = GaugeMetricFamily("cdc_lake_tables", "Tables, by what the newest run did.", labels=["what"])
        for what, count in run.counts.items():
            tables.add_metric([what], count)
        tables.add_metric(["refused"], len(run.refused))
        yield tables


def _gauge(name: str, says: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_lake_{name}", says, value=value)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
