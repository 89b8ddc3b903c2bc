"""The checker of list-append workloads accepts what a leader does, and finds what it can't have done."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks.list_append import Appends, History, Lists, Transaction


@st.composite
def workloads(draw: st.DrawFn, *, least: int = 0) -> list[Transaction]:
    """Transactions in the order of their commits, some of which overlap in time."""
    found: list[Transaction] = []
    number = 0
    keys = st.lists(st.integers(0, 3), min_size=1, max_size=4)
    for place, each in enumerate(draw(st.lists(keys, min_size=least, max_size=12))):
        appends = tuple((key, number := number + 1) for key in each)
        # It commits at 100 * place.
        begun = 100 * place - draw(st.integers(1, 350))
        found.append(Transaction(appends, begun, 100 * place + draw(st.integers(1, 350))))
    return found


def state(order: list[Appends]) -> dict[int, list[int]]:
    lists: dict[int, list[int]] = {}
    for appends in order:
        for key, number in appends:
            lists.setdefault(key, []).append(number)
    return lists


def order_of(workload: list[Transaction]) -> list[Appends]:
    return [each.appends for each in workload]


@given(workloads(), st.data())
def test_what_a_leader_did_has_no_fault(workload: list[Transaction], data: st.DataObject) -> None:
    order = order_of(workload)
    history = History(order)
    assert history.faults_of_order(workload, state(order)) == []
    places = sorted(data.draw(st.lists(st.integers(0, len(order)))))
    assert history.faults_of_reads(state(order[:place]) for place in places) == []
    assert history.is_whole(state(order))


def planted(order: list[Appends], fault: str, at: int) -> list[Appends]:
    """``order`` with a fault at transaction ``at``; with ``reordered`` it changes places with the next one."""
    before, appends, after = order[:at], order[at], order[at + 1 :]
    match fault:
        case "lost":
            return [*before, *after]
        case "repeated":
            return [*before, appends, appends, *after]
        case "torn":
            return [*before, appends[:-1], *after]
        case "torn in two":
            return [*before, appends[:1], appends[1:], *after]
        case _:
            return [*before, *after[:1], appends, *after[1:]]


FAULTS = ["lost", "repeated", "torn", "torn in two", "reordered"]


@pytest.mark.parametrize("fault", FAULTS)
@given(workload=workloads(least=2), data=st.data())
def test_a_fault_of_the_stream_is_found(fault: str, workload: list[Transaction], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(workload) - 2))
    # In a stream no part of a transaction may stand alone, and no order of two that did not overlap may change.
    first, second = workload[at : at + 2]
    apart = [replace(first, ended=100 * at + 10), replace(second, begun=100 * at + 20)]
    workload[at : at + 2] = apart if fault == "reordered" else [first, second]
    if fault == "torn in two":
        workload[at] = replace(first, appends=(*first.appends, (0, 1000)))
    order = order_of(workload)
    assert History(planted(order, fault, at)).faults_of_order(workload, state(order))


@pytest.mark.parametrize("fault", FAULTS)
@given(workload=workloads(least=2), data=st.data())
def test_a_fault_of_a_state_is_found(fault: str, workload: list[Transaction], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(workload) - 2))
    # A part of a transaction shows where it wrote more than a number, and an order where two wrote into one list.
    common = workload[at].appends[-1][0]
    workload[at] = replace(workload[at], appends=((common, 1000), *workload[at].appends))
    workload[at + 1] = replace(workload[at + 1], appends=((common, 1001), *workload[at + 1].appends))
    order = order_of(workload)
    wrong = planted(order[: at + 2], fault, at)
    seen = state(wrong[: at + 1] if fault == "torn in two" else wrong)
    history = History(order)
    assert history.faults_of_reads([seen])
    assert not history.is_whole(seen)


@given(workloads(least=1))
def test_a_state_that_went_back_is_found(workload: list[Transaction]) -> None:
    order = order_of(workload)
    assert "went back" in History(order).faults_of_reads([state(order), state(order[:-1])])[0]


@pytest.mark.parametrize(
    ("lists", "told"),
    [
        ({0: [1], 1: [2, 3]}, None),
        ({0: [1], 1: [2]}, "key 1 has 2 numbers, 1 were read"),
        ({0: [1], 1: [3, 2]}, "from element 0 on [2, 3] are [3, 2]"),
        ({0: [1, 1], 1: [2, 3]}, "key 0 has 1 numbers, 2 were read"),
        ({0: [1], 1: [2, 3], 7: [9]}, "key 7 has 0 numbers, 1 were read"),
    ],
)
def test_it_says_what_is_wrong(lists: Lists, told: str | None) -> None:
    order: list[Any] = [((0, 1), (1, 2), (1, 3))]
    faults = History(order).faults_of_reads([lists])
    assert faults == [] if told is None else told in faults[0]
