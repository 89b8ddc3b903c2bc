"""A pause begins between two of the leader's transactions, and ends where it is told to."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.range.delay import Pause
from cdc.consumer.source.assembler import assemble
from tests.unit.consumer.source.test_assembler import SIZES, history, located


class Event(threading.Event):
    """The program's stop, of which each wait ends the pause, or the program with ``stopping``."""

    def __init__(self, pause: Pause, *, stopping: bool) -> None:
        super().__init__()
        self.pause, self.stopping = pause, stopping

    def wait(self, timeout: float | None = None) -> bool:
        if self.stopping:
            self.set()
        self.pause.wanted = False
        return self.is_set()


@given(SIZES, st.integers(0, 40), st.booleans())
def test_a_pause_is_between_two_transactions(sizes: list[int], at: int, stopping: bool) -> None:
    pause, told = Pause(), []
    stop = Event(pause, stopping=stopping)
    items = [item and item._replace(size=1) for item in located(history(sizes))]
    parts = list(assemble(items, resource="srv", next_sequence=0, size=1))
    found = []
    for number, part in enumerate(pause.between(parts, stop=stop, tell=told.append)):
        if part is None:
            assert pause.holding and (not found or found[-1].ends)
        else:
            assert not pause.holding
            found.append(part)
        if number == at:
            pause.wanted = True
    assert found == parts[: len(found)]
    assert not pause.holding
    assert all(told[:-1]) and told[-1:] in ([], [False])
    assert stop.is_set() or found == parts


def test_a_pause_that_ends_while_records_are_read_again_is_over() -> None:
    """After a failover: the transactions of before are not asked for any more."""
    pause = Pause()
    stop = Event(pause, stopping=False)
    items = list(assemble(located(history([1, 1])), resource="srv", next_sequence=0))
    pause.wanted = True
    former = pause.between(items, stop=stop, tell=bool)
    assert next(former) is None and pause.holding
    del former
    pause.wanted = False
    assert list(pause.between(items, stop=stop, tell=bool)) == items
    assert (pause.holding, pause.committed_at) == (False, None)
