"""Records with texts instead of values become what they become with their values."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.consumer.plan.packets import PACKET_BYTES
from cdc.consumer.plan.planner import RenderedChanges, plan
from cdc.consumer.plan.rendered_rows import RecordParser, RenderedRows
from cdc.consumer.plan.statements import statements
from cdc.consumer.plan.table_schema import KeyPart, TableSchema
from cdc.errors import PromiseError
from cdc.model.record import Record, Row
from tests.unit.consumer.literals.test_row_text import CONTENTS

VALUES = st.sampled_from(list(CONTENTS)).flatmap(lambda tag: st.just("Null") | CONTENTS[tag].map(lambda c: {tag: c}))
ROWS = st.lists(st.tuples(VALUES, VALUES), min_size=20, max_size=30)
SHAPE = TableSchema(frozenset(["id", "a", "b"]), unique_keys={"PRIMARY": (KeyPart("id"),)})
COMPUTED = TableSchema(frozenset(["id", "a"]), frozenset("b"), {"PRIMARY": (KeyPart("id"),)})


def message(first: int, rows: list[Any], operation: str = "Add") -> bytes:
    images = [[{"SignedInteger": first + number}, *row] for number, row in enumerate(rows)]
    body: dict[str, Any] = {
        "uri": "flv://srv/db/t",
        "sequence": first,
        "bn_file": {"fileName": "binlog.000001", "offset": 4},
        "transaction": {"id": f"uuid:{first}", "index": 0, "last": True, "ts_us": 0},
        "columns": ["id", "a", "b"],
        "key": ["id"],
        "operation": {operation: {"rows": [{"cols": image} for image in images]}},
    }
    if operation == "Copy":
        body["operation"][operation] |= {"after": None, "upto": None}
    return json.dumps(body).encode()


def sql(
    records: list[Record], shape: TableSchema = SHAPE, size: int = PACKET_BYTES
) -> list[tuple[bytes, int | None, int]]:
    steps = plan(records, schema=lambda _: shape)
    made = statements(steps, generated=lambda _: shape.generated, size=size)
    return [(each.sql, each.rows, len(each.changes)) for each in made]


def parsed(messages: list[bytes]) -> list[Record]:
    parser = RecordParser()
    return [parser.parse(each, where="") for each in messages]


def plainly(messages: list[bytes]) -> list[Record]:
    return [Record.parse(each, where="") for each in messages]


@settings(max_examples=40)
@given(st.lists(ROWS, min_size=1, max_size=3))
def test_the_statements_are_the_same(records: list[Any]) -> None:
    messages = [message(1000 * number, rows) for number, rows in enumerate(records)]
    assert sql(parsed(messages)) == sql(plainly(messages))
    assert sql(parsed(messages), COMPUTED) == sql(plainly(messages), COMPUTED)


@given(st.lists(st.integers(20, 60), min_size=1, max_size=6), st.integers(60, 3000))
def test_any_size_gives_the_same_rows_in_order(counts: list[int], size: int) -> None:
    messages = [
        message(1000 * number, [({"String": "x" * (count % 7)}, "Null")] * count) for number, count in enumerate(counts)
    ]
    found = sql(parsed(messages), size=size)
    values = b",".join(text.partition(b" VALUES ")[2] for text, _, _ in found)
    ((whole, _, _),) = sql(plainly(messages))
    assert values == whole.partition(b" VALUES ")[2]
    assert all(rows == changes for _, rows, changes in found)
    assert all(len(text) <= size or rows == 1 for text, rows, _ in found)


def test_the_texts_are_used() -> None:
    (record,) = parsed([message(1, [("Null", "Null")] * 20)])
    assert isinstance(record.rows, RenderedRows)
    (step,) = plan([record], schema=lambda _: SHAPE)
    assert isinstance(step.changes, RenderedChanges)
    assert step.record is record
    records = parsed([message(key, [("Null", "Null")] * 20) for key in (1, 21)])
    (step,) = plan(records, schema=lambda _: SHAPE)
    assert step.record is records[0]


def test_rows_that_somebody_wants_are_read_anew_and_left_for_a_while() -> None:
    parser = RecordParser()
    text = message(1, [({"String": "a"}, "Null")] * 20)
    record = parser.parse(text, where="")
    assert isinstance(record.rows, RenderedRows)
    # Where both their text and their values are needed, the next ones are rendered all the same.
    assert record.rows.parsed() == Record.parse(text, where="").rows
    assert isinstance(parser.parse(text, where="").rows, RenderedRows)
    assert list(record.rows) == list(Record.parse(text, where="").rows)
    assert record.rows[3] == Record.parse(text, where="").rows[3]
    following = [parser.parse(text, where="") for _ in range(1001)]
    assert [isinstance(each.rows, RenderedRows) for each in following] == [False] * 1000 + [True]


class Counting(RecordParser):
    """Counts how often values are parsed again."""

    again = 0

    def values(self, message: bytes) -> Sequence[Row]:
        self.again += 1
        return super().values(message)

    def rendered(self, message: bytes) -> RenderedRows:
        rows = self.parse(message, where="").rows
        assert isinstance(rows, RenderedRows)
        return rows


def test_chunks_of_a_table_keep_their_values_once_these_were_needed_beside_the_text() -> None:
    parser = Counting()
    chunk, added = (message(1, [({"String": "a"}, "Null")] * 20, operation=each) for each in ("Copy", "Add"))
    values = Record.parse(chunk, where="").rows
    assert parser.rendered(chunk).parsed() == values
    assert parser.again == 1
    following = [parser.rendered(chunk) for _ in range(21)]
    assert following[0].parsed() == following[19].parsed() == values
    assert parser.again == 1
    assert following[20].parsed() == values
    assert parser.again == 2
    assert parser.rendered(added).parsed() == values
    assert parser.again == 3


@pytest.mark.parametrize(
    "text",
    [
        message(1, [("Null", "Null")] * 19),
        message(1, [("Null", "Null")] * 20, operation="Delete"),
        message(1, [({"Hologram": 1}, "Null")] * 20),
        message(1, [({"String": "WITH RECURSIVE"}, "Null")] * 20),
    ],
)
def test_others_are_as_they_were(text: bytes) -> None:
    (record,) = parsed([text])
    assert record == Record.parse(text, where="")


def test_what_is_no_record_is_refused() -> None:
    with pytest.raises(PromiseError, match="not a record"):
        RecordParser().parse(b"{}", where="")
