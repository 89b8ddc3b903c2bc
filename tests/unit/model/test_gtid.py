"""GTID sets: MySQL's text form, membership and inclusion."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import UserError
from cdc.model.gtid import GtidSet, executed_before, given_gtid, is_gtid, lacking, mariadb_position

A = "11111111-1111-1111-1111-111111111111"
B = "22222222-2222-2222-2222-222222222222"

gtids = st.lists(st.tuples(st.sampled_from([A, B, f"{A}:blue"]), st.integers(1, 60)), max_size=80)


@given(gtids)
def test_a_set_holds_what_was_added_and_survives_its_text(added: list[tuple[str, int]]) -> None:
    result = GtidSet()
    for source, number in added:
        result.add(f"{source}:{number}")
    for source in (A, B, f"{A}:blue"):
        for number in range(1, 62):
            assert (f"{source}:{number}" in result) == ((source, number) in added)
    assert GtidSet.parse(str(result)) == result


@given(gtids, gtids)
def test_subset_is_membership_of_each(left: list[tuple[str, int]], right: list[tuple[str, int]]) -> None:
    small, large = GtidSet(), GtidSet()
    for source, number in left:
        small.add(f"{source}:{number}")
    for source, number in right:
        large.add(f"{source}:{number}")
    assert small.issubset(large) == (set(left) <= set(right))


intervals = st.lists(
    st.tuples(st.sampled_from([A, B, f"{A}:blue"]), st.integers(1, 60), st.integers(0, 9)), max_size=40
)


@given(intervals, intervals)
def test_sets_read_from_text_are_those_of_their_numbers(
    left: list[tuple[str, int, int]], right: list[tuple[str, int, int]]
) -> None:
    def parsed(items: list[tuple[str, int, int]]) -> GtidSet:
        return GtidSet.parse(",".join(f"{source}:{low}-{low + more}" for source, low, more in items))

    def numbers(items: list[tuple[str, int, int]]) -> set[tuple[str, int]]:
        return {(source, number) for source, low, more in items for number in range(low, low + more + 1)}

    assert parsed(left).issubset(parsed(right)) == (numbers(left) <= numbers(right))
    missing = parsed(left).minus(parsed(right))
    assert str(missing) == str(GtidSet.parse(str(missing)))
    for source in (A, B, f"{A}:blue"):
        for number in range(1, 71):
            assert (f"{source}:{number}" in missing) == ((source, number) in numbers(left) - numbers(right))
    assert bool(missing) == bool(numbers(left) - numbers(right))
    one_by_one = GtidSet()
    for source, number in sorted(numbers(left)):
        one_by_one.add(f"{source}:{number}")
    assert parsed(left) == one_by_one


def test_a_set_with_many_gaps_is_read_and_compared_at_once() -> None:
    """A quadratic way takes many minutes for so many."""
    text = A + ":" + ":".join(str(number) for number in range(1, 100_001, 2))
    found = GtidSet.parse(text)
    assert found.issubset(found)
    assert str(found) == text


def test_parse_reads_what_the_server_shows() -> None:
    shown = f"{A.upper()}:1-5:7:blue:1-2,\n{B}:9"
    assert str(GtidSet.parse(shown)) == f"{A}:1-5:7,{A}:blue:1-2,{B}:9"


@pytest.mark.parametrize("text", ["x", f"{A}", f"{A}:0", f"{A}:5-3", f"{A}:1-b", f"{A}:1-5:tag", f"{A}:a:b:1"])
def test_parse_refuses_anything_else(text: str) -> None:
    with pytest.raises(UserError):
        GtidSet.parse(text)


@given(gtids)
def test_the_form_for_the_server_says_the_same(added: list[tuple[str, int]]) -> None:
    result = GtidSet()
    for source, number in added:
        result.add(f"{source}:{number}")
    assert decoded(result.encode()) == str(result)


def decoded(data: bytes) -> str:
    """The text of an encoded set (MySQL source, Gtid_set::add_gtid_encoding)."""
    tagged = data[7] == 1
    count = int.from_bytes(data[1:7] if tagged else data[:8], "little")
    at, parts = 8, []
    for _ in range(count):
        name, at = str(uuid.UUID(bytes=data[at : at + 16])), at + 16
        if tagged:
            length = data[at] >> 1
            name, at = name + (":" + data[at + 1 : at + 1 + length].decode() if length else ""), at + 1 + length
        intervals, at = int.from_bytes(data[at : at + 8], "little"), at + 8
        for _ in range(intervals):
            first, after = (int.from_bytes(data[at + i : at + i + 8], "little") for i in (0, 8))
            name, at = f"{name}:{first}-{after - 1}" if after - 1 > first else f"{name}:{first}", at + 16
        parts.append(name)
    assert at == len(data)
    return ",".join(parts)


@given(gtids, st.sampled_from([A, B, f"{A}:blue"]), st.integers(1, 61))
def test_without_takes_out_one(added: list[tuple[str, int]], source: str, number: int) -> None:
    result = GtidSet()
    for name, gno in added:
        result.add(f"{name}:{gno}")
    less = result.without(f"{source}:{number}")
    assert f"{source}:{number}" not in less
    less.add(f"{source}:{number}")
    result.add(f"{source}:{number}")
    assert less == result


def test_gtids_of_mariadb_are_numbers_of_a_domain_and_a_server() -> None:
    held = GtidSet.parse("0-1:1-5,3-11:2")
    for gtid in ("0-1-6", "0-7-7"):
        assert is_gtid(gtid)
        held.add(gtid)
    assert str(held) == "0-1:1-6,0-7:7,3-11:2"
    assert "0-1-3" in held
    assert "0-7-6" not in held
    assert GtidSet.parse(str(held)) == held
    assert str(held.without("0-1-3")) == "0-1:1-2:4-6,0-7:7,3-11:2"
    assert not is_gtid("0-1")
    assert not is_gtid("0-1-0")


def test_a_gtid_position_of_mariadb_lists_the_last_of_each_domain() -> None:
    assert mariadb_position(GtidSet.parse("0-1:1-6,0-7:1-9,3-11:2")) == "0-7-9,3-11-2"
    assert mariadb_position(executed_before("3-11-2, 0-7-9")) == "0-7-9,3-11-2"
    assert mariadb_position(GtidSet()) == ""


@pytest.mark.parametrize(
    ("needed", "held", "missing"),
    [
        ("0-1:1-5", "0-7:1-9", ""),  # of the same domain, whichever server logged it
        ("0-1:1-9,3-1:1-2", "0-7:1-9", "3-1:1-2"),
        ("0-1:1-10", "0-7:1-9", "0-1:1-10"),
        (f"{A}:1-5", f"{B}:1-9", f"{A}:1-5"),
    ],
)
def test_what_a_copy_lacks(needed: str, held: str, missing: str) -> None:
    assert str(lacking(GtidSet.parse(needed), GtidSet.parse(held))) == missing


@pytest.mark.parametrize(
    ("text", "gtid"), [("0-1-12", "0-1-12"), (f"{A}:3", f"{A}:3"), ("2026-11-12", None), ("12:30", None)]
)
def test_a_date_is_no_gtid(text: str, gtid: str | None) -> None:
    assert given_gtid(text) == gtid
