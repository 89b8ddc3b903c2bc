"""What batches that are independent have in common: in either order, and at once, they leave the same tables."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.plan.footprint import Footprint, Span, Touched, beside, chunk_footprint, footprint, independent
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, RenderedChanges, Step, plan
from cdc.consumer.plan.rendered_rows import RecordParser, RenderedRows
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.record import KeyRange, Record, Row, Uri
from cdc.model.values import Value
from tests.unit.consumer.plan.test_planner import record

KEYED = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)})
RELATED = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)}, related=True)
TWO_KEYS = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),), "k": (KeyPart("a"),)})
T, U = Uri("srv", "db", "t"), Uri("srv", "db", "u")


def does(*records: Record, shape: TableSchema = KEYED, by_key: bool = False) -> Footprint | None:
    def shape_of(_: Uri) -> TableSchema:
        return shape

    return footprint(plan(records, schema=shape_of), shape_of, by_key=by_key)


def kinds(*records: Record, shape: TableSchema = KEYED) -> dict[Uri, str | None] | None:
    found = does(*records, shape=shape)
    return None if found is None else {uri: touched.kind for uri, touched in found.items()}


def test_tables_whose_rows_only_come_or_only_go() -> None:
    assert kinds(record(1, "Add"), record(2, "Delete", "u"), record(3, "Add")) == {T: "Add", U: "Delete"}
    assert kinds(record(1, "Update")) is None
    assert kinds(record(1, "Add"), record(1, "Delete")) is None  # comes and goes: it must not be there before
    assert kinds() == {}


def test_foreign_keys_have_an_order_unless_they_do_nothing() -> None:
    unchecked = record(1, "Add", flags=NO_FOREIGN_KEY_CHECKS)
    assert kinds(record(1, "Add"), shape=RELATED) is None
    assert kinds(unchecked, shape=RELATED) == {T: "Add"}
    assert does(record(1, "Add"), shape=RELATED, by_key=True) is None
    assert does(unchecked, shape=RELATED, by_key=True) == {T: Touched("Add", frozenset({(1,)}))}


def test_a_table_that_is_another_one_on_the_follower_has_an_order() -> None:
    other = TableSchema(frozenset("ab"), unique_keys=KEYED.unique_keys)
    assert does(record(1, "Add"), shape=other, by_key=True) is None


def test_rows_without_a_key_have_an_order_where_the_follower_may_number_them() -> None:
    keyless = replace(record(1, "Add"), key=None)
    assert does(keyless, shape=TableSchema(frozenset("a")), by_key=True) == {T: Touched("Add")}
    assert does(keyless, shape=TableSchema(frozenset(["a", "number"])), by_key=True) is None


def test_the_same_table_must_see_the_same_kind_or_other_keys() -> None:
    add, delete = Touched("Add"), Touched("Delete")
    assert independent({T: add}, {T: add, U: delete})
    assert independent({T: add}, {U: delete})
    assert not independent({T: add}, {T: delete})
    one, other = Touched("Add", frozenset({(1,)})), Touched(None, frozenset({(2,)}))
    assert independent({T: one}, {T: other})
    assert not independent({T: one}, {T: Touched(None, frozenset({(1,), (2,)}))})
    assert not independent({T: add}, {T: other})


def test_keys_tell_rows_apart_in_tables_with_one_key_of_integers() -> None:
    changed = [record(1, "Add"), record(2, "Delete"), record(3, "Update")]
    assert does(*changed, by_key=True) == {T: Touched(None, frozenset({(1,), (2,), (3,)}))}
    assert does(*changed, by_key=False) is None
    assert does(*changed, shape=TWO_KEYS, by_key=True) is None
    text = replace(record(1, "Update"), rows=(Row([{"String": "a"}], [{"String": "a"}]),))
    assert does(text, by_key=True) is None
    for content in ("1", True, None):
        odd = replace(record(1, "Update"), rows=(Row([{"SignedInteger": content}], [{"SignedInteger": 2}]),))
        assert does(cast("Record", odd), by_key=True) is None


def test_rows_are_not_parsed_again_for_their_keys() -> None:
    class Parser(RecordParser):
        def values(self, message: bytes) -> Sequence[Row]:
            raise AssertionError("parsed again")

    added = record(1, "Add")
    rows: Any = RenderedRows(added, b"(1)", [frozenset({"SignedInteger"})], parser=Parser(), message=b"", kept=False)
    step = Step("Add", RenderedChanges([replace(added, rows=rows)]))
    assert footprint([step], lambda _: KEYED, by_key=True) == {T: Touched("Add")}


# A history of one table: nothing comes twice, nothing goes that is not there.
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=30), st.integers(0, 30), st.booleans())
def test_independent_batches_of_a_history_touch_different_rows(
    wanted: list[tuple[bool, int]], cut: int, by_key: bool
) -> None:
    there: set[int] = set()
    records = []
    for comes, key in wanted:
        if comes == (key not in there):
            there ^= {key}
            records.append(record(key, "Add" if comes else "Delete"))
    one, other = records[:cut], records[cut:]
    first, second = does(*one, by_key=by_key), does(*other, by_key=by_key)
    if first is not None and second is not None and independent(first, second):
        assert {each.sequence for each in one}.isdisjoint(each.sequence for each in other)


def test_each_table_is_judged_by_its_own_schema() -> None:
    schemas = {T: KEYED, U: RELATED}
    steps = plan([record(1, "Add"), record(2, "Add", "u")], schema=schemas.__getitem__)
    assert footprint(steps, schemas.__getitem__, by_key=False) is None
    assert footprint(steps[:1], schemas.__getitem__, by_key=False) is None
    assert footprint(steps[1:], schemas.__getitem__, by_key=False) == {T: Touched("Add")}


def number(at: int | None) -> list[Value] | None:
    return None if at is None else [{"SignedInteger": at}]


def chunk(after: list[Value] | None, through: list[Value] | None) -> Record:
    return replace(record(1, "Copy"), range=KeyRange(after, through, (None,)))


def span(after: int | None, through: int | None) -> Touched:
    found = chunk_footprint(chunk(number(after), number(through)), KEYED)
    assert found is not None
    return found[T]


def test_a_chunk_changes_the_rows_of_its_range() -> None:
    assert span(1, 5) == Touched(span=Span((1,), (5,), numbers=True))
    assert span(None, None) == Touched(span=Span(None, None, numbers=True))
    assert chunk_footprint(chunk(number(1), number(5)), TWO_KEYS) is None
    whole = chunk(number(1), number(5))
    assert chunk_footprint(replace(whole, range=KeyRange(None, [], piece=0)), KEYED) is None
    assert chunk_footprint(replace(whole, range=KeyRange(None, None, keys=([{"SignedInteger": 1}],))), KEYED) is None
    assert chunk_footprint(record(1, "Add"), KEYED) is None
    text: list[Value] = [{"String": "it's"}]
    assert chunk_footprint(chunk(None, text), KEYED) == {T: Touched(span=Span(None, ("'it''s'",), numbers=False))}
    with pytest.raises(ValueError, match="String"):
        chunk_footprint(chunk(None, [{"String": 1}]), KEYED)


ENDS = st.one_of(st.none(), st.integers(-3, 3))
KEYS = st.frozensets(st.integers(-4, 4).map(lambda key: (key,)), max_size=4)


def within(touched: Touched) -> set[int]:
    """The keys from -4 to 4 that a batch may change."""
    if touched.keys is not None:
        return {key for (key,) in touched.keys}
    after, through, _ = touched.span or Span(None, None, numbers=True)
    return {key for key in range(-4, 5) if (after is None or (key,) > after) and (through is None or (key,) <= through)}


@given(st.lists(st.one_of(KEYS.map(lambda keys: Touched(keys=keys)), st.builds(span, ENDS, ENDS)), max_size=4))
def test_batches_beside_each_other_change_different_rows(batches: list[Touched]) -> None:
    *before, new = [{T: touched} for touched in batches] or [{}]
    if beside(before, new):
        for one in before:
            assert within(one[T]).isdisjoint(within(new[T]))


def test_adjacent_ranges_are_beside_each_other_whatever_their_type() -> None:
    def texts(after: str, through: str | None) -> Footprint:
        return {T: Touched(span=Span((after,), None if through is None else (through,), numbers=False))}

    one, two, three, last = texts("'a'", "'b'"), texts("'b'", "'c'"), texts("'c'", "'d'"), texts("'d'", None)
    assert beside([one], two)
    assert beside([one, two, three], last)
    assert beside([one, {}, two], three)
    # Of texts only equality is known.
    assert not beside([one], three)
    assert not beside([one, three], last)
    assert not beside([last], one)
    assert not beside([{T: Touched(keys=frozenset({(1,)}))}], one)
    assert beside([{T: Touched(keys=frozenset())}], one)
