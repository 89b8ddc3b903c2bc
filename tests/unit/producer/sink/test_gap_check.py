"""The newest records are all there, once: what brokers have lost before them ends a producer's start."""

from collections.abc import Iterable

import pytest

from cdc.errors import PromiseError
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from cdc.producer.sink.gap_check import entry_before, require_each, require_no_gap


def entry(following: int, counts: dict[str, int]) -> Entry:
    return Entry(following, Position("binlog.000001", 4), "", "u", counts=counts)


def checked(places: Iterable[tuple[int, int, int]], *, is_cut: bool = False) -> str:
    """The error for sequences 10 to 13, of which the topic has ``places``, in the order of their offsets."""
    before, now = entry(10, {"t/0": 10}), entry(14, {"t/0": 14})
    newest_first = [*places][::-1]
    try:
        require_no_gap(before, now, places=lambda _: iter(newest_first), is_cut=lambda _: is_cut)
    except PromiseError as error:
        assert error.code == "CDC-TOPIC-RECORDS-LOST"
        return str(error)
    return ""


def test_all_records_are_there_also_in_fragments() -> None:
    assert checked([(9, 0, 1), (10, 0, 1), (11, 0, 2), (11, 1, 2), (12, 0, 1), (13, 0, 1), (14, 0, 1)]) == ""


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_lost_record_or_fragment_is_reported(lost: int) -> None:
    there = [(10, 0, 1), (11, 0, 2), (11, 1, 2), (12, 0, 1)]
    assert "readers see 3 of 4 records from sequence 10 to 13" in checked(
        [*there[:lost], *there[lost + 1 :], (13, 0, 1)]
    )


def test_a_record_that_is_there_twice_is_reported() -> None:
    there = [(10, 0, 1), (11, 0, 1), (12, 0, 1), (13, 0, 1)]
    assert "readers see another record before record 12, or that record twice" in checked([*there[:3], *there[2:]])
    assert "before record 10" in checked([*there[:3], *there])
    assert "before record 11" in checked([*there[:2], (11, 0, 2), (11, 1, 2), *there[2:]])


def test_a_record_that_is_in_two_partitions_is_reported() -> None:
    before, now = entry(10, {"t/0": 8, "u/0": 2}), entry(14, {"t/0": 10, "u/0": 4})
    logs = {("t", 0): [(12, 0, 1), (10, 0, 1)], ("u", 0): [(13, 0, 1), (12, 0, 1)]}
    with pytest.raises(PromiseError, match="readers see record 12 here and in another partition"):
        require_no_gap(before, now, places=lambda each: iter(logs[each]), is_cut=lambda _: True)


def test_what_retention_removed_is_not_lost() -> None:
    assert checked([(12, 0, 1), (13, 0, 1)], is_cut=True) == ""
    assert checked([(12, 0, 1), (13, 0, 1)]) != ""


def test_the_entry_before_counts_a_thousand_records_less() -> None:
    older = [entry(number, {"t/0": number}) for number in (5000, 4600, 4000, 3900, 10)]
    assert entry_before(entry(5000, {"t/0": 5000}), older) == older[2]
    assert entry_before(entry(5000, {"t/0": 5000}), older[:2]) == older[1]
    assert entry_before(entry(5000, {"t/0": 5000}), older[:1]) is None
    assert entry_before(None, older) is None


def test_a_short_stream_is_checked_from_its_beginning() -> None:
    found = entry_before(entry(900, {"t/0": 500, "u/0": 400}), [])
    assert found is not None
    assert (found.next_sequence, found.counts) == (0, {})


def test_counts_of_another_numbering_are_not_compared() -> None:
    assert entry_before(entry(5000, {"t/0": 4000, "u/0": 1000}), [entry(3000, {"t/0": 3000})]) is not None
    assert entry_before(entry(5000, {"t/0": 4000, "u/0": 900}), [entry(3000, {"t/0": 3000})]) is None


@pytest.mark.parametrize("missing", [10, 11, 12])
def test_a_record_that_is_missing_before_a_visible_one_is_reported(missing: int) -> None:
    there = {10, 11, 12, 13}
    require_each(10, there, "t")
    require_each(14, set(), "t")
    with pytest.raises(PromiseError, match=f"record {missing} is missing"):
        require_each(10, there - {missing}, "t")
