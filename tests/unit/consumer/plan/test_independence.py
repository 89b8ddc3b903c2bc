"""What batches that are independent have in common: in either order, and at once, they leave the same tables."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, independent, plan, row_operations
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.record import Record, Uri
from tests.unit.consumer.plan.test_planner import record

KEYED = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)})
RELATED = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)}, related=True)
T, U = Uri("srv", "db", "t"), Uri("srv", "db", "u")


def does(*records: Record, shape: TableSchema = KEYED) -> dict[Uri, str] | None:
    def shape_of(_: Uri) -> TableSchema:
        return shape

    return row_operations(plan(records, schema=shape_of), shape_of)


def test_tables_whose_rows_only_come_or_only_go() -> None:
    assert does(record(1, "Add"), record(2, "Delete", "u"), record(3, "Add")) == {T: "Add", U: "Delete"}
    assert does(record(1, "Update")) is None
    assert does(record(1, "Add"), record(1, "Delete")) is None  # comes and goes: it must not be there before
    assert does() is None


def test_foreign_keys_have_an_order_unless_they_do_nothing() -> None:
    assert does(record(1, "Add"), shape=RELATED) is None
    assert does(record(1, "Add", flags=NO_FOREIGN_KEY_CHECKS), shape=RELATED) == {T: "Add"}


def test_a_table_that_is_another_one_on_the_follower_has_an_order() -> None:
    assert does(record(1, "Add"), shape=TableSchema(frozenset("ab"), unique_keys=KEYED.unique_keys)) is None


def test_rows_without_a_key_have_an_order_where_the_follower_may_number_them() -> None:
    keyless = replace(record(1, "Add"), key=None)
    assert does(keyless, shape=TableSchema(frozenset("a"))) == {T: "Add"}
    assert does(keyless, shape=TableSchema(frozenset(["a", "number"]))) is None


def test_the_same_table_must_see_the_same_kind() -> None:
    assert independent({T: "Add"}, {T: "Add", U: "Delete"})
    assert independent({T: "Add"}, {U: "Delete"})
    assert not independent({T: "Add"}, {T: "Delete"})


# A history of one table: nothing comes twice, nothing goes that is not there.
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=30), st.integers(0, 30))
def test_independent_batches_of_a_history_touch_different_rows(wanted: list[tuple[bool, int]], cut: int) -> None:
    there: set[int] = set()
    records = []
    for comes, key in wanted:
        if comes == (key not in there):
            there ^= {key}
            records.append(record(key, "Add" if comes else "Delete"))
    one, other = records[:cut], records[cut:]
    first, second = does(*one), does(*other)
    if first and second and independent(first, second):
        assert {each.sequence for each in one}.isdisjoint(each.sequence for each in other)


def test_each_table_is_judged_by_its_own_schema() -> None:
    schemas = {T: KEYED, U: RELATED}
    steps = plan([record(1, "Add"), record(2, "Add", "u")], schema=schemas.__getitem__)
    assert row_operations(steps, schemas.__getitem__) is None
    assert row_operations(steps[:1], schemas.__getitem__) is None
    assert row_operations(steps[1:], schemas.__getitem__) == {T: "Add"}
