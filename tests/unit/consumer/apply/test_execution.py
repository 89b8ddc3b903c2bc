"""Which executor gets a batch: the parallel one only for full batches that are independent of those before them, and
for what comes around chunks of a table copy.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.consumer.apply import execution
from cdc.consumer.apply.execution import Execution
from cdc.consumer.apply.planned_batch import PlannedBatch
from cdc.consumer.plan.footprint import Footprint, Span, Touched
from cdc.consumer.source.assembler import Batch

_STEPS, _TABLE, _SHAPE = cast("Any", ("a step",)), cast("Any", "a table"), cast("Any", "its shape")


class Recorder:
    """An executor that notes what it is told to do."""

    def __init__(self, name: str, log: list[str], *, usable: bool = True) -> None:
        self.name = name
        self.log = log
        self.usable = usable
        self.running = self.failed = False
        self.conflicts = 0
        self.under_way: list[Footprint] = []

    def put(self, batch: PlannedBatch) -> None:
        self.log.append(f"{self.name} {batch.rows}")
        if self.name == "parallel":
            assert batch.footprint is not None
            self.running = True
            self.under_way.append(batch.footprint)

    def commit(self, also: tuple[bytes, ...] = ()) -> None:
        if self.name == "parallel":
            self.running = False
            self.under_way.clear()
        self.log.append(f"{self.name} commits" + "".join(f" {each.decode()}" for each in also))

    def recover(self, checkpoint: object) -> None:
        self.log.append(f"{self.name} recovers from {checkpoint}")
        self.running = False
        self.under_way.clear()


class Stages:
    """The two executors, and what they are told; ``kinds`` are those of the batches that are put next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, usable: bool = True) -> None:
        self.log: list[str] = []
        self.serial = Recorder("serial", self.log)
        self.parallel = Recorder("parallel", self.log, usable=usable)
        self.execution = Execution(cast("Any", self.serial), cast("Any", self.parallel))
        self.rows: list[Footprint | None] = []
        self.by_key = False
        monkeypatch.setattr(execution, "footprint", self._footprint)
        monkeypatch.setattr(execution, "chunk_footprint", lambda chunk, shape: self.rows.pop(0))

    def _footprint(self, steps: object, shape_of: Callable[[object], object], *, by_key: bool) -> Footprint | None:
        assert (steps, shape_of(_TABLE)) == (_STEPS, _SHAPE)
        self.by_key = by_key
        return self.rows.pop(0)

    def put(self, number: int, *kinds: dict[str, str] | None, full: bool = True) -> list[str]:
        """Puts a batch that only adds or only deletes rows of some tables."""
        found = [cast("Any", each and {name: Touched(kind) for name, kind in each.items()}) for each in kinds]
        return self.put_rows(number, *found, full=full)

    def put_rows(
        self, number: int, *rows: Footprint | None, full: bool = False, small: bool = True, chunk: bool = False
    ) -> list[str]:
        self.rows = list(rows)
        batch = Batch([], cast("Any", None), {}, full=full, small=full or small)
        planned = PlannedBatch(batch, [], [], cast("Any", None), rows=number, steps=_STEPS, shapes={_TABLE: _SHAPE})
        if chunk:
            record = SimpleNamespace(uri=_TABLE)
            planned.chunk = cast("Any", SimpleNamespace(chunk=record))
        self.execution.put(planned)
        assert not self.rows
        assert planned.steps == ()  # they may be large
        found, self.log[:] = list(self.log), []
        return found


def test_the_first_batch_is_serial_and_independent_ones_follow_in_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch)
    assert stages.put(1, {"t": "Add"}) == ["parallel commits", "serial 1"]
    assert stages.put(2, {"t": "Add"}) == ["serial commits", "parallel 2"]
    assert stages.put(3, {"u": "Delete"}) == ["serial commits", "parallel 3"]
    # Dependent on the second one, not only on the batch just before.
    assert stages.put(4, {"t": "Delete"}) == ["parallel commits", "serial 4"]
    assert stages.put(5, {"t": "Delete"}) == ["serial commits", "parallel 5"]
    assert not stages.by_key  # outside of a table copy, keys of rows are not determined


def test_a_batch_that_is_not_full_or_changes_rows_is_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch)
    stages.put(1, {"t": "Add"})
    assert stages.put(2, full=False) == ["parallel commits", "serial 2"]
    assert stages.put(3, {"t": "Add"}) == ["parallel commits", "serial 3"]
    assert stages.put(4, None) == ["parallel commits", "serial 4"]
    assert stages.put(5, {"t": "Add"}) == ["parallel commits", "serial 5"]


def test_one_connection_is_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch, usable=False)
    assert stages.put(1) == ["parallel commits", "serial 1"]
    assert stages.put(2) == ["parallel commits", "serial 2"]


def test_after_a_failure_the_next_batches_are_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_SERIAL_BATCHES", 2)
    stages = Stages(monkeypatch)
    stages.put(1, {"t": "Add"})
    stages.execution.prefer_serial()
    for number in (2, 3):
        assert stages.put(number) == ["parallel commits", f"serial {number}"]
    assert stages.put(4, {"t": "Add"}) == ["parallel commits", "serial 4"]
    assert stages.put(5, {"t": "Add"}) == ["serial commits", "parallel 5"]


def test_the_executor_that_was_running_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch)
    stages.execution.recover(cast("Any", "5"))
    stages.parallel.running = True
    stages.execution.recover(cast("Any", "6"))
    assert stages.log == ["serial recovers from 5", "parallel recovers from 6"]


def test_after_a_lost_connection_a_batch_commits_before_a_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another server has answered, its checkpoint is read again over the first connection until then."""
    stages = Stages(monkeypatch)
    stages.put(1, {"t": "Add"})
    stages.put(2, {"t": "Add"})
    stages.execution.recover(cast("Any", None))
    stages.log.clear()
    assert stages.put(2, {"t": "Add"}) == ["parallel commits", "serial 2"]
    assert stages.put(3, {"t": "Add"}) == ["serial commits", "parallel 3"]


def test_what_commits_with_the_last_batch_comes_behind_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch)
    stages.execution.commit((b"also",))
    assert stages.log == ["parallel commits", "serial commits also"]


def span(after: int | None, through: int | None) -> Footprint:
    ends = [None if end is None else (end,) for end in (after, through)]
    return {_TABLE: Touched(span=Span(ends[0], ends[1], numbers=True))}


def keys(*numbers: int) -> Footprint:
    return {_TABLE: Touched(keys=frozenset((number,) for number in numbers))}


def test_chunks_and_the_changes_between_them_are_parallel(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch)
    assert stages.put_rows(1, span(None, 10), chunk=True) == ["parallel commits", "serial 1"]
    assert stages.put_rows(2, keys(11, 3)) == ["parallel commits", "serial 2"]
    assert stages.by_key
    assert stages.put_rows(3, span(10, 20), chunk=True) == ["parallel commits", "serial 3"]  # it has row 11
    assert stages.put_rows(4, span(20, 30), chunk=True) == ["serial commits", "parallel 4"]
    assert stages.put_rows(5, keys(1, 40)) == ["serial commits", "parallel 5"]
    assert stages.put_rows(6, {}) == ["serial commits", "parallel 6"]  # nothing of it passes the filters
    assert stages.put_rows(7, span(30, 39), chunk=True) == ["serial commits", "parallel 7"]
    assert stages.put_rows(8, keys(25)) == ["parallel commits", "serial 8"]


def test_long_after_a_chunk_or_where_they_are_large_batches_are_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "_AFTER_CHUNK", 3)
    stages = Stages(monkeypatch)
    stages.put_rows(1, span(None, 1), chunk=True)
    assert stages.put_rows(2, small=False) == ["parallel commits", "serial 2"]
    stages.put_rows(3, keys(4))
    assert stages.put_rows(4) == ["parallel commits", "serial 4"]
    stages.put_rows(5, small=False, chunk=True)
    assert stages.put_rows(6, keys(7)) == ["parallel commits", "serial 6"]


def test_the_rows_of_a_chunk_are_looked_at_beside_batches_that_do_not_change_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages = Stages(monkeypatch)
    admits = stages.execution.admits
    stages.put_rows(1, span(None, 10), chunk=True)
    assert not admits(span(10, 20))  # nothing is executed in parallel
    stages.put_rows(2, span(10, 20), chunk=True)
    assert stages.execution.running
    assert admits(span(20, None))
    assert not admits(span(19, None))
    assert not admits(None)


def test_a_batch_whose_rows_were_refused_is_serial(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = Stages(monkeypatch)
    stages.put_rows(1, span(None, 10), chunk=True)
    batch = Batch([], cast("Any", None), {}, full=True, small=True)
    stages.execution.put(PlannedBatch(batch, [cast("Any", "a record")], [], cast("Any", None), rows=2))
    assert stages.log == ["parallel commits", "serial 2"]
