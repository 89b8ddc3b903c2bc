"""Counts the work of the consumer since its start, and shows the counts as Prometheus metrics, health checks, a line on
a terminal, and totals in the log.
"""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from cdc.config.profile import Database
from cdc.consumer.apply.applier import Applied
from cdc.consumer.errors import Interrupted, Refused
from cdc.consumer.follower.address import FollowerAddress
from cdc.consumer.follower.session import ask
from cdc.consumer.plan.chunk_plan import ChunkPlan
from cdc.consumer.range.delay import Delay, Pause, RateLimit
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.errors import CdcError
from cdc.kafka.broker_checks import Brokers
from cdc.model.record import Uri
from cdc.service.delays import Behind, Histogram
from cdc.service.http_endpoint import Check
from cdc.service.logs import event
from cdc.service.retry import Retry

__all__ = ["Activity", "Copies", "Counters"]

# Counts the work of the consumer since its start. The pipeline counts each commit, and other threads read the
# attributes.
#
# The module also counts the differences that table copies find on the follower, and logs when a copy is complete.

_LOG = logging.getLogger("cdc.consumer")


@dataclass(slots=True)
class Tally:
    """Counts the rows in chunks since the program's start.

    ``rows`` is the number of all rows in the chunks. ``missing`` is the number of these rows that the follower lacked,
    ``different`` the number that had other values on the follower. ``extra`` is the number of rows that only the
    follower had. ``first`` is the sequence of the first chunk.
    """

    first: int = -1
    rows: int = 0
    missing: int = 0
    different: int = 0
    extra: int = 0

    def add(self, plan: ChunkPlan) -> None:
        """Adds the counts of one chunk."""
        repair = plan.repair
        self.rows += len(plan.chunk.rows)
        self.missing += repair.missing
        self.different += repair.different
        self.extra += repair.extra

    def told(self) -> dict[str, int]:
        """Returns the counts as fields for the log."""
        return {"rows": self.rows, "missing": self.missing, "different": self.different, "extra": self.extra}


class Copies:
    """Adds up the counts of chunks. ``total`` is the sum for all tables. There is also a sum for each table: of all
    chunks of its copy, except those that were applied before the program's start.
    """

    def __init__(self) -> None:
        self.total = Tally()
        self._tables: dict[Uri, Tally] = {}

    def applied(self, plan: ChunkPlan) -> None:
        """Counts a chunk whose transaction has committed."""
        chunk, repair = plan.chunk, plan.repair
        if plan.refused is not None or chunk.range is None:
            return
        if chunk.range.keys is not None:
            self._repaired(plan, len(chunk.range.keys))
            return
        if chunk.range.after is None:
            self._tables[chunk.uri] = Tally(chunk.sequence)
        tally = self._tables.setdefault(chunk.uri, Tally(chunk.sequence))
        self.total.add(plan)
        tally.add(plan)
        if chunk.range.piece is None and (repair.extra or repair.different or (repair.there and repair.missing)):
            event(
                _LOG, "chunk changed rows", uri=chunk.uri, sequence=chunk.sequence,
                missing=repair.missing, different=repair.different, extra=repair.extra,
            )  # fmt: skip
        if chunk.range.through is None:
            del self._tables[chunk.uri]
            event(_LOG, "table copied", uri=chunk.uri, **tally.told(), since=tally.first, sequence=chunk.sequence)

    def _repaired(self, plan: ChunkPlan, keys: int) -> None:
        """Counts the repaired rows of chosen keys (``cdc-repair``), which do not belong to a copy of their table."""
        chunk, tally = plan.chunk, Tally()
        for each in (self.total, tally):
            each.add(plan)
        event(_LOG, "rows repaired", uri=chunk.uri, sequence=chunk.sequence, keys=keys, **tally.told())


_LOOK_SECONDS = 2.0  # the pipeline polls an idle topic several times within this time


@dataclass(slots=True)
class Counters:
    """The consumer's counters. They change with each committed batch, and whenever the topic has no more records.

    ``sequence`` is the sequence of the last applied record, and ``applied_at`` is the ``time.monotonic()`` of its
    commit; ``offsets`` are the offsets of the next records to apply. ``kafka_away()`` returns true while no broker
    answers. Transactions are held back by ``delay`` (the profile's delay), ``limit`` (the profile's rate) and ``pause``
    (the operator's signal). ``standby`` is true while the program waits until another consumer ends. ``follower`` knows
    the server to which the consumer is connected.
    """

    started: bool = False
    standby: bool = False
    sequence: int = -1
    offsets: dict[TopicIdPartition, int] = field(default_factory=dict)
    applied_at: float = 0.0
    records: int = 0
    rows: int = 0
    filtered_rows: int = 0
    batches: Histogram = field(default_factory=Histogram)
    delays: Histogram = field(default_factory=Histogram)
    conflicts: int = 0
    statements: int = 0
    statements_left_out: int = 0
    parked: int = 0
    behind: Behind = field(default_factory=lambda: Behind(look_seconds=_LOOK_SECONDS))
    kafka_away: Callable[[], bool] = lambda: False
    delay: Delay | None = None
    limit: RateLimit = field(default_factory=RateLimit)
    pause: Pause = field(default_factory=Pause)
    copies: Copies = field(default_factory=Copies)
    follower: FollowerAddress | None = None

    def start(self, sequence: int, *, offsets: Mapping[TopicIdPartition, int], kafka_away: Callable[[], bool]) -> None:
        """Notes that both servers have answered. All records up to ``sequence`` were applied earlier, and reading
        begins at ``offsets``.
        """
        self.sequence = sequence
        self.offsets = dict(offsets)
        self.applied_at = time.monotonic()
        self.kafka_away = kafka_away
        self.started = True

    def applied(self, applied: Applied, *, conflicts: int, statements: int, left_out: int, parked: int = 0) -> None:
        """Counts a commit on the follower; ``conflicts``, ``statements`` and ``left_out`` are totals since the
        start. ``parked`` is the number of parked tables."""
        if applied.chunk is not None:
            self.copies.applied(applied.chunk)
        # After a failover to a lagging server the sequence decreases, but the count of records must not.
        self.records += max(0, applied.last.sequence - self.sequence)
        self.sequence = applied.last.sequence
        self.offsets = self.offsets | dict(applied.offsets)
        self.rows += applied.rows
        self.filtered_rows += applied.filtered
        self.batches.observe(applied.seconds)
        self.delays.observe(max(0.0, time.time() - applied.last.ts_us / 1_000_000))
        self.applied_at = time.monotonic()
        self.behind.through_us = applied.last.ts_us
        self.conflicts, self.statements, self.statements_left_out = conflicts, statements, left_out
        self.parked = parked

    def holding(self) -> bool:
        """Whether a transaction that has arrived is being held back."""
        delayed = self.delay is not None and self.delay.due_at is not None
        return delayed or self.pause.holding or self.limit.holding

    def held_seconds(self) -> float:
        """Returns the seconds for which the next transaction is still held back (``consumer.delay_seconds``); 0 if no
        transaction is held back.
        """
        due_at = self.delay.due_at if self.delay is not None else None
        return 0.0 if due_at is None else max(0.0, due_at - time.time())

    def seconds_behind(self) -> float | None:
        """Returns an upper bound of the delay in seconds (``Behind.seconds``). While a transaction is held back, it is
        the time since the leader committed that transaction, because all earlier transactions are applied.
        """
        committed_at = self.delay.committed_at if self.delay is not None else None
        if committed_at is None:
            committed_at = self.pause.committed_at
        if committed_at is not None:
            return max(0.0, time.time() - committed_at)
        return self.behind.seconds(wall=time.time(), monotonic=time.monotonic())

    def drained(self) -> None:
        """Notes that all records in the topic are applied."""
        self.behind.drained_at = time.monotonic()


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
            "retries", "Times that a batch was delayed because the follower did not accept it.", self._retry.waits
        )
        waiting = bool(self._retry.trouble) or counters.kafka_away()
        yield _value("waiting", "1 while the consumer waits for the follower or Kafka.", waiting)
        what = "1 while another consumer applies to the follower (consumer.standby)."
        yield _value("standby", what, counters.standby)
        if counters.started:
            yield _value("sequence", "The sequence of the last record applied.", counters.sequence)
            yield _count("conflicts", "Rows resolved in the leader's favour.", counters.conflicts)
            yield _value("parked_tables", "Tables whose changes are left out (consumer.on_refused).", counters.parked)
            copied = counters.copies.total
            yield _count("copied_rows", "Rows in chunks of tables that are copied into the stream.", copied.rows)
            yield _count("copied_missing_rows", "Of these, rows that the follower did not have.", copied.missing)
            yield _count("copied_different_rows", "Of these, rows that differed on the follower.", copied.different)
            yield _count("copied_extra_rows", "Rows that the follower had and the leader not.", copied.extra)
            left_out = "Rows that the filters left out, or that the base copy contains (consumer.start)."
            yield _count("filtered_rows", left_out, counters.filtered_rows)
            yield _count("statements", "Statements executed.", counters.statements)
            yield _count(
                "statements_left_out", "Statements that are not for this follower.", counters.statements_left_out
            )
            held = "Time for which the next transaction is still held back (consumer.delay_seconds); 0 if none is."
            yield _value("held_seconds", held, counters.held_seconds())
        limited = "Time for which transactions were held back (consumer.rows_per_second)."
        yield _count("limited_seconds", limited, counters.limit.held_seconds)
        yield _value("paused", "1 while the operator has paused the program.", counters.pause.holding)
        yield from self._distance()

    def _distance(self) -> Iterator[Metric]:
        """Yields the metrics about the follower's distance from the leader."""
        behind = self.seconds_behind()
        if behind is not None:
            what = "Upper bound of the age of the oldest change in Kafka that is not applied yet; 0 when there is none."
            yield _value("behind_seconds", what, behind)
        newest = self._brokers.commits(self._commit_log) if self._counters.started else None
        if newest is not None:
            lag = max(0, newest.next_sequence - 1 - self._counters.sequence)
            yield _value("lag_records", "Records in Kafka that are not applied yet.", lag)
            silence = newest.silence(now=time.time())
            if silence is not None:
                what = (
                    "Time since the producer wrote into its commit log; later changes of the leader are not known here."
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
            paused = "paused (SIGUSR2 or cdc-consumer --resume ends the pause), " if counters.pause.holding else ""
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
            address = self._counters.follower
            ask(address.database if address else self._follower, seconds=_ANSWER_SECONDS)
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
