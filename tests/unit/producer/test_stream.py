"""Which changes go into one Kafka transaction, and in which order."""

import math
import struct
import threading
import time
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from _pytest.outcomes import Failed

from cdc.config.filters import FilterChange, Filters
from cdc.config.profile import Producer as Limits
from cdc.config.topic_names import Topics
from cdc.errors import UserError
from cdc.kafka.broker_checks import Brokers
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.copy.copier import Copier
from cdc.producer.copy.interleaver import Interleaver
from cdc.producer.copy.requests import Requests
from cdc.producer.copy.state import Pending, RecordState
from cdc.producer.decode.changes import Idle
from cdc.producer.metrics import ProducerMetrics
from cdc.producer.progress import Progress
from cdc.producer.sink.event_messages import EventMessages
from cdc.producer.sink.kafka_transactions import NEVER
from cdc.producer.sink.record_parts import Message
from cdc.producer.sink.router import Router
from cdc.producer.stream import Stream, must_commit
from cdc.service.retry import Retry
from tests.generators.binlog_events import UUID, Log, event, opened
from tests.harness.decoding import Leader

START = Entry(0, Position("binlog.000001", 4), "", "", gtids_complete=True)


class Sink:
    """Notes what is written and committed."""

    has_one_topic, is_full, begun_at, has_visible, visible_chunk = True, False, NEVER, False, None
    debezium = None
    is_heartbeat_due = False

    def __init__(self) -> None:
        self.records = self.bytes = 0
        self.done: list[str] = []
        self.paused: list[bool] = []

    def write(self, messages: Iterable[Message]) -> None:
        assert not [*messages]

    def write_event(self, _message: Message, position: Position) -> None:
        self.records += 1
        self.done.append(f"event {position}")

    def commit(self, entry: Entry) -> None:
        self.records = 0
        self.done.append(f"commit {entry.position}")

    def check(self) -> None:
        self.done.append("check")

    def pause_seconds(self, _records: int, *, copying: bool) -> float:
        self.paused.append(copying)
        return 0.0


class Copying:
    """A stream with the smallest Kafka transactions, and what may be copied into it."""

    def __init__(
        self,
        sink: Any,
        pending: Pending,
        widened: FilterChange | None = None,
        limits: Limits = Limits(commit_records=1),  # noqa: B008 - it is frozen
    ) -> None:
        retry = Retry(seconds=1, log=lambda *_, **__: None, stop=threading.Event())
        self.metrics = metrics = ProducerMetrics(retry=retry, brokers=Brokers({}), topics=(), heartbeat_seconds=1)
        decoder, self.progress = Leader(other_events=True).decoder, Progress(START)
        self.router = Router(resource="r", topics=Topics("t"), filters=Filters(), record_bytes=1000, next_sequence=0)
        self.copier = Copier(
            pending,
            requests=Requests({}, "t.copies", resource="r", taken=Pending()),
            open_reader=lambda: pytest.fail("nothing is copied"),
            wants_table=lambda *_: True,
            log=pytest.fail,
            widened=widened,
        )
        self._copies = Interleaver(
            self.copier, decoder=decoder, progress=self.progress, router=self.router, sink=sink, count=metrics.copied
        )
        messages = EventMessages(resource="r", topic="e", shown=None)
        self._stream = Stream(decoder, self.router, sink, self.progress, metrics, limits, messages)

    def window_end(self) -> float:
        return self._stream.window_end()

    def replicate(self, *received: Sequence[RawEvent | SimpleTransaction]) -> None:
        """Everything in these chunks of events."""
        changes = self._copies.changes(received)
        self._stream.replicate(changes, until=lambda: False, stop=threading.Event())


def replicated(*received: Sequence[RawEvent]) -> list[str]:
    """What a sink notes of these chunks of events."""
    sink: Any = Sink()
    Copying(sink, Pending()).replicate(*received)
    done: list[str] = sink.done
    return done


def test_other_events_of_a_chunk_commit_with_its_first_change() -> None:
    rotation = event(et.ROTATE, struct.pack("<Q", 4) + b"binlog.000002", offset=200)
    assert replicated([event(et.ROWS_QUERY, offset=100), rotation, event(et.STOP, offset=300)])[:-1] == [
        "event binlog.000001:100", "event binlog.000001:200", "event binlog.000001:300", "commit binlog.000002:4",
    ]  # fmt: skip


def test_other_events_commit_when_the_leader_has_no_more() -> None:
    assert replicated([event(et.ROWS_QUERY, offset=100)], [event(et.STOP, offset=200)], []) == [
        "event binlog.000001:100", "event binlog.000001:200", "commit binlog.000001:4", "check",
        "commit binlog.000001:4",
    ]  # fmt: skip


def test_changes_gather_for_longer_while_tables_are_copied() -> None:
    sink: Any = Sink()
    copying, log = Copying(sink, Pending(), limits=Limits()), opened()
    log.xid()
    copying.replicate([*log.events, event(et.STOP, offset=2000)], [])
    copying.router.incomplete = frozenset([("d", "t")])
    copying.replicate([event(et.STOP, offset=3000)], [])  # as with a chunk alone
    copying.replicate([*log.events, event(et.STOP, offset=4000)], [])
    assert sink.paused == [False, False, True]


MERGING = Limits(dedupe_ms=5_000)


@pytest.mark.parametrize(
    ("records", "open_seconds", "at_once", "alive", "commits"),
    [
        (1, 1, False, 60, False),
        (1, 6, False, 60, True),
        (1, 1, True, 60, True),  # the state of a copy
        (1, 1, False, 0, False),
        (0, 0, False, 0, True),  # a sign of life
        (0, 0, False, 60, False),
        (MERGING.commit_records, 1, False, 60, True),
    ],
)
def test_a_window_stays_open_while_the_leader_has_no_more(
    records: int, open_seconds: float, at_once: bool, alive: float, commits: bool
) -> None:
    sink: Any = Sink()
    sink.records, sink.begun_at = records, time.monotonic() - open_seconds
    progress = Progress(START, alive_seconds=alive)
    progress.is_due_at_once = at_once
    assert must_commit(Idle(inside=False), sink, progress, MERGING) is commits


@pytest.mark.parametrize("limits", [MERGING, Limits()])
def test_an_idle_stream_commits_for_a_heartbeat(limits: Limits) -> None:
    sink: Any = Sink()
    assert not must_commit(Idle(inside=False), sink, Progress(START), limits)
    sink.is_heartbeat_due = True
    assert must_commit(Idle(inside=False), sink, Progress(START), limits)


def test_the_leader_is_awaited_no_longer_than_the_window_lasts() -> None:
    sink: Any = Sink()
    stream = Copying(sink, Pending(), limits=MERGING)
    assert stream.window_end() == math.inf, "no window is open"
    sink.begun_at = 7.0
    assert stream.window_end() == 12.0
    assert Copying(sink, Pending()).window_end() == math.inf, "messages are not merged"


def test_what_waits_for_the_end_of_a_window_counts_as_behind() -> None:
    sink: Any = Sink()
    stream = Copying(sink, Pending(), limits=MERGING)
    sink.records, sink.begun_at = 1, time.monotonic()
    stream.replicate([])
    assert "check" in sink.done
    assert stream.metrics.seconds_behind() is None
    sink.records = 0
    stream.replicate([])
    assert stream.metrics.seconds_behind() == 0


class Seen(Sink):
    """A crash left a record of a copy visible, after the entry that is continued from."""

    def __init__(self, state: RecordState) -> None:
        super().__init__()
        self.states = [state.text()]

    @property
    def has_visible(self) -> bool:  # type: ignore[override]
        return bool(self.states)

    @property
    def visible_chunk(self) -> str | None:
        return self.states[-1] if self.states else None

    def count_chunk(self) -> None:
        self.states.pop()

    def write(self, messages: Iterable[Message]) -> None:
        self.done += [str(message.key, "utf-8") for message in messages]


def test_a_chunk_that_readers_can_see_is_counted_and_not_read_again() -> None:
    sink: Any = Seen(RecordState(Pending(again=(("d", "t"),), after=("7",), written=1, rows=3)))
    stream = Copying(sink, Pending(again=(("d", "t"),)))
    with pytest.raises(Failed, match="nothing is copied"):
        stream.replicate([event(et.STOP, offset=100)], [])
    assert stream.router.next_sequence == 1
    assert (stream.copier.pending.after, stream.copier.pending.written) == (("7",), 1)


NOW = Filters(exclude_tables=("d.u",))
WIDENED = FilterChange(Filters(exclude_dbs=("d",)), NOW)


def test_filters_hold_from_the_place_on_that_readers_see() -> None:
    sink: Any = Seen(RecordState(Pending(fresh=(("d", "t"), ("d", "u"))), NOW.listed(), f"{UUID}:1"))
    stream = Copying(sink, Pending(), WIDENED)
    stream.replicate([])
    assert (len(sink.states), stream.copier.widened, stream.router.next_sequence) == (1, WIDENED, 0)
    with pytest.raises(Failed, match="nothing is copied"):
        stream.replicate(Log().transaction(1, table="left_out").events, [])
    assert (sink.states, stream.copier.widened, stream.progress.filters) == ([], None, NOW.listed())
    assert (stream.router.next_sequence, stream.copier.pending.tables) == (1, (("d", "t"),))
    with pytest.raises(Failed, match="nothing is copied"):
        stream.replicate(Log().transaction(2, table="left_out").events, [])
    assert "flv://r/db/left_out" in sink.done  # which the filters of before had left out of what is decoded


@pytest.mark.parametrize("widened", [None, WIDENED])
def test_filters_other_than_those_that_readers_see_are_refused(widened: FilterChange | None) -> None:
    stream = Copying(Seen(RecordState(Pending(), {"include_dbs": ["other"]})), Pending(), widened)
    with pytest.raises(UserError, match="put these filters back"):
        stream.replicate([event(et.STOP, offset=100)], [])
