"""Items of many lanes come back in order, however they arrive and whichever lanes stop for a while."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.kafka.merged_topics import Merge


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(0, 5), st.data())
def test_any_arrival_gives_the_order_back(lanes: list[int], first: int, data: st.DataObject) -> None:
    waiting = {lane: [number for number, mine in enumerate(lanes) if mine == lane] for lane in set(lanes)}
    merge: Merge[int, int] = Merge(first)
    found = []
    while any(waiting.values()):
        # Lanes in which something waits may be left alone: there is always another one to take from.
        open_lanes = sorted({lane for lane, numbers in waiting.items() if numbers} - merge.lanes())
        lane = data.draw(st.sampled_from(open_lanes))
        number = waiting[lane].pop(0)
        merge.add(lane, number, number, size=10)
        assert merge.bytes >= 0
        found += merge.ready()
    assert found == list(range(first, len(lanes)))
    assert (merge.bytes, merge.lanes()) == (0, set())


@given(st.sets(st.integers(1, 50)))
def test_over_each_gap_it_goes_on_when_told_to(numbers: set[int]) -> None:
    merge: Merge[str, int] = Merge(0)
    for number in numbers:
        merge.add("lane", number, number, size=1)
    found: list[int] = []
    while merge.lanes():
        assert list(merge.ready()) == []
        merge.pass_gap()
        found += merge.ready()
    assert found == sorted(numbers)


@given(st.sets(st.integers(0, 50)))
def test_the_rest_comes_in_order_over_gaps(numbers: set[int]) -> None:
    merge: Merge[str, int] = Merge(0)
    for number in numbers:
        merge.add("lane", number, number, size=1)
        merge.add("lane", number, -1, size=1)
    assert list(merge.rest()) == sorted(numbers)
    assert merge.next_number == max(numbers, default=-1) + 1


def test_a_missing_number_is_noticed_wherever_it_is() -> None:
    merge: Merge[str, int] = Merge(2)
    assert not merge.lacks(2, from_next=True)
    assert merge.lacks(3, from_next=False), "below the end"
    for number in (4, 5):
        merge.add("a", number, number, size=1)
    assert not merge.lacks(6, from_next=False)
    assert merge.lacks(6, from_next=True), "before the first one"
    merge.add("b", 7, 7, size=1)
    assert merge.lacks(6, from_next=False), "between two"
