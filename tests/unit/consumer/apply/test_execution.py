"""Which executor gets a batch: the parallel one only for full batches that are independent of those before them."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from cdc.consumer.apply import execution
from cdc.consumer.apply.execution import Execution
from cdc.consumer.apply.planned_batch import PlannedBatch
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

    def put(self, batch: PlannedBatch) -> None:
        self.log.append(f"{self.name} {batch.rows}")

    def commit(self, also: tuple[bytes, ...] = ()) -> None:
        self.log.append(f"{self.name} commits" + "".join(f" {each.decode()}" for each in also))

    def recover(self, checkpoint: object) -> None:
        self.log.append(f"{self.name} recovers from {checkpoint}")


class Stages:
    """The two executors, and what they are told; ``kinds`` are those of the batches that are put next."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, usable: bool = True) -> None:
        self.log: list[str] = []
        self.serial = Recorder("serial", self.log)
        self.parallel = Recorder("parallel", self.log, usable=usable)
        self.execution = Execution(cast("Any", self.serial), cast("Any", self.parallel))
        self.kinds: list[dict[str, str] | None] = []
        monkeypatch.setattr(execution, "row_operations", self._operations)

    def _operations(self, steps: object, shape_of: Callable[[object], object]) -> dict[str, str] | None:
        assert (steps, shape_of(_TABLE)) == (_STEPS, _SHAPE)
        return self.kinds.pop(0)

    def put(self, number: int, *kinds: dict[str, str] | None, full: bool = True) -> list[str]:
        self.kinds = list(kinds)
        batch = Batch([], cast("Any", None), {}, full=full)
        planned = PlannedBatch(batch, [], [], cast("Any", None), rows=number, steps=_STEPS, shapes={_TABLE: _SHAPE})
        self.execution.put(planned)
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
