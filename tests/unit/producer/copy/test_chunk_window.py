"""A chunk that was read while its rows changed, brought to the state after all of these changes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.producer.copy import chunk_request
from cdc.producer.copy.chunk_request import Overrun, Window

Table = dict[int, int]
Change = tuple[str, str]


def _cols(key: int, value: int) -> list[dict[str, int]]:
    return [{"SignedInteger": key}, {"SignedInteger": value}]


def _row(key: int, value: int) -> str:
    return json.dumps({"cols": _cols(key, value)}, separators=(",", ":"))


def _key(number: int) -> list[str]:
    return [f'{{"SignedInteger":{number}}}']


def _changed(table: Table, key: int, new_key: int, value: int) -> Change | None:
    """Change the row, or move it to another key, as the leader can; None where it can't."""
    if key not in table:
        table[key] = value
        return "Add", _row(key, value)
    if value == 0:
        return "Delete", _row(key, table.pop(key))
    if new_key != key and new_key in table:
        return None
    before = _cols(key, table.pop(key))
    table[new_key] = value
    return "Update", json.dumps({"before_cols": before, "after_cols": _cols(new_key, value)})


_KEYS = st.integers(0, 5)
_STEPS = st.lists(st.tuples(_KEYS, _KEYS, st.integers(0, 3)), max_size=12)


@given(start=st.dictionaries(_KEYS, st.integers(1, 3)), steps=_STEPS, data=st.data())
def test_whatever_the_select_has_seen_the_chunk_is_as_of_the_end(
    start: Table, steps: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    table, states, noted = dict(start), [dict(start)], Window()
    for step in steps:
        change = _changed(table, *step)
        if change is not None:
            noted.note(change[0], [change[1].encode()])
            states.append(dict(table))
    seen = states[data.draw(st.integers(0, len(states) - 1))]
    low, high = data.draw(st.tuples(_KEYS, _KEYS))
    bounds = data.draw(st.sampled_from([(None, None), (_key(low), _key(high))]))
    rows = noted.apply([_row(*item) for item in seen.items() if low < item[0] <= high], [0], bounds)
    found = {row["cols"][0]["SignedInteger"]: row["cols"][1]["SignedInteger"] for row in map(json.loads, rows)}
    assert len(found) == len(rows)  # no row is named twice
    assert all(table[key] == value for key, value in found.items())  # each is as it is now
    assert {key for key in table if low < key <= high} <= found.keys()  # and all of the range are there
    if bounds != (None, None) and low <= high:
        assert all(low < key <= high for key in found)  # and no others, which the follower has already


@given(
    start=st.dictionaries(_KEYS, st.integers(1, 3)),
    changed=st.lists(st.tuples(_KEYS, st.integers(1, 3)), max_size=8), data=st.data(),
)  # fmt: skip
def test_rows_of_other_ranges_that_were_only_updated_are_in_no_chunk_whatever_the_order_of_keys(
    start: Table, changed: list[tuple[int, int]], data: st.DataObject
) -> None:
    read = data.draw(st.lists(st.sampled_from(sorted(start)), unique=True)) if start else []
    table, noted = dict(start), Window()
    for key, value in changed:
        if key in table:
            change = _changed(table, key, key, value)
            assert change is not None
            noted.note(change[0], [change[1].encode()])
    rows = noted.apply([_row(key, start[key]) for key in read], key=[0])
    assert sorted(rows) == sorted(_row(key, table[key]) for key in read)


def test_a_key_is_compared_with_the_bounds_by_its_numbers_only() -> None:
    noted = Window()
    texts = [f'{{"cols":[{key}]}}' for key in ('{"SignedInteger":9}', '{"SignedInteger":10}', '{"String":"9"}')]
    for text in texts:
        noted.note("Add", [text.encode()])
    assert noted.apply([], [0], (_key(9), _key(10))) == texts[1:]
    assert noted.apply([], [0], (_key(9), None)) == texts[1:]
    assert noted.apply([], [0], (None, _key(9))) == [texts[0], texts[2]]
    assert noted.apply([], [0], (['{"String":"a"}'], ['{"String":"b"}'])) == texts


def test_a_document_in_a_changed_row_keeps_its_numbers() -> None:
    row = '{"cols":[{"SignedInteger":1},{"Json":{"a":123456789012345678901234567890,"b":1.0,"c":1e+16,"d":"é"}}]}'
    noted = Window()
    noted.note("Add", [row.encode()])
    assert noted.apply([_row(1, 1)], key=[0]) == [row]


def test_more_changes_than_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_request, "_LIMIT", 100)
    noted = Window()
    for _ in range(3):
        noted.note("Add", [_row(1, 1).encode()])
    with pytest.raises(Overrun):
        noted.apply([], key=[0])


@given(st.lists(st.tuples(st.text(), st.integers(), st.text()), max_size=5, unique_by=lambda row: row[1:]), st.data())
def test_a_key_in_any_columns_is_found(rows: list[tuple[str, int, str]], data: st.DataObject) -> None:
    def text(row: tuple[str, int, str]) -> str:
        cols = [{"String": row[0]}, {"SignedInteger": row[1]}, {"String": row[2]}]
        return json.dumps({"cols": cols}, separators=(",", ":"), ensure_ascii=data.draw(st.booleans()))

    gone = data.draw(st.lists(st.sampled_from(rows), unique=True)) if rows else []
    noted = Window()
    for row in gone:
        noted.note("Delete", [text(row).encode()])
    left = noted.apply([text(row) for row in rows], key=[2, 1])
    found = [tuple(next(iter(value.values())) for value in json.loads(row)["cols"]) for row in left]
    assert found == [row for row in rows if row not in gone]


_BRACES = st.sampled_from(["", "}", '{"SignedInteger":1}', '}},{"'])
_OF_TWO = st.tuples(st.integers(-11, 111), st.integers(-11, 111), _BRACES)


@given(st.lists(_OF_TWO, max_size=8, unique_by=lambda row: row[:2]), st.data())
def test_a_key_of_integers_at_the_beginning_of_a_row_is_found(
    rows: list[tuple[int, int, str]], data: st.DataObject
) -> None:
    def text(row: tuple[int, int, str]) -> str:
        cols = [{"SignedInteger": row[0]}, {"UnsignedInteger": row[1]}, {"String": row[2]}]
        return json.dumps({"cols": cols}, separators=(",", ":"))

    gone = data.draw(st.lists(st.one_of(st.sampled_from(rows), _OF_TWO), max_size=5)) if rows else []
    noted = Window()
    for row in gone:
        noted.note("Delete", [text(row).encode()])
    keys = {row[:2] for row in gone}
    assert noted.apply([text(row) for row in rows], key=[0, 1]) == [text(row) for row in rows if row[:2] not in keys]
