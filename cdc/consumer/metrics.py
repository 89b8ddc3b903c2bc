"""Shows the consumer's counters as Prometheus metrics, as health checks, as a line on a terminal, and as totals in the
log."""

import time
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cdc.config.profile import Database
from cdc.consumer.counters import Counters
from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower.session import ask
from cdc.errors import CdcError
from cdc.kafka.broker_checks import Brokers
from cdc.service.http_endpoint import Check
from cdc.service.retry import Retry

__all__ = ["Activity"]

_STANDBY = "standby: another consumer applies to this follower"
_ANSWER_SECONDS = 2.0
_SIGNS = 3  # after this number of intervals without an entry in its commit log, the producer counts as failed


class Activity:
    """The progress figures of a running consumer. ``retry`` knows whether the follower is unreachable. ``brokers`` and
    ``follower`` are queried at each HTTP request.

    ``commits`` is the topic with the producer's commit log, whose newest entry contains the sequence of the next
    record. The producer writes an entry at least every ``alive_seconds``.
    """

    def __init__(
        self,
        counters: Counters,
        *,
        retry: Retry,
        brokers: Brokers,
        commits: str,
        follower: Database,
        alive_seconds: int = 60,
    ) -> None:
        self._counters = counters
        self._alive_seconds = alive_seconds
        self._retry = retry
        self._brokers = brokers
        self._commit_log = commits
        self._follower = follower

    @property
    def records(self) -> int:
        """The number of applied records."""
        return self._counters.records

    def seconds_behind(self) -> float | None:
        """Returns an upper bound of the delay in seconds; see ``Behind``."""
        return self._counters.seconds_behind()

    def metrics(self) -> Iterator[Metric]:
        """Yields the metrics for Prometheus. Metrics whose values are unknown are left out."""
        counters = self._counters
        yield _count("records", "Records applied to the follower, or left out there by a filter.", counters.records)
        yield _count("rows", "Rows in them.", counters.rows)
        what = "Batches, each one commit of the follower, and how long they took."
        yield counters.batches.metric("cdc_consumer_apply_seconds", what)
        what = "From the leader's commit to the follower's, of the newest transaction in each batch."
        yield counters.delays.metric("cdc_consumer_delay_seconds", what)
        yield _count(
            "retries", "Times that a batch was put off because the follower did not take it.", self._retry.waits
        )
        waiting = bool(self._retry.trouble) or counters.kafka_away()
        yield _value("waiting", "1 while the consumer waits for the follower or Kafka.", waiting)
        what = "1 while another consumer applies to the follower (consumer.standby)."
        yield _value("standby", what, counters.standby)
        if counters.started:
            yield _value("sequence", "The sequence of the last record applied.", counters.sequence)
            yield _count("conflicts", "Rows resolved in the leader's favour.", counters.conflicts)
            copied = counters.copies.total
            yield _count("copied_rows", "Rows in chunks of tables that are copied into the stream.", copied.rows)
            yield _count("copied_missing_rows", "Of these, rows that the follower did not have.", copied.missing)
            yield _count("copied_different_rows", "Of these, rows that were others on the follower.", copied.different)
            yield _count("copied_extra_rows", "Rows that the follower had and the leader not.", copied.extra)
            left_out = "Rows that the filters left out, or that the copy had (consumer.start)."
            yield _count("filtered_rows", left_out, counters.filtered_rows)
            yield _count("statements", "Statements executed.", counters.statements)
            yield _count(
                "statements_left_out", "Statements that are not for this follower.", counters.statements_left_out
            )
            held = "For so long is the next transaction held yet (consumer.delay_seconds); 0 where none is."
            yield _value("held_seconds", held, counters.held_seconds())
        if counters.limit is not None:
            limited = "For so long transactions were held back (consumer.rows_per_second)."
            yield _count("limited_seconds", limited, counters.limit.held_seconds)
        yield _value("paused", "1 while the operator has paused the program.", counters.pause.holding)
        yield from self._distance()

    def _distance(self) -> Iterator[Metric]:
        """Yields the metrics about the follower's distance from the leader."""
        behind = self.seconds_behind()
        if behind is not None:
            what = "At most so long ago did the leader commit what is in Kafka but not applied yet; 0 when drained."
            yield _value("behind_seconds", what, behind)
        newest = self._brokers.commits(self._commit_log) if self._counters.started else None
        if newest is not None:
            lag = max(0, newest.next_sequence - 1 - self._counters.sequence)
            yield _value("lag_records", "Records in Kafka that are not applied yet.", lag)
            silence = newest.silence(now=time.time())
            if silence is not None:
                what = (
                    "So long ago the producer wrote into its commit log; what the leader has since is not known here."
                )
                yield _value("producer_silence_seconds", what, silence)

    def checks(self) -> Iterator[Check]:
        """Checks whether the stream proceeds, whether the follower answers, and whether the topic can be read."""
        counters = self._counters
        if counters.standby:
            yield Check("stream", True, _STANDBY)
        elif not counters.started:
            yield Check("stream", False, self._retry.trouble or "not connected yet")
        elif self._retry.trouble:
            yield Check("stream", False, self._retry.trouble)
        else:
            ago = time.monotonic() - counters.applied_at
            held = counters.held_seconds()
            holds = f", the next transaction is held for another {held:.0f} s (consumer.delay_seconds)" if held else ""
            paused = "paused (SIGUSR2 goes on), " if counters.pause.holding else ""
            says = f"{paused}sequence {counters.sequence} applied, last commit {ago:.1f} s ago{holds}"
            yield Check("stream", True, says)
        yield self._ask_follower()
        yield self._brokers.check({partition.topic for partition in counters.offsets})
        if counters.started:
            yield from self._heard_of_producer()

    def _heard_of_producer(self) -> Iterator[Check]:
        """Checks whether the producer still writes to the commit log. If it does not, the follower may be behind the
        leader although the lag is 0.
        """
        newest = self._brokers.commits(self._commit_log)
        silence = newest.silence(now=time.time()) if newest else None
        if silence is not None:
            late = silence > _SIGNS * self._alive_seconds
            what = f"nothing heard of the producer for {silence:.0f} s" if late else f"heard of it {silence:.0f} s ago"
            yield Check("producer", not late, what, of_servers=False)

    def _ask_follower(self) -> Check:
        started = time.monotonic()
        try:
            ask(self._follower, seconds=_ANSWER_SECONDS)
        except (Interrupted, Refused, CdcError) as error:
            return Check("follower", False, f"no answer: {error}")
        return Check("follower", True, f"answered in {time.monotonic() - started:.3f} s")

    def line(self, *, rate: float) -> str:
        """Returns the progress line for a terminal; ``rate`` is in records per second."""
        counters = self._counters
        if counters.standby:
            return _STANDBY
        if not counters.started:
            return "connecting"
        behind = self.seconds_behind()
        words = [
            f"sequence {counters.sequence:,}",
            f"{rate:,.0f} records/s",
            "behind unknown" if behind is None else f"{behind:.1f} s behind",
            f"{counters.conflicts:,} conflicts",
        ]
        held = counters.held_seconds()
        if held:
            words.append(f"next in {held:.0f} s")
        waits = "the follower" if self._retry.trouble else "Kafka" if counters.kafka_away() else ""
        paused = ["paused"] if counters.pause.holding else []
        return "  ".join(paused + ([f"waiting for {waits}"] if waits else []) + words)

    def totals(self) -> dict[str, object]:
        """Returns the counters as fields of a log message; empty before the start."""
        counters = self._counters
        if not counters.started:
            return {"standby": True} if counters.standby else {}
        return {
            "sequence": counters.sequence,
            "records": counters.records,
            "rows": counters.rows,
            "statements": counters.statements,
            "conflicts": counters.conflicts,
            "retries": self._retry.waits,
        }


def _count(name: str, what: str, value: float) -> Metric:
    return CounterMetricFamily(f"cdc_consumer_{name}", what, value=value)


def _value(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_consumer_{name}", what, value=value)
