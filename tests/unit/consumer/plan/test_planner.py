"""A plan leaves the tables as the leader's changes do, one by one, in any batches."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cdc.consumer.literals.values import Rounded
from cdc.consumer.plan.packets import session_flags
from cdc.consumer.plan.planner import ALL_LOGGED, NO_FOREIGN_KEY_CHECKS, Step, in_order, plan, removes
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri


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


def kinds(steps: list[Step]) -> list[tuple[str, str | None, int]]:
    return [(step.record.operation, step.record.uri.table, len(step.changes)) for step in steps]


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
def test_in_order_are_the_records_in_order(drawn: list[tuple[str, str, int, int, int]]) -> None:
    records = [
        record(sequence, operation, table, rows=rows, flags=flags, width=width)
        for sequence, (operation, table, rows, flags, width) in enumerate(drawn)
    ]
    steps = in_order(records)
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
    assert kinds(in_order(records)) == [("Add", "t", 3), ("Delete", "t", 1), ("Add", "t", 1)]


def test_a_change_of_another_table_parts_neighbours() -> None:
    records = [record(0, "Add"), record(1, "Add", "u"), record(2, "Add")]
    assert kinds(in_order(records)) == [("Add", "t", 1), ("Add", "u", 1), ("Add", "t", 1)]


def test_altered_columns_and_other_checks_part_neighbours() -> None:
    records = [record(0, "Add"), record(1, "Add", width=2), record(2, "Add", width=2, flags=2)]
    assert len(in_order(records)) == 3


Image = tuple[int, str | None, int]
COLUMNS = ("id", "u", "v")
TABLE = TableSchema(
    frozenset(COLUMNS), frozenset(), {"PRIMARY": (KeyPart("id"),), "u": (KeyPart("u"),)}, numbered="id"
)  # the values of u are equal without case, as by MySQL's usual collations


class Table:
    """A table as MySQL keeps it: a row at a time, each checked against both keys at once."""

    def __init__(self, rows: Iterable[Image] = ()) -> None:
        self.rows = list(rows)
        self.highest = max((row[0] for row in self.rows), default=0)  # key, which is an AUTO_INCREMENT number

    def put(self, row: Image) -> None:
        for other in self.rows:
            assert other[0] != row[0], f"duplicate key {row}"
            assert row[1] is None or other[1] is None or other[1].lower() != row[1].lower(), f"duplicate u {row}"
        self.rows.append(row)
        self.highest = max(self.highest, row[0])

    def take(self, key: int) -> bool:
        found = [row for row in self.rows if row[0] == key]
        self.rows = [row for row in self.rows if row[0] != key]
        return bool(found)

    def run(self, step: Step) -> None:
        for _, (before, after) in step.changes:
            there = before is not None and self.take(image(before)[0])
            assert there == (step.operation in ("Update", "Delete", "Upsert")), (step.operation, before)
            if after is not None:
                self.put(image(after))


def values(row: Image) -> list[Any]:
    return [{"SignedInteger": row[0]}, "Null" if row[1] is None else {"String": row[1]}, {"SignedInteger": row[2]}]


def image(row: list[Any]) -> Image:
    return row[0]["SignedInteger"], None if row[1] == "Null" else row[1]["String"], row[2]["SignedInteger"]


ROWS = st.tuples(st.integers(0, 2), st.sampled_from(["a", "A", "b", "c", None]), st.integers(0, 2))
WISHES = st.tuples(st.sampled_from(["add", "set", "set", "move", "drop"]), ROWS)


@settings(max_examples=500)
@given(st.lists(ROWS, max_size=4), st.lists(WISHES, max_size=25), st.sampled_from([1, 3, 25]))
@example([(0, "c", 0)], [("move", (1, "c", 0)), ("drop", (0, "a", 1)), ("add", (0, "c", 1))], 3)
@example([(1, "a", 0), (2, "b", 0)], [("set", (1, "c", 0)), ("set", (2, "A", 0)), ("set", (1, "b", 0))], 3)
def test_any_batches_give_the_tables_of_the_changes_one_by_one(
    first: list[Image], wishes: list[tuple[str, Image]], size: int
) -> None:
    leader = Table()
    follower = Table([row for row in first if allowed(leader, None, row)])
    leader.highest = follower.highest
    records = list(history(leader, wishes))
    for start in range(0, len(records), size):
        for step in plan(records[start : start + size], schema=lambda uri: TABLE):
            follower.run(step)
    assert sorted(follower.rows, key=str) == sorted(leader.rows, key=str)
    assert follower.highest == leader.highest


def allowed(table: Table, old: Image | None, new: Image) -> bool:
    """Puts ``new`` in the place of ``old`` where both keys let it."""
    kept, highest = list(table.rows), table.highest
    try:
        if old is not None:
            table.take(old[0])
        table.put(new)
    except AssertionError:
        table.rows, table.highest = kept, highest
        return False
    return True


def history(leader: Table, wishes: list[tuple[str, Image]]) -> Iterator[Record]:
    """What comes of the wishes: a row is added, or set to other values, its key included where it moves, or dropped."""
    for sequence, (kind, row) in enumerate(wishes):
        old = next((other for other in leader.rows if kind != "add" and other[0] in (row[0], row[2])), None)
        base = replace(record(sequence, "Add", width=3), columns=COLUMNS, key=("id",))
        if old is None:
            if allowed(leader, None, row):
                yield replace(base, rows=(Row(None, values(row)),))
        elif kind == "drop":
            leader.take(old[0])
            yield replace(base, operation="Delete", rows=(Row(values(old), None),))
        else:
            new = row if kind == "move" else (old[0], *row[1:])
            if allowed(leader, old, new):
                yield replace(base, operation="Update", rows=(Row(values(old), values(new)),))


def test_a_row_that_is_updated_often_is_one_change() -> None:
    rows = [Row(values((1, "a", n)), values((1, "a", n + 1))) for n in range(100)]
    records = [replace(record(n, "Update"), columns=COLUMNS, key=("id",), rows=(row,)) for n, row in enumerate(rows)]
    ((operation, changes),) = [(step.operation, step.changes) for step in plan(records, schema=lambda uri: TABLE)]
    assert operation == "Upsert"
    assert [change.row for change in changes] == [Row(values((1, "a", 0)), values((1, "a", 100)))]
    assert changes[0].record is records[-1]


def test_a_row_that_changes_there_and_back_is_written_so_that_the_follower_logs_it() -> None:
    one, other = values((1, "a", 1)), values((1, "a", 2))
    there, back = (
        replace(record(0, "Update"), rows=(Row(one, other),)),
        replace(record(1, "Update"), rows=(Row(other, one),)),
    )
    records = [replace(each, columns=COLUMNS, key=("id",)) for each in (there, back)]
    steps = plan(records, schema=lambda uri: TABLE)
    assert [(step.operation, step.changes[0].row) for step in steps] == [
        ("Delete", Row(one, None)),
        ("Add", Row(None, one)),
    ]


def test_zeros_of_both_signs_are_two_keys() -> None:
    rows = [Row([{"Double": -0.0}], None), Row(None, [{"Double": 0.0}])]
    records = [
        replace(record(n, operation), columns=("a",), key=("a",), rows=(row,))
        for n, (operation, row) in enumerate(zip(("Delete", "Add"), rows, strict=True))
    ]
    keyed = TableSchema(frozenset("a"), frozenset(), {"PRIMARY": (KeyPart("a"),)})
    assert [step.operation for step in plan(records, schema=lambda uri: keyed)] == ["Delete", "Add"]


@pytest.mark.parametrize(
    ("table", "flags", "net"),
    [
        (TABLE, 0, True),
        (replace(TABLE, unique_keys={}), 0, False),
        (replace(TABLE, columns=frozenset("id")), 0, False),
        (replace(TABLE, columns=TABLE.columns | {"more"}), 0, False),
        (replace(TABLE, columns=frozenset({"id", "u"}), generated=frozenset("v")), 0, True),
        (replace(TABLE, related=True), 0, False),
        (replace(TABLE, related=True), ALL_LOGGED, True),
        (replace(TABLE, related=True), NO_FOREIGN_KEY_CHECKS, True),
    ],
)
def test_the_leaders_order_is_kept_where_rows_are_not_all(table: TableSchema, flags: int, net: bool) -> None:
    rows = (Row(None, values((1, "a", 1))),), (Row(values((1, "a", 1)), values((1, "a", 2))),)
    records = [
        replace(record(n, operation, flags=flags), columns=COLUMNS, key=("id",), rows=row)
        for n, (operation, row) in enumerate(zip(("Add", "Update"), rows, strict=True))
    ]
    steps = plan(records, schema=lambda uri: table)
    assert [step.operation for step in steps] == (["Add"] if net else ["Add", "Update"])
    assert {step.flags for step in steps} == {NO_FOREIGN_KEY_CHECKS if table.related and net else flags & 2}


def test_tables_that_foreign_keys_join_share_one_order() -> None:
    records = [
        record(0, "Add", "t", flags=ALL_LOGGED),
        record(1, "Add", "u"),
        record(2, "Delete", "t", flags=ALL_LOGGED),
    ]
    related = TableSchema(frozenset("a"), frozenset(), {"PRIMARY": (KeyPart("a"),)}, related=True)
    assert kinds(plan(records, schema=lambda uri: related)) == [("Add", "t", 1), ("Add", "u", 1), ("Delete", "t", 1)]


def test_records_that_contradict_one_another_stay_as_they_are() -> None:
    rows = Row(None, values((1, "a", 1))), Row(None, values((1, "b", 1)))
    records = [replace(record(n, "Add"), columns=COLUMNS, key=("id",), rows=(row,)) for n, row in enumerate(rows)]
    assert kinds(plan(records, schema=lambda uri: TABLE)) == [("Add", "t", 2)]


def change(sequence: int, before: Any, after: Any, **fields: Any) -> Record:
    """A record of one row of TABLE; an image is a list of values or a row."""
    images = [values(each) if isinstance(each, tuple) else each for each in (before, after)]
    operation = "Add" if before is None else "Delete" if after is None else "Update"
    return replace(
        record(sequence, operation), **{"columns": COLUMNS, "key": ("id",), "rows": (Row(*images),)} | fields
    )


def planned(records: list[Record], table: TableSchema = TABLE) -> list[tuple[str, list[Row]]]:
    steps = plan(records, schema=lambda uri: table)
    return [(step.operation, [each.row for each in step.changes]) for step in steps]


def test_each_kind_of_net_effect_is_a_step_in_an_order_in_which_no_row_is_in_the_way() -> None:
    records = [
        change(0, None, (9, "n", 1)),
        change(1, (3, "c", 1), None),
        change(2, None, (4, "d", 1)),
        change(3, (2, "b", 1), (2, "b", 2)),
        change(4, (4, "d", 1), None),
        change(5, (5, "e", 1), (5, "f", 1)),
    ]
    assert planned(records) == [
        ("Delete", [Row(values((3, "c", 1)), None), Row(values((5, "e", 1)), None)]),
        ("Absent", [Row(values((4, "d", 1)), None)]),
        ("Upsert", [Row(values((2, "b", 1)), values((2, "b", 2)))]),
        ("Add", [Row(None, values((9, "n", 1))), Row(None, values((5, "f", 1)))]),
    ]
    deleted, _, _, added = plan(records, schema=lambda uri: TABLE)
    assert [each.record for each in deleted.changes] == [records[1], records[5]]
    assert [each.record for each in added.changes] == [records[0], records[5]]


def test_the_row_with_the_highest_number_comes_and_goes_where_no_row_keeps_the_number() -> None:
    gone = [change(0, None, (7, "g", 1)), change(1, (7, "g", 1), None)]
    stays = [change(2, (2, "b", 1), (2, "b", 2))]
    seven, two = values((7, "g", 1)), [Row(values((2, "b", 1)), values((2, "b", 2)))]
    split = [("Delete", [Row(two[0].before, None)]), ("Absent", [Row(seven, None)])]
    comes = [("Add", [Row(None, seven)]), ("Delete", [Row(seven, None)])]
    assert planned(gone + stays) == [*split, *comes, ("Add", [Row(None, two[0].after)])]
    # Without another unique key the row that stays is updated in its place.
    table = replace(TABLE, unique_keys={"PRIMARY": (KeyPart("id"),)})
    assert planned(gone + stays, table) == [split[1], *comes, ("Upsert", two)]
    # A row that is written has as high a number, or the table has none.
    assert planned([*gone, change(2, None, (7, "h", 1))]) == [("Add", [Row(None, values((7, "h", 1)))])]
    assert planned(gone + stays, replace(TABLE, numbered=None)) == [split[1], ("Upsert", two)]
    assert planned(gone + stays, replace(TABLE, numbered="other")) == [split[1], ("Upsert", two)]
    steps = plan(gone, schema=lambda uri: replace(TABLE, related=True, numbered="id"))
    assert {step.flags for step in steps} == {0}  # in order: foreign keys
    unchecked = [replace(each, flags=NO_FOREIGN_KEY_CHECKS) for each in gone]
    steps = plan(unchecked, schema=lambda uri: replace(TABLE, related=True))
    assert [(step.operation, step.flags) for step in steps] == [(kind, 2) for kind in ("Absent", "Add", "Delete")]
    assert [step.record for step in steps] == [unchecked[1], unchecked[0], unchecked[0]]


def test_a_row_that_had_the_highest_number_and_stays_with_another_is_not_in_its_own_way() -> None:
    table = replace(TABLE, unique_keys={"PRIMARY": (KeyPart("id"),)}, numbered="v")
    first, high, last = (2, "b", 1), (2, "b", 9), (2, "b", 3)
    wanted = [("Delete", (first, None)), ("Add", (None, high)), ("Delete", (high, None)), ("Add", (None, last))]
    assert planned([change(0, first, high), change(1, high, last)], table) == [
        (kind, [Row(*(values(each) if each else None for each in images))]) for kind, images in wanted
    ]


def test_of_two_rows_that_come_and_go_only_the_one_with_the_highest_number_does_here() -> None:
    rows = [(8, "h", 1), (7, "g", 1)]
    records = [change(n, None, row) for n, row in enumerate(rows)]
    records += [change(2 + n, row, None) for n, row in enumerate(rows)]
    highest = values((8, "h", 1))
    assert planned(records)[1:] == [("Add", [Row(None, highest)]), ("Delete", [Row(highest, None)])]


@pytest.mark.parametrize("number", ["Null", {}, {"String": "x"}, {"UnsignedInteger": 0}])
def test_a_number_that_is_none_counts_as_zero(number: Any) -> None:
    table = TableSchema(frozenset(COLUMNS), unique_keys={"PRIMARY": (KeyPart("id"),)}, numbered="v")
    stays = [[{"SignedInteger": 1}, "Null", number], [{"SignedInteger": 1}, {"String": "x"}, number]]
    gone = [{"SignedInteger": 2}, "Null", {"Double": 0.5}]
    records = [change(0, *stays), change(1, None, gone), change(2, gone, None)]
    assert [kind for kind, _ in planned(records, table)] == ["Delete", "Absent", "Add", "Delete", "Add"]
    zero = [{"SignedInteger": 2}, "Null", number]
    records = [change(0, None, zero), change(1, zero, None)]
    assert [kind for kind, _ in planned(records, table)] == ["Absent"]


def test_a_row_that_is_changed_in_a_unique_key_of_an_expression_is_deleted_and_inserted() -> None:
    table = replace(TABLE, unique_keys=TABLE.unique_keys | {"u": (KeyPart(None),)})
    update = [change(0, (2, "b", 1), (2, "b", 2))]
    assert [kind for kind, _ in planned(update, table)] == ["Delete", "Add"]


@pytest.mark.parametrize("mode", [None, "NO_ZERO_DATE", "PAD_CHAR_TO_FULL_LENGTH"])
@pytest.mark.parametrize(
    "table",
    [
        replace(TABLE, functional=True, stored=frozenset("v"), unpredictable=frozenset({"u", "other"})),
        replace(TABLE, columns=frozenset({"u", "v"}), generated=frozenset({"id"}), stored=frozenset({"id", "no"})),
        TABLE,
    ],
)
def test_a_table_that_computes_does_so_under_the_leaders_modes(table: TableSchema, mode: str | None) -> None:
    (*_, last) = plan([change(0, (2, "b", 1), (2, "b", 2), sql_mode=mode)], schema=lambda uri: table)
    if table is TABLE:
        assert (last.operation, last.modes, last.verified) == ("Upsert", None, frozenset())
        return
    updates = table.functional and mode != "PAD_CHAR_TO_FULL_LENGTH"
    assert last.operation == ("Upsert" if updates else "Add")
    assert last.modes == ("NO_ZERO_IN_DATE,NO_ZERO_DATE" if mode is None else mode)
    looked_up = table.stored if mode == "PAD_CHAR_TO_FULL_LENGTH" else table.unpredictable
    assert last.verified == looked_up & {"id", "u", "v"}


def test_records_of_several_modes_stay_in_order_where_the_table_computes() -> None:
    records = [change(0, None, (2, "b", 1)), change(1, (2, "b", 1), (2, "b", 2), sql_mode="NO_ZERO_DATE")]
    assert [kind for kind, _ in planned(records)] == ["Add"]
    steps = plan(records, schema=lambda uri: replace(TABLE, functional=True))
    assert [(step.operation, step.modes) for step in steps] == [
        ("Add", "NO_ZERO_IN_DATE,NO_ZERO_DATE"), ("Update", "NO_ZERO_DATE"),
    ]  # fmt: skip


@pytest.mark.parametrize("fields", [{"columns": ("id", "u", "w")}, {"key": ("u",)}])
def test_records_of_other_columns_or_another_key_stay_in_order(fields: dict[str, Any]) -> None:
    records = [change(0, None, (2, "b", 1)), change(1, (2, "b", 1), (2, "b", 2), **fields)]
    assert [kind for kind, _ in planned(records)] == ["Add", "Update"]
    assert [kind for kind, _ in planned([records[0], replace(records[1], columns=COLUMNS, key=("id",))])] == ["Add"]


def test_only_the_tables_that_need_it_are_in_order_and_they_come_first() -> None:
    plain, keyless = Uri("srv", "db", "plain"), Uri("srv", "db", "keyless")
    schemas = {plain: TABLE, keyless: replace(TABLE, unique_keys={})}
    records = [
        change(0, None, (1, "a", 1), uri=plain),
        change(1, None, (1, "a", 1), uri=keyless),
        change(2, (1, "a", 1), None, uri=plain),
        change(3, (1, "a", 1), None, uri=keyless),
        change(4, None, (1, "a", 2), uri=plain),
    ]
    steps = plan(records, schema=schemas.__getitem__)
    assert [(step.record.uri.table, step.operation) for step in steps] == [
        ("keyless", "Add"), ("keyless", "Delete"), ("plain", "Add"),
    ]  # fmt: skip
    assert steps[2].record is records[4]


def test_a_few_rows_that_go_from_a_table_without_a_key_are_looked_up_one_by_one() -> None:
    """Rows that come do not count, whichever come with them."""
    table, fields = replace(TABLE, unique_keys={}, numbered=None), {"key": None}
    comes = [change(0, None, (9, "new", 1), **fields), change(1, None, (8, "new", 1), **fields)]
    goes = [change(2 + at, (at, "old", 1), None, **fields) for at in range(4)]
    assert [kind for kind, _ in planned([*comes, *goes[:3]], table)] == ["Add", "Delete"]
    assert [kind for kind, _ in planned([*comes, goes[0]], table)] == ["Add", "Delete"]
    assert "Remove" in [kind for kind, _ in planned([*comes, *goes], table)]


def test_an_order_among_foreign_keys_is_no_order_of_other_tables() -> None:
    names = ["parent", "child", "plain"]
    schemas = {
        Uri("srv", "db", name): TableSchema(
            frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)}, related=name != "plain"
        )
        for name in names
    }
    records = [record(n, "Add", name) for n, name in enumerate(names * 2)]
    steps = plan(records, schema=schemas.__getitem__)
    assert kinds(steps) == [
        ("Add", "parent", 1), ("Add", "child", 1), ("Add", "parent", 1), ("Add", "child", 1), ("Add", "plain", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("operation", ["Add", "Delete"])
def test_rows_of_one_kind_are_taken_as_they_are(operation: str) -> None:
    records = [record(1, operation, flags=6), record(1, operation, rows=0), record(2, operation)]
    schema = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)})
    (step,) = plan(records, schema=lambda uri: schema)
    assert (step.operation, step.flags, len(step.changes)) == (operation, 0, 2)
    assert [each.record for each in step.changes] == [records[0], records[2]]
    assert plan([record(1, operation, rows=0)], schema=lambda uri: schema) == []
    assert plan([], schema=lambda uri: schema) == []


@pytest.mark.parametrize("key", [{}, "Null", 5])
def test_a_key_that_is_no_value_leaves_the_records_as_they_are(key: Any) -> None:
    broken = [key, "Null", "Null"]
    records = [change(0, None, broken), change(1, broken, None)]
    assert planned(records) == [("Add", [Row(None, broken)]), ("Delete", [Row(broken, None)])]


@pytest.mark.parametrize(
    "fields",
    [
        {"operation": "Delete"}, {"uri": Uri("srv", "db", "u")}, {"columns": ("b",)}, {"key": None}, {"flags": 1},
        {"sql_mode": "NO_ZERO_DATE"},
    ],
)  # fmt: skip
def test_records_that_differ_in_anything_share_no_step(fields: dict[str, Any]) -> None:
    assert len(in_order([record(0, "Add"), record(1, "Add")])) == 1
    assert len(in_order([record(0, "Add"), replace(record(1, "Add"), **fields)])) == 2


def test_the_record_of_a_step_is_its_first() -> None:
    records = [record(1, "Add"), record(2, "Add")]
    (step,) = in_order(records)
    assert step.record is records[0]
    (step,) = plan(records, schema=lambda uri: TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)}))
    assert step.record is records[0]


def test_a_step_has_the_checks_of_its_records_and_no_other_flags() -> None:
    assert [step.flags for step in in_order([record(0, "Add", flags=0xFF), record(1, "Add", flags=0x11)])] == [6, 0]
    assert in_order([record(0, "Add", rows=0)]) == []


def test_the_flags_are_those_of_mysql() -> None:
    related = TableSchema(frozenset("a"), unique_keys={"PRIMARY": (KeyPart("a"),)}, related=True)
    for flags, net in ((0x02, True), (0x10, True), (0x04, False), (0x08, False), (0x20, False)):
        records = [record(1, "Add", flags=flags), record(1, "Delete", flags=flags)]
        first, *_ = plan(records, schema=lambda uri: related)
        assert first.operation == ("Absent" if net else "Add")


NO_KEY = TableSchema(frozenset(COLUMNS), indexed=frozenset("v"))


def without_key(*pairs: tuple[Any, Any]) -> list[Record]:
    return [change(n, before, after, key=None) for n, (before, after) in enumerate(pairs)]


FOUR = without_key(*[((n, "a", 1), (n + 1, "a", 1)) for n in range(4)])


def test_many_rows_without_a_key_go_and_come_together() -> None:
    added, gone = without_key((None, (9, "x", 1)), ((7, "x", 1), None))
    first, last = values((0, "a", 1)), values((4, "a", 1))
    assert planned([added, *FOUR, gone], NO_KEY) == [
        ("Remove", [Row(first, None), gone.rows[0]]),
        ("Add", [added.rows[0], Row(None, last)]),
    ]
    assert removes([added, *FOUR, gone], schema=lambda uri: NO_KEY)
    # What comes and goes in the same records needs no row that is there before.
    assert planned([added, *without_key(*[((9, "x", 1), None), (None, (9, "x", 1))] * 4)], NO_KEY) == [
        ("Add", [Row(None, values((9, "x", 1)))])
    ]


@pytest.mark.parametrize(
    ("records", "table"),
    [
        (FOUR[:3], NO_KEY),
        (FOUR, replace(NO_KEY, columns=NO_KEY.columns | {"more"})),
        (FOUR, replace(NO_KEY, columns=frozenset({"id", "u"}), generated=frozenset("v"))),
        (FOUR, replace(NO_KEY, functional=True)),
        (FOUR, replace(NO_KEY, numbered="id")),
        (FOUR, replace(NO_KEY, related=True)),
        ([*FOUR[:3], replace(FOUR[3], columns=("id", "v", "u"))], NO_KEY),
        ([*FOUR[:3], replace(FOUR[3], key=("id",))], NO_KEY),
    ],
)
def test_rows_without_a_key_are_changed_one_by_one_where_more_counts_or_they_are_few(
    records: list[Record], table: TableSchema
) -> None:
    assert {kind for kind, _ in planned(records, table)} == {"Update"}
    assert not removes(records, schema=lambda uri: table)


def test_rows_that_are_only_added_need_no_key() -> None:
    added = without_key((None, (9, "x", 1)), (None, (9, "x", 1)))
    assert planned(added, NO_KEY) == [("Add", [Row(None, values((9, "x", 1)))] * 2)]
    assert not removes(added, schema=lambda uri: NO_KEY)


def test_rows_without_a_key_go_without_the_checks_that_the_leader_has_done() -> None:
    logged = [replace(each, flags=ALL_LOGGED) for each in FOUR]
    steps = plan(logged, schema=lambda uri: replace(NO_KEY, related=True))
    assert [(step.operation, step.flags) for step in steps] == [
        ("Remove", NO_FOREIGN_KEY_CHECKS), ("Add", NO_FOREIGN_KEY_CHECKS),
    ]  # fmt: skip


def test_changes_in_order_do_not_repeat_what_foreign_keys_have_logged() -> None:
    table = replace(NO_KEY, related=True)
    for flags, unchecked in ((0, 0), (ALL_LOGGED, NO_FOREIGN_KEY_CHECKS)):
        few = [replace(each, flags=flags) for each in FOUR[:1]]
        assert {step.flags for step in plan(few, schema=lambda uri: table)} == {unchecked}
    unrelated = [replace(each, flags=ALL_LOGGED) for each in FOUR[:1]]
    assert {step.flags for step in plan(unrelated, schema=lambda uri: NO_KEY)} == {0}
    assert b"foreign_key_checks=0" in session_flags(ALL_LOGGED).sql
    assert b"foreign_key_checks=1" in session_flags(0).sql


def test_a_row_whose_numbers_must_be_copied_is_deleted_and_inserted() -> None:
    table = replace(TABLE, rounded={"v": Rounded("DOUBLE", 15, 4)})
    steps = plan([change(0, (2, "b", 1), (2, "b", 2))], schema=lambda uri: table)
    assert [(step.operation, step.rounded) for step in steps] == [("Delete", table.rounded), ("Add", table.rounded)]
