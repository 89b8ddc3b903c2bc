"""What the consumer has done and where it is, for those who look from outside.

The pipeline tells of each batch and of each moment at which the topic had nothing more; nothing happens here once a
record. Other threads read the attributes as they stand.
"""

import time
from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily

from cdc.config.profile import Database
from cdc.consumer.apply.applier import Applied, Applier
from cdc.consumer.apply.ddl_ledger import Ledger
from cdc.consumer.follower.session import Interrupted, Refused, ask
from cdc.consumer.state.checkpoint import Partition
from cdc.errors import CdcError
from cdc.kafka.broker_checks import Brokers
from cdc.service.health import Check
from cdc.service.retry import Retry
from cdc.service.seconds_behind import Behind

__all__ = ["Activity"]

_ANSWER_SECONDS = 2.0
_LOOK_SECONDS = 2.0  # a quiet topic is looked at several times in it


class Activity:
    """Counts from the program's start.

    ``retry`` says whether the follower is away just now; ``brokers`` and ``follower`` are asked when somebody looks.
    ``commits`` is the topic in which the producer commits, and says up to where there are records.
    """

    def __init__(self, *, retry: Retry, brokers: Brokers, commits: str, follower: Database) -> None:
        self._retry = retry
        self._brokers = brokers
        self._commit_log = commits
        self._follower = follower
        self._behind = Behind(look_seconds=_LOOK_SECONDS)
        self._applier: Applier | None = None
        self._ledger: Ledger | None = None
        self._offsets: dict[Partition, int] = {}
        self._away: Callable[[], bool] = lambda: False
        self._sequence = -1
        self._rows = 0
        self._commits = 0
        self._apply_seconds = 0.0
        self._applied_at = 0.0
        self.records = 0

    def begins(
        self, applier: Applier, ledger: Ledger, *, offsets: dict[Partition, int], away: Callable[[], bool]
    ) -> None:
        """Both servers are there; the records are read from ``offsets`` on. ``away`` tells when the brokers are not."""
        self._away = away
        self._applier, self._ledger = applier, ledger
        self._offsets = offsets
        self._sequence = applier.checkpoint.sequence
        self._applied_at = time.monotonic()

    def applied(self, applied: Applied) -> None:
        """The follower has committed."""
        # Less than before where another server took the follower's place: what it lacked is no more record than before.
        self.records += max(0, applied.last.sequence - self._sequence)
        self._sequence = applied.last.sequence
        self._rows += applied.rows
        self._offsets = self._offsets | dict(applied.offsets)
        self._commits += 1
        self._apply_seconds += applied.seconds
        self._applied_at = time.monotonic()
        self._behind.through_us = applied.last.ts_us

    def drained(self) -> None:
        """The topic has nothing more for now that could be applied."""
        self._behind.drained_at = time.monotonic()

    def seconds_behind(self) -> float | None:
        """An upper bound, see ``Behind``."""
        return self._behind.seconds(wall=time.time(), monotonic=time.monotonic())

    def metrics(self) -> Iterator[Metric]:
        """For Prometheus. What is not known yet is left out."""
        yield _count("records", "Records applied to the follower, or left out there by a filter.", self.records)
        yield _count("rows", "Rows in them.", self._rows)
        yield SummaryMetricFamily(
            "cdc_consumer_apply_seconds", "Batches, each one commit of the follower, and how long they took.",
            count_value=self._commits, sum_value=self._apply_seconds,
        )  # fmt: skip
        yield _count(
            "retries", "Times that a batch was put off because the follower did not take it.", self._retry.waits
        )
        waiting = bool(self._retry.trouble) or self._away()
        yield _value("waiting", "1 while the consumer waits for the follower or Kafka.", waiting)
        if self._applier is not None and self._ledger is not None:
            yield _value("sequence", "The sequence of the last record applied.", self._sequence)
            yield _count("conflicts", "Rows settled in the leader's favour.", self._applier.conflicts)
            yield _count("filtered_rows", "Rows that the filters left out.", self._applier.filtered)
            yield _count("statements", "Statements executed.", self._ledger.applied)
            yield _count("statements_left_out", "Statements that are not for this follower.", self._ledger.left_out)
        behind = self.seconds_behind()
        if behind is not None:
            what = "At most so long ago did the leader commit what is in Kafka but not applied yet; 0 when drained."
            yield _value("behind_seconds", what, behind)
        lag = self._lag()
        if lag is not None:
            what = "Records in Kafka that are not applied yet."
            yield _value("lag_records", what, lag)

    def _lag(self) -> int | None:
        if self._applier is None:
            return None
        following = self.following()
        return None if following is None else max(0, following - 1 - self._sequence)

    def following(self) -> int | None:
        """The sequence after the last record in the topic; None where that is not known."""
        return self._brokers.next_sequence(self._commit_log)

    def checks(self) -> Iterator[Check]:
        """Whether the stream goes on, the follower answers and the topic can be read."""
        if self._applier is None:
            yield Check("stream", False, self._retry.trouble or "not connected yet")
        elif self._retry.trouble:
            yield Check("stream", False, self._retry.trouble)
        else:
            ago = time.monotonic() - self._applied_at
            yield Check("stream", True, f"sequence {self._sequence} applied, last commit {ago:.1f} s ago")
        yield self._ask_follower()
        yield self._brokers.check({place.topic for place in self._offsets})

    def _ask_follower(self) -> Check:
        begun = time.monotonic()
        try:
            ask(self._follower, seconds=_ANSWER_SECONDS)
        except (Interrupted, Refused, CdcError) as error:
            return Check("follower", False, f"no answer: {error}")
        return Check("follower", True, f"answered in {time.monotonic() - begun:.3f} s")

    def line(self, *, rate: float) -> str:
        """For a terminal."""
        if self._applier is None:
            return "connecting"
        behind = self.seconds_behind()
        words = [
            f"sequence {self._sequence:,}",
            f"{rate:,.0f} records/s",
            "behind unknown" if behind is None else f"{behind:.1f} s behind",
            f"{self._applier.conflicts:,} conflicts",
        ]
        waits = "the follower" if self._retry.trouble else "Kafka" if self._away() else ""
        return "  ".join(([f"waiting for {waits}"] if waits else []) + words)

    def totals(self) -> dict[str, object]:
        """For the log."""
        if self._applier is None or self._ledger is None:
            return {}
        return {
            "sequence": self._sequence,
            "records": self.records,
            "rows": self._rows,
            "statements": self._ledger.applied,
            "conflicts": self._applier.conflicts,
            "retries": self._retry.waits,
        }


def _count(name: str, what: str, value: int) -> Metric:
    return CounterMetricFamily(f"cdc_consumer_{name}", what, value=value)


def _value(name: str, what: str, value: float) -> Metric:
    return GaugeMetricFamily(f"cdc_consumer_{name}", what, value=value)
