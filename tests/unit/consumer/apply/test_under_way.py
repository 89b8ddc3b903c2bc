"""Which batches count as under way while batches are executed in parallel: also one whose COMMIT was only sent."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from cdc.consumer.apply.parallel import ParallelExecutor
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.apply.prefetch import Prefetch
from cdc.consumer.plan.footprint import Footprint, Touched
from cdc.consumer.plan.packets import Statement
from cdc.consumer.source.assembler import Batch
from cdc.model.record import Uri


class Connection:
    """A session whose server does all it is sent, at once; ``silent_seconds`` are set by the test."""

    max_packet, busy = 1 << 20, False

    def __init__(self) -> None:
        self.connected = True
        self.silent_seconds = 0.0
        self.connects = 0
        self._sent = 0

    def additional(self, _: int) -> "Connection":
        self.other = Connection()
        self.other.connected = False
        return self.other

    def connect(self) -> None:
        self.connected, self.silent_seconds = True, 0.0
        self.connects += 1

    def close(self) -> None:
        self.connected = False

    def send(self, packet: Sequence[bytes], loads: Mapping[int, bytes] | None = None) -> None:
        self._sent = len(packet)

    def fed(self, _: float) -> bool:
        return True

    def answered(self, _: float) -> bool:
        return True

    def receive(self) -> list[int]:
        return [1] * self._sent


def executor() -> tuple[ParallelExecutor, Connection]:
    session = Connection()
    return ParallelExecutor(cast("Any", session), connections=2, prefetch=Prefetch(lambda: False)), session


def rows(table: str) -> Footprint:
    return {Uri("srv", "d", table): Touched("Add")}


def planned(table: str, *statements: Statement) -> PlannedBatch:
    batch = Batch([], cast("Any", None), {})
    found = PlannedBatch(batch, [], [], cast("Any", None), statements=iter(statements))
    found.footprint = rows(table)
    return found


def test_a_batch_is_under_way_until_its_commit_is_confirmed() -> None:
    parallel, _ = executor()
    for table in ("a", "b"):
        parallel.put(planned(table, Statement(b"INSERT")))
    assert parallel.under_way == [rows("a"), rows("b")]
    parallel.put(planned("c"))  # no row of it passes the filters
    assert parallel.under_way == [rows("a"), rows("b"), rows("c")]
    parallel.put(planned("d", Statement(b"INSERT")))
    assert parallel.under_way == [rows("b"), rows("c"), rows("d")]
    parallel.commit()
    assert parallel.under_way == [] and not parallel.running


def test_a_batch_whose_rows_are_unknown_is_not_executed_in_parallel() -> None:
    parallel, _ = executor()
    unknown = planned("a")
    unknown.footprint = None
    with pytest.raises(RuntimeError, match="rows are unknown"):
        parallel.put(unknown)


def test_additional_connections_stay_open_for_a_while() -> None:
    parallel, session = executor()
    for table in ("a", "b"):
        parallel.put(planned(table))
    parallel.commit()
    session.other.silent_seconds = 9.0
    parallel.rest()
    assert session.other.connected
    # A run that begins after a long pause opens it again: the server may have closed it.
    session.other.silent_seconds = session.silent_seconds = 11.0
    for table in ("a", "b"):
        parallel.put(planned(table))
    assert session.other.connects == 2 and session.connects == 0
    session.other.silent_seconds = 11.0
    parallel.rest()  # it is in use
    assert session.other.connected
    parallel.commit()
    parallel.rest()
    assert not session.other.connected and session.connected
