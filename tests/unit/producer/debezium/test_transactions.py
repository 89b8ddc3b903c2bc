"""Messages about the begins and ends of transactions, also of those that a restart divides."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.debezium import Debezium
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri
from cdc.producer.debezium.envelope import Envelopes, TableDetails

MODES = Debezium(provide_transaction_metadata=True)
DETAILS = TableDetails(("int",))


def record(table: str, rows: int, *, transaction: str = "uuid:1", last: bool = False, operation: str = "Add") -> Record:
    images = tuple(Row(None, [{"SignedInteger": number}]) for number in range(rows))
    return Record(
        Uri("leader", "d", table if rows else None), 7, Position("binlog.1", 100), transaction, 0, last, 2_000_001,
        operation if rows else "Query", columns=("id",), rows=images,
    )  # fmt: skip


def told(envelopes: Envelopes, *records: Record) -> Iterator[Any]:
    """Returns a short form of the messages about transactions."""
    for each in records:
        found = list(envelopes.messages(each, DETAILS, server_id=3, thread=9, now_ns=1))
        if (ended := envelopes.ended(each)) is not None:
            found.append(ended)
        for message in found:
            value = json.loads(message.value or b"")
            if message.topic != "p.transaction":
                block = value["transaction"]
                yield block and tuple(block.values())
                continue
            assert json.loads(message.key or b"") == {"id": value["id"]}
            assert value["ts_ms"] == 2000
            counts = value["data_collections"]
            tables = counts and {one["data_collection"]: one["event_count"] for one in counts}
            yield value["status"], value["id"], value["event_count"], tables


def test_a_transaction_begins_and_ends_around_its_messages() -> None:
    envelopes = Envelopes(prefix="p", modes=MODES)
    found = told(
        envelopes, record("b", 1), record("a", 2), record("b", 1, last=True), record("a", 0, transaction="uuid:2",
        last=True), record("a", 1, transaction="copy:1", last=True, operation="Copy"),
        record("a", 1, transaction="uuid:3"), record("a", 0, transaction="uuid:3", last=True),
    )  # fmt: skip
    assert list(found) == [
        ("BEGIN", "uuid:1", None, None), ("uuid:1", 1, 1), ("uuid:1", 2, 1), ("uuid:1", 3, 2), ("uuid:1", 4, 2),
        ("END", "uuid:1", 4, {"d.a": 2, "d.b": 2}), None, ("BEGIN", "uuid:3", None, None), ("uuid:3", 1, 1),
        ("END", "uuid:3", 1, {"d.a": 1}),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3)), min_size=1, max_size=6), st.data())
def test_a_restart_in_a_transaction_changes_no_message(records: list[tuple[str, int]], data: st.DataObject) -> None:
    made = [record(*each, last=at == len(records) - 1) for at, each in enumerate(records)]
    whole = list(told(Envelopes(prefix="p", modes=MODES), *made))
    cut = data.draw(st.integers(1, len(records)))
    first = Envelopes(prefix="p", modes=MODES)
    parts = list(told(first, *made[:cut]))
    if cut < len(records):
        assert first.counts is not None
        state = json.loads(json.dumps(first.counts.state("uuid:1")))
        parts += told(Envelopes(prefix="p", modes=MODES, committed=("uuid:1", state)), *made[cut:])
    assert parts == whole


def test_a_part_that_was_not_counted_has_no_wrong_sum() -> None:
    """As after an upgrade, or when the format is switched on, amid a large transaction."""
    envelopes = Envelopes(prefix="p", modes=MODES, committed=("uuid:1", {}))
    assert list(told(envelopes, record("a", 1))) == [("uuid:1", 1, 1)]
    assert envelopes.counts is not None
    assert envelopes.counts.state("uuid:1") == {}
    ends = told(envelopes, record("a", 1, last=True), record("a", 1, transaction="uuid:2", last=True))
    assert list(ends) == [
        ("uuid:1", 2, 2), ("END", "uuid:1", None, None), ("BEGIN", "uuid:2", None, None), ("uuid:2", 1, 1),
        ("END", "uuid:2", 1, {"d.a": 1}),
    ]  # fmt: skip


@pytest.mark.parametrize("schemas", [False, True])
def test_both_forms(schemas: bool) -> None:
    modes = Debezium(provide_transaction_metadata=True, schemas_enable=schemas)
    found = next(Envelopes(prefix="p", modes=modes).messages(record("a", 1), DETAILS, server_id=3, thread=9, now_ns=1))
    value = json.loads(found.value or b"")
    if schemas:
        value, schema = value["payload"], value["schema"]
        assert [each["field"] for each in schema["fields"]] == list(value)
        assert json.loads(found.key or b"")["payload"] == {"id": "uuid:1"}
    assert value["status"] == "BEGIN"
