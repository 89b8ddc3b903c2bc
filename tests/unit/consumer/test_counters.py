"""The counters only grow, also where another server at the follower's address lacks some of the records."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import cast

from cdc.consumer.apply.applier import Applied
from cdc.consumer.metrics import Counters
from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.model.record import Record

PLACE, OTHER = TopicIdPartition("t", 0, "id"), TopicIdPartition("u", 0, "id")


def applied(sequence: int, *, offsets: Mapping[TopicIdPartition, int], rows: int = 2, filtered: int = 1) -> Applied:
    last = cast("Record", SimpleNamespace(sequence=sequence, ts_us=sequence))
    return Applied(last, offsets, rows, filtered, seconds=0.5)


def test_the_count_of_records_never_goes_back() -> None:
    counters = Counters()
    counters.start(4, offsets={PLACE: 10}, kafka_away=lambda: False)
    for sequence in (6, 5, 8):
        counters.applied(applied(sequence, offsets={OTHER: sequence}), conflicts=3, statements=1, left_out=2)
    assert counters.records == 2 + 0 + 3
    assert counters.sequence == 8
    assert (counters.rows, counters.filtered_rows, counters.batches.count, counters.batches.seconds) == (6, 3, 3, 1.5)
    assert (counters.conflicts, counters.statements, counters.statements_left_out) == (3, 1, 2)
    assert counters.offsets == {PLACE: 10, OTHER: 8}


def test_a_drained_topic_is_not_behind() -> None:
    counters = Counters()
    assert counters.behind.drained_at is None
    counters.drained()
    assert counters.behind.drained_at is not None
