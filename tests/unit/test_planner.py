"""A plan keeps the leader's order and joins only neighbours of one kind."""

from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.planner import Step, plan
from cdc.position import Position
from cdc.record import Record, Row, Uri


def record(sequence: int, operation: str, table: str = "t", *, rows: int = 1, flags: int = 0, width: int = 1) -> Record:
    image = [{"SignedInteger": sequence}] * width
    row = Row(None if operation == "Add" else image, None if operation == "Delete" else image)
    return Record(
        uri=Uri("srv", "db", table),
        sequence=sequence,
        position=Position("binlog.000001", 4 + sequence),
        transaction=f"uuid:{sequence}",
        index=0,
        last=True,
        ts_us=0,
        operation=operation,
        columns=tuple("abc"[:width]),
        key=("a",),
        rows=(row,) * rows,
        flags=flags,
    )


def shape(steps: list[Step]) -> list[tuple[str, str | None, int]]:
    return [(step.record.operation, step.record.uri.table, len(step.changes)) for step in steps]


def everything(uri: Uri) -> bool:
    return True


RECORDS = st.lists(
    st.tuples(
        st.sampled_from(["Add", "Update", "Delete"]),
        st.sampled_from(["t", "u"]),
        st.integers(0, 3),
        st.sampled_from([0, 2]),
        st.integers(1, 2),
    ),
    max_size=20,
)


@given(RECORDS)
def test_a_plan_is_its_records_in_order(drawn: list[tuple[str, str, int, int, int]]) -> None:
    records = [
        record(sequence, operation, table, rows=rows, flags=flags, width=width)
        for sequence, (operation, table, rows, flags, width) in enumerate(drawn)
    ]
    steps = plan(records, passes=everything)
    assert [change for step in steps for change in step.changes] == [
        (item, row) for item in records for row in item.rows
    ]
    for step in steps:
        first = step.record
        for change in step.changes:
            other = change.record
            assert (other.operation, other.uri, other.columns, other.flags) == (
                first.operation, first.uri, first.columns, first.flags,
            )  # fmt: skip


def test_neighbours_of_one_kind_are_one_step() -> None:
    records = [record(0, "Add", rows=2), record(1, "Add"), record(2, "Delete"), record(3, "Add")]
    assert shape(plan(records, passes=everything)) == [("Add", "t", 3), ("Delete", "t", 1), ("Add", "t", 1)]


def test_a_change_of_another_table_parts_neighbours() -> None:
    records = [record(0, "Add"), record(1, "Add", "u"), record(2, "Add")]
    assert shape(plan(records, passes=everything)) == [("Add", "t", 1), ("Add", "u", 1), ("Add", "t", 1)]


def test_altered_columns_and_other_checks_part_neighbours() -> None:
    records = [record(0, "Add"), record(1, "Add", width=2), record(2, "Add", width=2, flags=2)]
    assert len(plan(records, passes=everything)) == 3


def test_tables_that_do_not_pass_have_no_steps() -> None:
    records = [record(0, "Add"), record(1, "Add", "u"), record(2, "Add")]
    assert shape(plan(records, passes=lambda uri: uri.table == "t")) == [("Add", "t", 2)]
