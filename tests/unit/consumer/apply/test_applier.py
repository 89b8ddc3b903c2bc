"""Whatever connections are lost on the way, each transaction commits once, in the leader's order, and is told once."""

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.profile import Database
from cdc.consumer.apply.applier import Applied, Applier, Reread
from cdc.consumer.apply.committed import Committed
from cdc.consumer.apply.planned_batch import PlannedBatch, State, ending
from cdc.consumer.errors import Interrupted, Refused, WaitedOut
from cdc.consumer.follower.address import FollowerAddress
from cdc.consumer.plan.footprint import Footprint
from cdc.consumer.source.assembler import Batch
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import CdcError, PromiseError
from tests.unit.consumer.plan.test_planner import record

START = Checkpoint("srv", "topic", "id")
AT = TopicIdPartition("topic", 0, "id")


class Connection:
    """A session that is connected or not; ``losses`` says whether it is found lost while there is nothing to do."""

    connected, server, changes_doubles = True, "a", False

    def __init__(self, losses: Iterator[bool]) -> None:
        self._losses = losses
        self.address = FollowerAddress(Database())

    def connect(self) -> None:
        self.connected = True

    def close(self) -> None:
        self.connected = False

    def keep(self) -> None:
        if next(self._losses, False):
            raise Interrupted("lost")


class Patience:
    """A retry that never gives up."""

    def success(self) -> None:
        pass

    def wait(self, error: Exception, *, last: bool) -> None:
        assert not last, error


class Plans:
    """A preparation that plans no rows; ``commits`` says which batches need all before them to be committed."""

    def __init__(self, commits: Iterator[bool]) -> None:
        self._commits = commits
        self._reached = START
        self.rows: Footprint | None = None
        self.connects = True
        self.beside: list[bool] = []
        self.learned: list[int] = []

    def restart(self, checkpoint: Checkpoint) -> None:
        self._reached = checkpoint

    def learn(self, batch: Batch) -> None:
        self.learned.append(batch.last.sequence)

    def covers(self, _: Batch) -> Footprint | None:
        return self.rows

    def looks_beside(self) -> bool:
        return self.connects

    def needs_commit(self, _: Batch, *, beside: bool) -> bool:
        self.beside.append(beside)
        return next(self._commits, False) and not beside

    def runs(self, _: Batch) -> bool:
        return False

    def prepare(self, batch: Batch, _: object, *, beside: bool) -> PlannedBatch:
        assert beside is self.beside[-1]
        tail, self._reached = ending(batch, self._reached, [])
        return PlannedBatch(batch, [], tail, self._reached)

    def forget_tables(self) -> None:
        pass

    def rest(self) -> None:
        pass


class Follower:
    """An execution: ``committed`` are the sequences that the follower has, in the order in which they committed.

    ``losses`` says at each step whether the connection is lost there.
    """

    conflicts, failed, running = 0, False, False

    def __init__(self, losses: Iterator[bool]) -> None:
        self._losses = losses
        self._last: PlannedBatch | None = None
        self._open: list[int] = []  # the sequences of the open transaction's parts
        self.committed: list[int] = []

    def admits(self, rows: Footprint | None) -> bool:
        return rows is not None

    def rest(self) -> None:
        pass

    def put(self, batch: PlannedBatch) -> None:
        self.commit()
        self._step()
        batch.sent([])
        self._step()
        batch.executed()
        assert bool(self._open) != batch.batch.begins  # parts of a transaction follow one another
        self._open.append(batch.batch.last.sequence)
        self._last = batch if batch.batch.ends else None

    def commit(self) -> None:
        if self._last is not None:
            self._last.committing()
            self._step()
            self.committed += self._open
            self._open = []
            self._step()
            self._last.committed()
            self._last = None

    def recover(self, checkpoint: Checkpoint) -> None:
        now = self.committed[-1] if self.committed else -1
        if self._last is not None and self._last.state is State.COMMITTING and now == self._last.target.sequence:
            self._last.committed()
        else:
            assert now == checkpoint.sequence
        self._open, self._last = [], None

    def _step(self) -> None:
        if next(self._losses, False):
            raise Interrupted("lost")


def batches(sizes: list[int], *, after: int, pauses: Iterator[bool]) -> Iterator[Batch | None]:
    """Transactions of so many parts each, of a record each, behind record ``after``; a None at ``pauses``, and last."""
    sequence = 0
    for size in sizes:
        for part in range(size):
            if sequence > after:
                last = record(sequence, "Add")
                yield Batch([], last, {AT: sequence + 1}, begins=part == 0, ends=part == size - 1)
                if next(pauses, False):
                    yield None
            sequence += 1
    yield None


@given(
    st.lists(st.integers(1, 4), max_size=6),
    st.lists(st.booleans(), max_size=20),
    st.lists(st.booleans(), max_size=20),
    st.lists(st.booleans(), max_size=60),
)
def test_each_transaction_commits_once(
    sizes: list[int], commits: list[bool], pauses: list[bool], losses: list[bool]
) -> None:
    lost, paused = iter(losses), iter(pauses)
    session, follower = Connection(lost), Follower(lost)
    committed = Committed(cast("Any", session), START)
    applier = Applier(
        cast("Any", session), cast("Any", Plans(iter(commits))), cast("Any", follower),
        committed=committed, retry=cast("Any", Patience()), stop=threading.Event(),
    )  # fmt: skip
    told: list[int] = []
    while True:
        try:
            for applied in applier.applied(batches(sizes, after=applier.checkpoint.sequence, pauses=paused)):
                told += [applied.last.sequence] if applied is not None else []
            break
        except Reread:
            continue
    assert follower.committed == [*range(sum(sizes))]
    assert told == [sum(sizes[: number + 1]) - 1 for number in range(len(sizes))]
    assert applier.checkpoint.sequence == sum(sizes) - 1


class Refusing(Follower):
    """An execution that raises these errors, one at each batch, before it takes any."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__(iter(()))
        self._errors = list(errors)

    def put(self, batch: PlannedBatch) -> None:
        if self._errors:
            raise self._errors.pop(0)
        super().put(batch)


class Stops:
    """A retry that notes what it waits for; meanwhile ``stop`` is set, unless it is None."""

    def __init__(self, stop: threading.Event | None) -> None:
        self.waits: list[tuple[str, bool]] = []
        self._stop = stop

    def success(self) -> None:
        pass

    def wait(self, error: CdcError, *, last: bool) -> None:
        self.waits.append((error.where, last))
        if self._stop is not None:
            self._stop.set()


def applied(follower: Follower, given: list[Batch | None], **options: Any) -> list[int | None]:
    """The last sequences that the applier reports, None for a pause."""
    return [each and each.last.sequence for each in reported(follower, given, **options)]


def reported(
    follower: Follower, given: Iterable[Batch | None], *, plans: Plans | None = None, retry: Any = None,
    stop: threading.Event | None = None,
) -> Iterator[Applied | None]:  # fmt: skip
    session: Any = Connection(iter(()))
    applier = Applier(
        session, cast("Any", plans or Plans(iter(()))), cast("Any", follower),
        committed=Committed(session, START), retry=retry or Patience(), stop=stop or threading.Event(),
    )  # fmt: skip
    yield from applier.applied(given)


def some(*sizes: int) -> list[Batch | None]:
    return list(batches(list(sizes), after=-1, pauses=iter(())))


CHUNK: Any = "the plan of a chunk"


class Counts(Plans):
    """Plans with these rows, of which some are filtered out."""

    def prepare(self, batch: Batch, commit: object, *, beside: bool) -> PlannedBatch:
        return replace(
            super().prepare(batch, commit, beside=beside), rows=7, filtered=2, started=time.monotonic(), chunk=CHUNK
        )


def test_a_commit_is_reported_with_its_rows() -> None:
    (batch, _) = given = some(1)
    assert batch is not None
    (found,) = filter(None, reported(Follower(iter(())), given, plans=Counts(iter(()))))
    assert (found.last, found.offsets, found.rows, found.filtered) == (batch.last, batch.offsets, 7, 2)
    assert found.seconds >= 0 and found.chunk is CHUNK


@pytest.mark.parametrize(("rows", "connects", "beside"), [({}, True, True), ({}, False, False), (None, True, False)])
def test_a_chunk_is_prepared_beside_others_if_these_do_not_change_its_rows(
    rows: Footprint | None, connects: bool, beside: bool
) -> None:
    plans = Plans(iter((True, True)))
    plans.rows, plans.connects = rows, connects
    assert applied(Follower(iter(())), some(1, 1), plans=plans) == [0, 1, None]
    assert plans.beside == [beside, beside]


def test_definitions_are_read_beside_batches_that_are_executed_in_parallel() -> None:
    plans, follower = Plans(iter(())), Follower(iter(()))
    assert applied(follower, some(1, 1), plans=plans) == [0, 1, None]
    assert plans.learned == []
    plans, follower = Plans(iter(())), Follower(iter(()))
    follower.running = True
    assert applied(follower, some(1, 1), plans=plans) == [0, 1, None]
    assert plans.learned == [0, 1]


def test_a_pause_is_passed_on_once_all_before_it_has_committed() -> None:
    follower = Follower(iter(()))

    def given() -> Iterator[Batch | None]:
        for number, batch in enumerate(some(1, 1)):
            assert len(follower.committed) < max(number, 1)  # the newest batch waits for the next one, or for a pause
            yield batch

    for each in reported(follower, given()):
        assert each is not None or follower.committed == [0, 1]


def test_what_is_reported_has_committed_also_at_the_end() -> None:
    follower = Follower(iter(()))
    assert applied(follower, some(1, 1)) == [0, 1, None]
    follower = Follower(iter(()))
    assert applied(follower, some(1, 1)[:-1]) == [0, 1]  # no pause comes after the last
    assert follower.committed == [0, 1]


@pytest.mark.parametrize("is_set", [False, True])
def test_a_stop_ends_the_wait_for_a_follower_that_is_away(is_set: bool) -> None:
    stop = threading.Event()
    if is_set:
        stop.set()
    retry = Stops(stop)
    follower = Refusing(Interrupted("lost"), AssertionError("it was told to stop"))
    assert applied(follower, some(1, 1), retry=retry, stop=stop) == []
    assert retry.waits == ([] if is_set else [("the batch after sequence -1", False)])
    assert follower.committed == []


def test_a_lock_that_was_waited_for_long_enough_is_not_waited_for_again() -> None:
    retry = Stops(None)
    assert applied(Refusing(WaitedOut("locked")), some(1), retry=retry) == [0, None]
    assert retry.waits == [("the batch after sequence -1", True)]


def test_a_refusal_names_the_batch_and_the_way_out() -> None:
    with pytest.raises(PromiseError, match="the follower refuses: denied") as raised:
        applied(Refusing(Refused(1142, "denied")), some(1))
    assert (raised.value.code, raised.value.where) == ("CDC-FOLLOWER-REFUSES", "the batch after sequence -1")
    assert "nothing of the batch was applied" in str(raised.value.hint)


class OneByOne(Plans):
    """Plans the first statement of a run, as where the next one can't be planned yet."""

    def prepare(self, batch: Batch, commit: object, *, beside: bool) -> PlannedBatch:
        return super().prepare(batch.cut(1)[0], commit, beside=beside)


def test_the_statements_of_a_run_that_are_not_planned_yet_follow() -> None:
    each = [Batch([], record(at, "Query"), {AT: at + 1}, record(at, "Query")) for at in range(3)]
    run = Batch([], each[-1].last, each[-1].offsets, each[0].statement, run=tuple(each))
    follower = Follower(iter(()))
    assert applied(follower, [run, None], plans=OneByOne(iter(()))) == [0, 1, 2, None]
    assert follower.committed == [0, 1, 2]
