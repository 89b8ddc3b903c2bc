"""Rows without a key that go: whatever the table holds, just these are deleted, or a statement counts wrong."""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.consumer.literals.image_keys import image_keys
from cdc.consumer.plan import statements as module
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.statements import Removal, removals
from cdc.consumer.plan.table_schema import TableSchema
from cdc.model.record import Row
from tests.unit.consumer.plan.test_planner import record

TABLE = TableSchema(frozenset("a"))


def image(value: Any) -> list[Any]:
    return ["Null" if value is None else {"SignedInteger": value}]


def value(image: list[Any] | None) -> Any:
    assert image
    return None if image[0] == "Null" else image[0]["SignedInteger"]


KEY = image_keys("a", [image(0)], {}).value


def step(*values: Any) -> Step:
    base = replace(record(0, "Delete"), key=None)
    return Step("Remove", [Change(base, Row(image(value), None)) for value in values])


def prepared(removal: Removal, there: list[Any]) -> list[Step]:
    """As RowCounts does it, on a table that has these rows."""
    wanted = [key for key in map(KEY, map(image, there)) if key in removal.gone]
    if removal.ordered and removal.is_all(wanted[: removal.rows]):
        return list(removal.of_first())
    return list(removal.of_counted(dict(Counter(wanted))))


class Table:
    """Rows in the order in which the server finds them. Each statement's number of rows must be right."""

    def __init__(self, rows: list[Any]) -> None:
        self.rows = list(rows)
        self.right = True
        self.sum = 0

    def run(self, step: Step) -> None:
        if step.operation == "Add":
            assert not step.prepared
            self.rows += [value(change.row.after) for change in step.changes]
        if step.operation == "Delete":
            for change in step.changes:
                self.right = self.right and value(change.row.before) in self.rows
                if value(change.row.before) in self.rows:
                    self.rows.remove(value(change.row.before))
        for sql, expected in step.prepared:
            count = self._count(sql.decode())
            self.right = self.right and expected in (None, count)

    def _count(self, sql: str) -> int:
        if sql == "SET @cdc_sum=0":
            self.sum = 0
            return 0
        if sql.startswith("SELECT"):
            (total,) = re.fullmatch(r"SELECT 1 FROM DUAL WHERE @cdc_sum=(\d+)", sql).groups()  # type: ignore[union-attr]
            return int(int(total) == self.sum)
        limit = re.search(r" LIMIT (\d+)$", sql)
        keys = set(re.findall(r"x'([0-9a-f]{32})'", sql))
        gone = [place for place, value in enumerate(self.rows) if KEY(image(value)) in keys]
        gone = gone[: int(limit[1]) if limit else None]
        if "@cdc_sum" in sql:
            self.sum += sum(int(KEY(image(self.rows[place]))[:10], 16) for place in gone)
        self.rows = [value for place, value in enumerate(self.rows) if place not in gone]
        return len(gone)


VALUES = st.integers(0, 6) | st.none()
LARGE = st.lists(VALUES, max_size=12) | st.lists(VALUES, max_size=12).map(lambda some: some * 40)


@settings(max_examples=500)
@given(
    st.lists(VALUES, min_size=1, max_size=10), LARGE, st.lists(VALUES, max_size=4), st.booleans(), st.booleans(),
    st.sampled_from([1, 1_000_000]),
)  # fmt: skip
def test_the_rows_that_go_are_deleted_or_it_shows(
    goes: list[Any], more: list[Any], others: list[Any], first: bool, indexed: bool, size: int
) -> None:
    counted = [*goes, *more] if first else [*more, *goes]
    schema = replace(TABLE, indexed=frozenset("a") if indexed else frozenset())
    parts = removals(step(*goes), schema, {}, size=size)
    steps = [each for removal in parts for each in prepared(removal, counted)]
    table = Table(counted)
    for each in steps:
        table.run(each)
    assert table.right
    assert Counter(table.rows) == Counter(counted) - Counter(goes)
    # Something else writes to the table after the rows were counted.
    table = Table(counted[len(others) :] + others)
    rest = Counter(table.rows) - Counter(goes)
    for each in steps:
        table.run(each)
    assert Counter(table.rows) == rest or not table.right


@given(st.lists(VALUES, min_size=1, max_size=10), LARGE, st.integers(0, 9))
def test_a_row_that_is_missing_shows(goes: list[Any], more: list[Any], place: int) -> None:
    missing = goes[place % len(goes)]
    there = [value for value in [*more, *goes] if value != missing]
    (removal,) = removals(step(*goes), TABLE, {}, size=1_000_000)
    table = Table(there)
    for each in prepared(removal, there):
        table.run(each)
    assert not table.right


def test_few_images_with_more_rows_are_deleted_by_themselves_and_many_are_written_again() -> None:
    (removal,) = removals(step(*range(6)), TABLE, {}, size=1_000_000)
    keys = [KEY(image(value)) for value in range(6)]
    some = list(removal.of_counted(dict.fromkeys(keys, 1) | dict.fromkeys(keys[:4], 2)))
    assert [(len(each.prepared), len(each.changes)) for each in some] == [(3, 2)] + [(1, 1)] * 4
    many = list(removal.of_counted(dict.fromkeys(keys, 1) | dict.fromkeys(keys[:4], 100) | {keys[4]: 101}))
    assert [each.operation for each in many] == ["Remove", "Remove", "Add"]
    assert (many[0].prepared[1][1], many[1].prepared[0][1], len(many[2].changes)) == (401, 1, 4 * 99)


def test_the_sum_of_all_rows_that_a_statement_deletes_has_64_bits() -> None:
    most = 4_000_000 // 32 * module._MOST_REWRITTEN
    assert most * 16**module._SUMMED < 1 << 64


def test_an_image_is_necessary() -> None:
    with pytest.raises(ValueError, match="without a before-image"):
        list(removals(replace(step(1), changes=[Change(step(1).record, Row(None, image(1)))]), TABLE, {}, size=1000))
