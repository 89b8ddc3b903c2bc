"""Rows compared with what they were on the leader: one text for the server to make, and the same one from the image."""

from typing import Any

import pytest

from cdc.consumer.literals import before_images
from cdc.consumer.literals.before_images import INCOMPARABLE, comparison
from cdc.consumer.plan.packets import Statement
from cdc.consumer.plan.planner import Change, Step
from cdc.consumer.plan.statements import statements
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri

NAMES = ("id", "b", "c")


def steps(operation: str, *before: list[Any]) -> list[Statement]:
    rows = tuple(Row(image, image if operation == "Upsert" else None) for image in before)
    record = Record(
        Uri("srv", "db", "t"), 7, Position("binlog.000001", 4), "uuid:1", 0, True, 0, "Update", columns=NAMES,
        key=("id",), rows=rows,
    )  # fmt: skip
    step = Step(operation, [Change(record, row) for row in rows])
    return list(statements([step], generated=lambda _: frozenset(), comparable=lambda _: frozenset(NAMES)))


def image(key: int, b: Any, c: Any = "Null") -> list[Any]:
    return [{"SignedInteger": key}, b, c]


def test_rows_are_looked_for_in_one_statement_before_they_change() -> None:
    check, change = steps("Delete", image(1, {"Decimal": "1.50"}), image(2, "Null"))
    assert check.sql.startswith(b"UPDATE `db`.`t` SET `id`=`id` WHERE ((`id`) IN ((1),(2))) AND CAST(CONCAT_WS(',',")
    assert check.sql.endswith(b" IN ('1,1.50,NULL','2,NULL,NULL')")
    assert (check.rows, len(check.changes)) == (2, 2)
    assert change.sql.startswith(b"DELETE ")


def test_a_value_of_another_type_is_compared_by_itself() -> None:
    found = steps("Upsert", image(1, {"Enum": "x"}), image(2, {"Enum": 0}), image(3, {"Enum": "y"}))
    assert [(statement.rows, b" IN ((2))" in statement.sql) for statement in found[:2]] == [(1, True), (2, False)]
    assert found[0].sql.endswith(b"'2,0,NULL')")


def test_a_number_is_not_taken_for_a_members_text() -> None:
    how = comparison(NAMES, [1], [image(1, {"Enum": 0})])
    assert how.value(image(1, {"Enum": 5})) == "'5'"
    with pytest.raises(INCOMPARABLE):
        how.value(image(1, {"Enum": "5"}))


def test_numbers_without_a_text_of_their_own_stand_beside_it() -> None:
    how = comparison(NAMES, [0, 1], [image(1, {"Double": 0.5})])
    assert how.expression.endswith(" AS BINARY),IFNULL(`b`+0e0,0e0))")
    assert how.value(image(1, {"Double": 1.5})) == "('1,there',1.5e0)"
    assert how.value(image(1, "Null")) == "('1,NULL',0e0)"


@pytest.mark.parametrize(
    "value",
    [
        {"SignedInteger": "x"},
        {"Time": {"hour": 1}},
        {"Hologram": 1},
        {},
        5,
        {"Blob": "A"},
        {"Decimal": "1' OR '1"},
        {"Timestamp": {"unix_time": 10**30, "subsecond": 0}},
        {"Timestamp": {"unix_time": 10**17, "subsecond": 0}},
    ],
)
@pytest.mark.parametrize("operation", ["Delete", "Upsert", "Update"])
def test_what_is_no_value_of_a_record_is_told(value: Any, operation: str) -> None:
    with pytest.raises(Exception, match="sequence 7") as caught:
        steps(operation, image(1, value))
    assert type(caught.value).__name__ == "Unapplicable"


def test_names_are_quoted_and_are_no_code() -> None:
    names = ("i`d", "{b}", "'c\\")
    how = comparison(names, [0, 1, 2], [image(1, {"String": "x"}, {"SignedInteger": 1})])
    assert "`i``d`" in how.expression
    assert "`{b}`" in how.expression
    assert "`'c\\`" in how.expression


VALUES: list[Any] = [
    "Null", {"SignedInteger": -3}, {"Decimal": "1.50"}, {"String": "it's"}, {"Enum": "x"}, {"Enum": 0}, {"Set": ["a"]},
    {"Blob": "AP8="}, {"Double": -0.5}, {"Float": 0.25}, {"Json": [1]},
    {"Date": {"year": 2024, "month": 2, "day": 9}},
    {"Time": {"negative": True, "hour": 1, "minute": 2, "second": 3, "subsecond": 4}},
    {"Timestamp": {"unix_time": 1, "subsecond": 5}},
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_few_and_many_rows_are_compared_in_the_same_words(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For many of the same types a function is compiled, except where they have very many columns."""
    made: list[tuple[str, ...]] = []
    compiled = before_images._compiled
    monkeypatch.setattr(before_images, "_compiled", lambda of, tags: made.append(tags) or compiled(of, tags))
    before_images._values.cache_clear()
    images = [image(1, value), image(2, "Null", value)]
    few = comparison(NAMES, [0, 1, 2], images)
    found = [few.value(each) for each in images]
    assert made == []
    other_table = comparison(("x", "y", "z"), [0, 1, 2], images * 150)
    assert len(made) == 1
    assert [other_table.value(each) for each in images] == found
    again = comparison(NAMES, [0, 1, 2], images)
    assert (again.expression, again.value, len(made)) == (few.expression, other_table.value, 1)
    monkeypatch.setattr(before_images, "_MOST_COMPILED", 2)
    before_images._values.cache_clear()
    assert [comparison(NAMES, [0, 1, 2], images * 150).value(each) for each in images] == found
    assert len(made) == 1
