"""What judges a soak accepts what a leader does, in whichever order its sources come, and finds planted faults."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.checks.list_append import Appends, Transaction
from tests.soak.history import GrowingHistory, Read
from tests.soak.samples import growth, percentile_of


@st.composite
def workloads(draw: st.DrawFn) -> list[Transaction]:
    """Transactions in the order of their commits, some of which overlap in time; keys rise as in a soak."""
    found: list[Transaction] = []
    number = 0
    for place in range(draw(st.integers(2, 12))):
        keys = draw(st.lists(st.integers(0, 2), min_size=1, max_size=4))
        appends = tuple((place // 4 * 2 + key, number := number + 1) for key in sorted(keys))
        found.append(Transaction(appends, 100 * place - draw(st.integers(1, 350)), 100 * place + 40))
    return found


def states(order: Iterable[Appends]) -> list[dict[int, list[int]]]:
    """The lists before the first transaction, and after each."""
    lists: dict[int, list[int]] = {}
    found = [{}]
    for appends in order:
        for key, number in appends:
            lists.setdefault(key, []).append(number)
        found.append({key: [*each] for key, each in lists.items()})
    return found


def texts(appends: Appends, before: dict[int, list[int]]) -> list[str]:
    """The list that each record of a transaction shows."""
    lists, found = {key: [*each] for key, each in before.items()}, []
    for key, number in appends:
        lists.setdefault(key, []).append(number)
        found.append(" ".join(map(str, lists[key])))
    return found


def faults_of(
    workload: list[Transaction], order: list[Appends], reads: list[dict[int, list[int]]], data: st.DataObject
) -> list[str]:
    """Returns the faults that a history finds if its three sources come in a random order, each in its own."""
    history, before = GrowingHistory(), states(order)
    sources = [
        [lambda each=each: history.confirm(each) for each in workload],
        [
            lambda place=place: history.add(order[place], texts(order[place], before[place]))
            for place in range(len(order))
        ],
        [lambda number=number: history.read(Read(number, 0, reads[number])) for number in range(len(reads))],
    ]
    while any(sources):
        data.draw(st.sampled_from([each for each in sources if each])).pop(0)()
    return history.faults + history.unsettled()


def order_of(workload: list[Transaction]) -> list[Appends]:
    return [each.appends for each in workload]


@given(workloads(), st.data())
def test_what_a_leader_did_has_no_fault(workload: list[Transaction], data: st.DataObject) -> None:
    order = order_of(workload)
    places = sorted(data.draw(st.lists(st.integers(0, len(order)))))
    assert faults_of(workload, order, [states(order)[place] for place in places], data) == []


@pytest.mark.parametrize("fault", ["lost", "repeated", "torn", "reordered"])
@given(workload=workloads(), data=st.data())
def test_a_fault_of_the_topic_is_found(fault: str, workload: list[Transaction], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(workload) - 2))
    if fault == "reordered":  # no order of two that overlapped may be wrong
        workload[at + 1] = replace(workload[at + 1], begun=100 * at + 50)
    order = order_of(workload)
    before, found, following, after = order[:at], order[at], order[at + 1], order[at + 2 :]
    planted = {
        "lost": [*before, following, *after],
        "repeated": [*before, found, found, following, *after],
        "torn": [*before, (*found[:-1], (99, 1000)), following, *after],
        "reordered": [*before, following, found, *after],
    }
    assert faults_of(workload, planted[fault], [], data)


@given(workload=workloads(), data=st.data())
def test_a_state_that_the_leader_never_had_is_found(workload: list[Transaction], data: st.DataObject) -> None:
    order = order_of(workload)
    place = data.draw(st.integers(1, len(order)))
    wrong = states(order)[place]
    key = data.draw(st.sampled_from(sorted(wrong)))
    match data.draw(st.sampled_from(["shortened", "gone", "repeated"])):
        case "shortened" if len(workload[place - 1].appends) > 1 and key in dict(workload[place - 1].appends[:-1]):
            wrong[key] = wrong[key][:-1]
        case "gone" if len(wrong) > 1 and workload[place - 1].appends[-1][0] != key:
            del wrong[key]
        case _:
            wrong[key] = [*wrong[key], wrong[key][-1]]
    assert faults_of(workload, order, [wrong], data)


@given(workload=workloads(), data=st.data())
def test_a_state_older_than_one_before_is_found(workload: list[Transaction], data: st.DataObject) -> None:
    order = order_of(workload)
    place = data.draw(st.integers(2, len(order)))
    assert faults_of(workload, order, [states(order)[place], states(order)[data.draw(st.integers(1, place - 1))]], data)


def test_a_record_that_shows_another_list_is_found() -> None:
    history = GrowingHistory()
    history.add(((1, 1),), ["1"])
    history.add(((1, 2),), ["2"])
    assert history.faults == ["the record of number 2 has another list 1: 2"]


def test_finished_lists_are_not_appended_to() -> None:
    history = GrowingHistory()
    history.add(((1, 1), (2, 2)), ["1", "2"])
    history.drop(2)
    history.add(((2, 3),), ["2 3"])
    assert history.faults == []
    assert history.numbers(1) == []
    history.add(((1, 4),), ["1 4"])
    assert history.faults == ["number 4 was appended to list 1, which was finished before"]


def test_growth_and_percentiles() -> None:
    assert growth([(0, 5), (1, 7), (2, 9)]) == 2
    assert growth([(3, 5)]) == 0
    buckets = [(0.1, 50), (0.2, 99), (0.5, 100), (float("inf"), 100)]
    assert percentile_of(buckets, 0.99) == 0.2
    assert percentile_of(buckets, 0.25) == 0.05
    assert percentile_of([(0.1, 0), (float("inf"), 10)], 0.5) == 0.1
    assert percentile_of([], 0.5) == percentile_of([(1, 0)], 0.5) == 0
