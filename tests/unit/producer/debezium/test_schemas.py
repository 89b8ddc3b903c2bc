"""Schemas in Debezium's messages; Debezium's own are compared in integration/producer/test_debezium.py."""

import json
from typing import Any

import pytest

from cdc.config.debezium import Debezium
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri
from cdc.producer.debezium.defaults import ColumnDefault, default_value
from cdc.producer.debezium.envelope import Envelopes, TableDetails
from cdc.producer.debezium.schemas import SchemaColumn, column_schema
from cdc.sql.column_types import read_type

MODES = Debezium(schemas_enable=True)


def record(operation: str, before: int | None, after: int | None) -> Record:
    images = [None if each is None else [{"SignedInteger": each}, {"Enum": 2}] for each in (before, after)]
    return Record(
        Uri("leader", "d", "t"), 7, Position("binlog.1", 100), "uuid:1", 0, True, 1_000_001, operation,
        columns=("id", "e"), key=("id",), rows=[Row(*images)],
    )  # fmt: skip


def test_key_and_value_have_the_schema_of_the_version_of_the_table() -> None:
    details = TableDetails(("int", "enum character set cp1251"), frozenset({0}))
    envelopes = Envelopes(prefix="p", modes=MODES)
    arguments: Any = {"server_id": 3, "thread": 9, "now_ns": 5_000_000_000}
    found = list(envelopes.messages(record("Update", 1, 2), details, **arguments))
    keys, values = ([json.loads(each[at] or b"") for each in found if each[at]] for at in (1, 2))
    assert [each["payload"] for each in keys] == [{"id": 1}, {"id": 1}, {"id": 2}]
    assert found[0].headers == [("__debezium.newkey", b'{"id":2}')], "Connect converts headers without schemas"
    of_id = {"type": "int32", "optional": False, "field": "id"}
    of_key = {"type": "struct", "fields": [of_id], "optional": False, "name": "p.d.t.Key"}
    assert [each["schema"] for each in keys] == [of_key] * 3
    assert [each["payload"]["op"] for each in values] == ["d", "c"]
    assert values[0]["payload"]["before"] == {"id": 1, "e": "2"}, "a member whose text is not known is no number"
    of_value = values[0]["schema"]
    assert (of_value["name"], of_value["version"]) == ("p.d.t.Envelope", 2)
    assert [each["field"] for each in of_value["fields"]] == list(values[0]["payload"])
    assert [each["field"] for each in of_value["fields"][2]["fields"]] == list(values[0]["payload"]["source"])
    (default,) = [each["default"] for each in column_of(envelopes, details, (0, ColumnDefault("int", "5")))]
    assert default == 5, "another version of the table has a schema of its own"


def column_of(envelopes: Envelopes, details: TableDetails, default: tuple[int, ColumnDefault]) -> list[Any]:
    changed = TableDetails(details.types, details.not_null, defaults=(default,))
    (found,) = envelopes.messages(record("Add", None, 3), changed, server_id=3, thread=9, now_ns=1)
    return [each for each in json.loads(found.value or b"")["schema"]["fields"][1]["fields"] if "default" in each]


@pytest.mark.parametrize(
    ("type_", "shown", "expected"),
    [
        ("int", "int", {"SignedInteger": 7}),
        ("tinyint", "tinyint(1)", {"SignedInteger": 7}),
        ("bigint unsigned", "bigint(20) unsigned zerofill", {"UnsignedInteger": 7}),
        ("decimal(5,2)", "decimal(5,2)", {"Decimal": "7.00"}),
        ("decimal(5,2) unsigned", "decimal(5,2) unsigned", {"Decimal": "7.00"}),
        ("float", "float(7,3)", {"Float": 7.0}),
        ("year", "year", {"Year": 7}),
        ("varchar(9) character set latin1", "varchar(9)", {"String": "7"}),
        ("enum('7','8') character set latin1", "enum('7',' unsigned')", {"Enum": "7"}),
        ("set('7') character set latin1", "set('7')", {"Set": ["7"]}),
        # the leader's table has another type by now
        ("int", "bigint", None),
        ("int", "int unsigned", None),
        ("decimal(5,2)", "decimal(5,3)", None),
        ("decimal(5,2)", "decimal(5,2) unsigned", None),
        ("varchar(9) character set latin1", "varchar(10)", None),
        # not in the form of the type
        ("bit(3)", "bit(3)", None),
        ("time", "time", None),
    ],
)
def test_a_default_of_the_column_as_it_was_logged(type_: str, shown: str, expected: Any) -> None:
    assert default_value(type_, ColumnDefault(shown, "7")) == expected


@pytest.mark.parametrize(
    ("type_", "text", "expected"),
    [
        ("bit(3)", "b'101'", {"Bit": 5}),
        ("varbinary(4)", "ab", {"Blob": "YWI="}),
        ("varbinary(4)", "é", None),
        ("varchar(9) character set utf8mb4", "a?", None),
        ("time(1)", "-10:11:12.5", {"Time": {"negative": True, "hour": 10, "minute": 11, "second": 12,
                                             "subsecond": 500_000}}),
        ("date", "2020-01-02", {"Date": {"year": 2020, "month": 1, "day": 2}}),
        ("timestamp", "2020-01-02 03:04:05", {"Timestamp": {"unix_time": 1_577_934_245, "subsecond": 0}}),
        ("timestamp", "0000-00-00 00:00:00", {"Timestamp": {"unix_time": 0, "subsecond": 0}}),
    ],
)  # fmt: skip
def test_a_default_in_the_form_of_the_server(type_: str, text: str, expected: Any) -> None:
    assert default_value(type_, ColumnDefault(type_.partition(" character")[0], text)) == expected


def test_a_geometry_is_optional_and_a_point_is_as_its_column() -> None:
    def optional(*, is_point: bool) -> object:
        column = SchemaColumn("c", read_type("geometry"), nullable=False, is_point=is_point)
        return column_schema(column, Debezium())["optional"]

    assert (optional(is_point=False), optional(is_point=True)) == (True, False)


def test_each_mode_has_its_schema() -> None:
    def name(type_: str, **modes: Any) -> object:
        found = column_schema(SchemaColumn("c", read_type(type_), nullable=True), Debezium(**modes))
        return found.get("name", found["type"])

    assert name("decimal(5,2)") == "org.apache.kafka.connect.data.Decimal"
    assert name("decimal(5,2)", decimal_handling_mode="double") == "double"
    assert name("bigint unsigned") == "int64"
    assert name("bigint unsigned", bigint_unsigned_handling_mode="precise") == "org.apache.kafka.connect.data.Decimal"
    assert name("blob") == "bytes"
    assert name("blob", binary_handling_mode="hex") == "string"
    assert name("datetime(4)") == "io.debezium.time.MicroTimestamp"
    assert name("datetime(4)", time_precision_mode="connect") == "org.apache.kafka.connect.data.Timestamp"
