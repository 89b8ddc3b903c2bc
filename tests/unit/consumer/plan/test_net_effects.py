"""The net effect on each row: what a dict of rows, changed one by one, says of it."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.consumer.plan.net_effects import Image, NetEffect, as_left, net_effects, net_images, row_identity
from cdc.model.record import Record, Row
from tests.unit.consumer.plan.test_planner import record


def image(key: int, value: int) -> Image:
    return [{"SignedInteger": key}, {"SignedInteger": value}]


def changes(*rows: tuple[Image | None, Image | None]) -> list[Record]:
    """A record for each row."""
    return [replace(record(n, "Update", width=2), rows=(Row(*row),)) for n, row in enumerate(rows)]


def effects(records: list[Record]) -> list[NetEffect] | None:
    found = net_effects(records, row_identity(records[0]))
    return None if found is None else list(found)


def test_all_rows_of_a_record_count() -> None:
    """Those after one whose key stays, too."""
    (one,) = changes((image(1, 1), image(1, 2)))
    rows = [Row(image(key, 1), image(key, 2)) for key in (1, 2, 3)]
    found = effects([replace(one, rows=tuple(rows))])
    assert found is not None
    assert [after for _, _, after, _ in found] == [row.after for row in rows]


def deleted(*records: Record) -> list[Image | None]:
    return [row.before for each in as_left(records) if each.operation == "Delete" for row in each.rows]


@pytest.mark.parametrize("key", [("a",), None])
def test_a_row_that_refers_to_itself_is_deleted_as_it_is_by_then(key: tuple[str, ...] | None) -> None:
    """The leader logs what SET NULL makes of it, and then that it is deleted as it was before."""
    row, left = image(4, 4), image(4, 0)
    changed, gone, added = changes((row, left), (row, None), (None, row))
    changed, gone, added = (replace(each, key=key, transaction="t") for each in (changed, gone, added))
    changed, gone = replace(changed, flags=0x12), replace(gone, operation="Delete", flags=0x10)
    assert deleted(changed, gone) == [left]
    assert deleted(changed, replace(added, operation="Add"), gone) == [row]
    assert deleted(changed, replace(gone, transaction="u")) == [row]
    assert deleted(replace(changed, flags=0x10), gone) == [row]


def test_a_row_that_goes_with_one_that_goes_with_it_is_deleted_once() -> None:
    one, other = image(1, 2), image(2, 1)
    (gone,) = (replace(each, operation="Delete", transaction="t", flags=0x12) for each in changes((other, None)))
    gone = replace(gone, rows=(Row(other, None), Row(one, None), Row(one, None)))
    again = replace(gone, operation="Add", rows=(Row(None, one),))
    assert deleted(gone) == [other, one]
    assert deleted(gone, again, replace(gone, rows=(Row(one, None),))) == [other, one, one]
    assert [each.operation for each in as_left([gone, again, replace(gone, rows=(Row(other, None),))])] == [
        "Delete",
        "Add",
    ]
    keyless = replace(gone, key=None)
    assert deleted(keyless) == [other, one, one]


def test_rows_that_no_foreign_key_touches_are_left_alone() -> None:
    records = [replace(each, operation="Delete", flags=0x10) for each in changes((image(1, 1), None))]
    assert as_left(records) is records
    records = [replace(each, operation="Add", flags=0x12) for each in changes((None, image(1, 1)))]
    assert as_left(records) is records


IMAGES = st.builds(image, st.integers(0, 2), st.integers(0, 2))
WISHES = st.tuples(st.none() | IMAGES, st.none() | IMAGES).filter(any)


@given(st.lists(WISHES, min_size=1, max_size=8), st.integers(1, 3))
def test_effects_are_those_of_the_rows_changed_one_by_one(
    rows: list[tuple[Image | None, Image | None]], size: int
) -> None:
    records = [
        replace(each, rows=tuple(Row(*row) for row in rows[n * size : n * size + size]))
        for n, each in enumerate(changes(*rows[::size]))
    ]
    first: dict[int, Image | None] = {}
    now: dict[int, Image | None] = {}
    newest: dict[int, tuple[Record, Image]] = {}
    contradicts = False
    for each in records:
        for before, after in each.rows:
            if before is not None:
                key = before[0]["SignedInteger"]
                contradicts = contradicts or now.get(key, before) is None
                first.setdefault(key, before)
                now[key], newest[key] = None, (each, before)
            if after is not None:
                key = after[0]["SignedInteger"]
                contradicts = contradicts or now.get(key) is not None
                first.setdefault(key, None)
                now[key], newest[key] = after, (each, after)
    expected = [(newest[key][0], first[key], now[key], newest[key][1]) for key in now]
    found = effects(records)
    if contradicts:
        assert found is None
    else:
        assert found is not None
        assert sorted(found, key=lambda each: each[0].sequence * 10 + each[3][0]["SignedInteger"]) == sorted(
            expected, key=lambda each: each[0].sequence * 10 + each[3][0]["SignedInteger"]
        )


@pytest.mark.parametrize(
    "rows",
    [
        [(None, image(1, 1)), (None, image(1, 2))],
        [(image(1, 1), None), (image(1, 1), None)],
        [(image(1, 1), None), (image(1, 1), image(1, 2))],
        [(image(1, 1), image(2, 1)), (None, image(2, 2))],
        [(image(2, 1), image(2, 2)), (image(1, 1), image(2, 3))],
    ],
)
def test_rows_that_contradict_one_another_have_no_net_effect(rows: list[tuple[Image | None, Image | None]]) -> None:
    assert effects(changes(*rows)) is None


DAY = {"Date": {"year": 2024, "month": 2, "day": 9}}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"Double": 0.0}, {"Double": -0.0}, False),
        ({"Double": 1.0}, {"Double": 1.0}, True),
        ({"SignedInteger": 1}, {"SignedInteger": 1}, True),
        ({"SignedInteger": 1}, {"SignedInteger": 2}, False),
        ({"String": "a"}, {"String": "A"}, False),
        ({"Decimal": "1.0"}, {"Decimal": "1.00"}, False),
        (DAY, {"Date": dict(DAY["Date"])}, True),
        ({"Enum": "1"}, {"Enum": 1}, False),
        ({"Blob": "YQ=="}, {"String": "YQ=="}, False),
    ],
)
@pytest.mark.parametrize("beside", [[], [{"String": "same"}]])
def test_rows_are_told_apart_by_the_exact_values_of_their_keys(
    one: Any, other: Any, same: bool, beside: list[Any]
) -> None:
    width = 1 + len(beside)
    identity = row_identity(replace(record(0, "Add", width=3), key=tuple("abc"[:width])))
    first, second = [one, *beside, {"String": "x"}], [other, *beside, {"String": "y"}]
    assert (identity(first) == identity(second)) is same
    assert len({identity(first), identity(second)}) == (1 if same else 2)
    if beside:
        last = row_identity(replace(record(0, "Add", width=3), key=("c", "a")))
        assert last([one, "Null", {"String": "x"}]) != last([one, "Null", {"String": "y"}])


@pytest.mark.parametrize("key", [("a",), ("a", "b")])
def test_an_empty_value_identifies_nothing(key: tuple[str, ...]) -> None:
    identity = row_identity(replace(record(0, "Add", width=2), key=key))
    with pytest.raises(ValueError, match=r"^not a value of a record: \{\}$"):
        identity([{}, {}])
    with pytest.raises(AttributeError):
        identity(["Null", "Null"])


@settings(max_examples=500)
@given(st.lists(WISHES, max_size=12), st.lists(IMAGES, max_size=6), st.integers(1, 4))
def test_images_that_go_and_come_are_those_of_the_rows_changed_one_by_one(
    rows: list[tuple[Image | None, Image | None]], there: list[Image], size: int
) -> None:
    records = [
        replace(record(n, "Update", width=2), rows=tuple(Row(*row) for row in rows[n * size : n * size + size]))
        for n in range(-(-len(rows) // size))
    ]
    table, missing = Counter(map(str, there)), False
    for before, after in rows:
        if before is not None:
            missing = missing or not table[str(before)]
            table[str(before)] -= 1
        if after is not None:
            table[str(after)] += 1
    gone, come = net_images(records)
    # A row is missing at some time if and only if one that goes is missing before.
    assert missing == bool(Counter(str(each) for _, each in gone) - Counter(map(str, there)))
    if not missing:
        found = Counter(map(str, there)) - Counter(str(each) for _, each in gone)
        assert found + Counter(str(each) for _, each in come) == +table
    assert all(any(image in row for row in each.rows) for each, image in [*gone, *come])


def test_an_image_that_goes_and_comes_back_is_looked_for() -> None:
    assert net_images(changes((image(1, 1), None), (None, image(1, 1)))) != ([], [])
    assert net_images(changes((None, image(1, 1)), (image(1, 1), None))) == ([], [])


@pytest.mark.parametrize(("one", "other"), [("Null", {"String": "Null"}), ({"Double": 0.0}, {"Double": -0.0})])
def test_images_are_told_apart_by_all_their_values(one: Any, other: Any) -> None:
    gone, come = net_images(changes((None, [one, "Null"]), ([other, "Null"], None)))
    assert ([each for _, each in gone], [each for _, each in come]) == ([[other, "Null"]], [[one, "Null"]])
