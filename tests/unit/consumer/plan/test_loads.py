"""Many rows are loaded only where LOAD DATA stores what an INSERT would; the data are the text of an INSERT's rows."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.follower.session import stored_rows
from cdc.consumer.literals.row_text import tagged_row_texts
from cdc.consumer.plan import inserts
from cdc.consumer.plan.inserts import loadable_tags
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, packets
from cdc.consumer.plan.planner import NO_FOREIGN_KEY_CHECKS, Change, Step
from cdc.consumer.plan.statements import statements
from cdc.model.record import Row
from tests.unit.consumer.literals.test_row_text import CONTENTS, VALUES
from tests.unit.consumer.plan.test_statements import change, n

TEXT = loadable_tags("text", nullable=True)
COLUMNS = {"a": loadable_tags("int", nullable=False), "b": TEXT}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inserts, "_FEWEST", 3)


def step(*values: Any, **more: Any) -> Step:
    changes = [change("Add", [n(key), value]) for key, value in enumerate(values)]
    return Step("Add", changes, **more)


def made(
    wanted: Step, loadable: dict[str, frozenset[str]] = COLUMNS, generated: str = "", size: int = PACKET_BYTES
) -> list[Statement]:
    return list(statements([wanted], generated=lambda _: frozenset(generated), loadable=lambda _: loadable, size=size))


def loaded(wanted: Step, *arguments: Any, **named: Any) -> bool:
    """Whether all rows are loaded; it is all or none in these tests."""
    data = [each.data is not None for each in made(wanted, *arguments, **named) if not each.sql.startswith(b"SET")]
    assert len(set(data)) == 1
    return data[0]


def test_the_data_are_the_text_of_the_rows() -> None:
    (statement,) = made(step({"String": "x"}, {"String": "it's \\"}, "Null"))
    assert statement.sql.startswith(b"LOAD DATA LOCAL INFILE 'cdc' INTO TABLE `db`.`t` CHARACTER SET utf8mb4 ")
    assert statement.sql.endswith(rb"ESCAPED BY '\\' LINES TERMINATED BY '),(' (`a`,`b`)")
    assert statement.data == rb"0,'x'),(1,'it''s \\'),(2,NULL"
    assert statement.rows == 3 and len(statement.changes) == 3


@pytest.mark.parametrize(
    ("value", "data_type"),
    [
        ({"Json": []}, "json"), ({"Blob": "YQ=="}, "varchar"), ({"Blob": "YQ=="}, "blob"), ({"Year": 0}, "year"),
        ({"String": "a"}, "varbinary"), ({"String": "a"}, "int"), (n(1), "varchar"), ({"Bit": 1}, "int"),
        ({"Enum": 2}, "enum"), ({"Set": ["a"]}, "set"), ({"Double": 1.5}, "double"), ({"Date": {}}, "datetime"),
        ({"Text": {"charset": "sjis", "base64": "YQ=="}}, "text"), ({"Geometry": "AA=="}, "point"),
    ],
)  # fmt: skip
def test_other_values_are_inserted(value: Any, data_type: str) -> None:
    wanted = step({"String": "x"}, value, {"String": "y"}) if data_type == "text" else step(value, value, value)
    if value == {"Date": {}}:
        wanted = step(*[{"Date": {"year": 1, "month": 1, "day": 1}}] * 3)
    assert not loaded(wanted, COLUMNS | {"b": loadable_tags(data_type, nullable=True)})


def test_other_steps_are_inserted() -> None:
    some = step({"String": "x"}, "Null", {"String": "y"})
    assert loaded(some)
    assert not loaded(step("Null", "Null"))  # too few
    assert not loaded(some, {})
    assert not loaded(some, {"a": COLUMNS["a"]})
    assert not loaded(some, COLUMNS | {"b": TEXT - {"Null"}})
    assert not loaded(replace(some, flags=NO_FOREIGN_KEY_CHECKS))
    assert not loaded(replace(some, modes=""))
    assert not loaded(some, COLUMNS, generated="ab")
    assert loaded(some, COLUMNS, generated="b")
    (delete,) = made(Step("Delete", [Change(each.record, Row(each.row.after, None)) for each in some.changes]))
    assert delete.data is None


@given(st.integers(1, 60), st.integers(300, 2000))
def test_any_size_gives_the_same_rows_in_order(rows: int, size: int) -> None:
    wanted = step(*[{"String": "x" * (7 * row % 40)} for row in range(rows)])
    found = made(wanted, size=size)
    texts = [each.data or each.sql.partition(b" VALUES (")[2][:-1] for each in found]
    ((_, whole),) = [each.sql.split(b" VALUES (") for each in made(wanted, {})]
    assert b"),(".join(texts) + b")" == whole
    assert all(len(each.sql) + len(each.data or b"") <= size for each in found)
    assert [len(packet) for packet in packets(found, limit=size + 1)] == [1] * len(found)


@given(st.lists(st.tuples(*[VALUES | st.just("Null")] * 2), max_size=4) | st.sampled_from(list(CONTENTS)).flatmap(
    lambda tag: st.lists(st.tuples(*[CONTENTS[tag].map(lambda c: {tag: c}) | st.just("Null")] * 2), max_size=4)
))  # fmt: skip
def test_no_tag_is_left_out(images: list[Any]) -> None:
    """Or it is said that tags are unknown."""
    try:
        _, tags = tagged_row_texts(images, [0, 1])
    except ValueError:
        return
    for index in (0, 1):
        real = {"Null" if image[index] == "Null" else next(iter(image[index])) for image in images}
        assert tags[index] == real or "" in tags[index]


def test_tags_of_all_blocks_count() -> None:
    images = [[n(1)]] * 600 + [["Null"]] * 600 + [[{"String": "a"}]]
    assert tagged_row_texts(images, [0])[1] == [{"SignedInteger", "Null", "String"}]


@dataclass(frozen=True)
class Result:
    message: bytes | None
    affected_rows: int = 9
    warning_count: int = 0


@pytest.mark.parametrize(
    ("result", "rows"),
    [
        (Result(b"2Records: 9  Deleted: 0  Skipped: 0  Warnings: 0"), 9),
        (Result("\x30レコード数: 9  削除: 0  スキップ: 0  警告: 0".encode()), 9),
        (Result(b"2Records: 9  Deleted: 0  Skipped: 0  Warnings: 0", affected_rows=8), 8),
        (Result(b"2Records: 10  Deleted: 0  Skipped: 1  Warnings: 0", affected_rows=10), 9),
        (Result(b"2Records: 9  Deleted: 0  Skipped: 0  Warnings: 1"), 8),
        (Result(b"2Records: 9  Deleted: 1  Skipped: 0  Warnings: 0"), 8),
        (Result(b"2Records: 9  Deleted: 0  Skipped: 0  Warnings: 0", warning_count=65_535), 0),
        (Result(b""), 0),
        (Result(None), 0),
    ],
)
def test_a_warning_counts_for_a_row(result: Result, rows: int) -> None:
    assert stored_rows(result) == rows
