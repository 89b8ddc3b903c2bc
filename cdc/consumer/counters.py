"""Counts the work of the consumer since its start. The pipeline counts each commit, and other threads read the
attributes.

The module also counts the differences that table copies find on the follower, and logs when a copy is complete.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cdc.consumer.apply.applier import Applied
from cdc.consumer.plan.chunk_plan import ChunkPlan
from cdc.consumer.range.delay import Delay, Pause, RateLimit
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.model.record import Uri
from cdc.service.delays import Behind, Histogram
from cdc.service.logs import event

__all__ = ["Copies", "Counters"]

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
    """Adds up the counts of chunks. ``total`` is the sum for all tables. There is also a sum for each table, which
    begins with the table's first chunk or, if that came earlier, with the program's start.
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
    (the operator's signal). ``standby`` is true while the program waits until another consumer ends.
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
    behind: Behind = field(default_factory=lambda: Behind(look_seconds=_LOOK_SECONDS))
    kafka_away: Callable[[], bool] = lambda: False
    delay: Delay | None = None
    limit: RateLimit | None = None
    pause: Pause = field(default_factory=Pause)
    copies: Copies = field(default_factory=Copies)

    def start(self, sequence: int, *, offsets: Mapping[TopicIdPartition, int], kafka_away: Callable[[], bool]) -> None:
        """Notes that both servers have answered. All records up to ``sequence`` were applied earlier, and reading
        begins at ``offsets``.
        """
        self.sequence = sequence
        self.offsets = dict(offsets)
        self.applied_at = time.monotonic()
        self.kafka_away = kafka_away
        self.started = True

    def applied(self, applied: Applied, *, conflicts: int, statements: int, left_out: int) -> None:
        """Counts a commit on the follower; ``conflicts``, ``statements`` and ``left_out`` are totals since the
        start."""
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

    def holding(self) -> bool:
        """Whether a transaction that has arrived is being held back."""
        delayed = self.delay is not None and self.delay.due_at is not None
        return delayed or self.pause.holding or (self.limit is not None and self.limit.holding)

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
