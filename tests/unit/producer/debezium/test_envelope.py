"""Messages of a record in Debezium's format."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cdc.config.debezium import Debezium
from cdc.model.position import Position
from cdc.model.record import KeyRange, Record, Row, Uri
from cdc.producer.debezium.envelope import Envelopes, TableDetails, java_partition
from cdc.producer.debezium.message import DebeziumMessage

DETAILS = TableDetails(("int", "int"))


def number(value: int) -> dict[str, int]:
    return {"SignedInteger": value}


def record(operation: str, *rows: Row, **more: Any) -> Record:
    settings: dict[str, Any] = {"columns": ("id", "v"), "key": ("id",), "transaction": "uuid:1"} | more
    transaction = settings.pop("transaction")
    uri = Uri("leader", "d", "t")
    return Record(uri, 7, Position("binlog.1", 100), transaction, 0, True, 1_000_001, operation, rows=rows, **settings)


def messages(made: Record, envelopes: Envelopes | None = None) -> list[DebeziumMessage]:
    envelopes = envelopes or Envelopes(prefix="p", modes=Debezium())
    return list(envelopes.messages(made, DETAILS, server_id=3, thread=9, now_ns=5_000_000_000))


def values(found: list[DebeziumMessage]) -> list[Any]:
    return [each.value and json.loads(each.value) for each in found]


def test_an_update_keeps_its_key_or_becomes_a_deletion_and_a_creation() -> None:
    same = Row([number(1), number(2)], [number(1), number(3)])
    moved = Row([number(1), number(3)], [number(2), number(3)])
    found = messages(record("Update", same, moved))
    assert [each and each["op"] for each in values(found)] == ["u", "d", None, "c"]
    assert [each.key for each in found] == [b'{"id":1}'] * 3 + [b'{"id":2}']
    assert [each.headers for each in found] == [
        [], [("__debezium.newkey", b'{"id":2}')], [("__debezium.newkey", b'{"id":2}')],
        [("__debezium.oldkey", b'{"id":1}')],
    ]  # fmt: skip
    assert [each["source"]["row"] for each in values(found) if each] == [0, 1, 1]


def test_rows_of_one_event_are_counted_over_its_records() -> None:
    envelopes = Envelopes(prefix="p", modes=Debezium(tombstones_on_delete=False))
    row = Row([number(1), number(2)], None)
    counted = [
        each["source"]["row"] for _ in range(2) for each in values(messages(record("Delete", row, row), envelopes))
    ]
    assert counted == [0, 1, 2, 3]


def test_a_table_without_a_key_and_a_copy() -> None:
    (found,) = messages(record("Add", Row(None, [number(1), number(2)]), key=None))
    assert (found.topic, found.key) == ("p.d.t", None)
    chunk = record("Copy", Row(None, [number(1), number(2)]), range=KeyRange(None, None), transaction="copy:7")
    (value,) = values(messages(chunk))
    assert (value["op"], value["source"]["snapshot"], value["source"]["gtid"]) == ("r", "incremental", None)
    assert messages(record("Query")) == []


def test_a_position_is_no_gtid() -> None:
    row = Row(None, [number(1), number(2)])
    (value,) = values(messages(record("Add", row, transaction="binlog.1:4")))
    assert value["source"]["gtid"] is None
    for gtid in ("3e11fa47-71ca-11e1-9e33-c80aa9429562:1", "0-1-5"):
        (value,) = values(messages(record("Add", row, transaction=gtid)))
        assert value["source"]["gtid"] == gtid


def test_partitions_are_those_of_javas_client() -> None:
    # Known values of murmur2 in Kafka's own tests (UtilsTest.testMurmur2).
    assert java_partition(b"21", 1 << 31, number=0) == -973932308 & 0x7FFFFFFF
    assert java_partition(b"foobar", 1 << 31, number=0) == -790332482 & 0x7FFFFFFF
    assert java_partition(b"a-little-bit-long-string", 1 << 31, number=0) == -985981536 & 0x7FFFFFFF
    assert [java_partition(None, 3, number=each) for each in range(4)] == [0, 1, 2, 0]


@given(st.binary(max_size=40), st.integers(1, 50))
def test_a_key_has_one_partition(key: bytes, partitions: int) -> None:
    assert java_partition(key, partitions, number=1) == java_partition(key, partitions, number=2) < partitions
