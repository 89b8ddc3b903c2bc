"""Messages about statements; Debezium's own are compared in integration/producer/test_debezium.py."""

import json
from typing import Any

import pytest

from cdc.config.debezium import Debezium
from cdc.model.position import Position
from cdc.model.record import Record, Uri
from cdc.producer.debezium.envelope import Envelopes
from cdc.producer.debezium.schema_changes import ShownColumn, ShownTable
from cdc.sql.statement import classify

SHOWN = ShownTable("utf8mb4", ("id",), (ShownColumn("id", "int unsigned", None, False, True, None),))


def messages(text: str, *, transaction: str = "uuid:1", schemas: bool = False, certain: bool = True) -> list[Any]:
    _, effects = classify(text, database="d", ansi_quotes=False)
    affects = tuple(
        {"action": each.action, "uri": str(Uri("leader", each.database, each.name))}
        | ({"to": str(Uri("leader", *each.to))} if each.to else {})
        for each in effects
    )
    record = Record(
        Uri("leader", "d"), 7, Position("binlog.1", 100), transaction, 0, True, 1_234_567, "Query", query=text,
        affects=affects,
    )  # fmt: skip
    changes = Envelopes(prefix="p", modes=Debezium(include_schema_changes=True, schemas_enable=schemas)).schema_changes
    assert changes is not None
    made = changes.messages(record, lambda _: SHOWN if certain else None, server_id=3, now_ns=5_000_000)
    found = list(made)
    assert {each.topic for each in found} <= {"p"}
    return [(json.loads(each.key or b""), json.loads(each.value or b"")) for each in found]


@pytest.mark.parametrize(
    ("text", "expected", "named"),
    [
        ("CREATE TABLE t (id INT)", [("CREATE TABLE t (id INT)", [("CREATE", '"d"."t"')])], "t"),
        ("ALTER TABLE `a\"b` ADD c INT", [('ALTER TABLE `a"b` ADD c INT', [("ALTER", '"d"."a""b"')])], 'a"b'),
        ("ALTER TABLE t ADD c INT, RENAME TO u", [
            ("ALTER TABLE t ADD c INT, RENAME TO u", [("ALTER", '"d"."u"')])], "u"),
        ("/* why */ RENAME TABLE t TO `u,v`, e.x TO e.y", [
            ("RENAME TABLE t TO `u,v`", [("ALTER", '"d"."u,v"')]), ("RENAME TABLE e.x TO e.y", [("ALTER", '"e"."y"')]),
        ], "u,v,y"),
        ("DROP TABLE IF EXISTS t, `a``b`", [
            ("DROP TABLE IF EXISTS `d`.`t`", [("DROP", '"d"."t"')]),
            ("DROP TABLE IF EXISTS `d`.`a``b`", [("DROP", '"d"."a`b"')]),
        ], "a`b,t"),
        ("CREATE INDEX i ON t (id)", [("CREATE INDEX i ON t (id)", [])], ""),
        ("CREATE DATABASE e", [("CREATE DATABASE e", [])], None),
        ("TRUNCATE TABLE t", [], None),
        ("CREATE VIEW v AS SELECT 1", [], None),
        ("DROP VIEW v", [], None),
    ],
)  # fmt: skip
def test_each_kind_of_statement(text: str, expected: list[Any], named: str | None) -> None:
    found = messages(text)
    kinds = [(value["ddl"], [(each["type"], each["id"]) for each in value["tableChanges"]]) for _, value in found]
    assert kinds == expected
    for key, value in found:
        assert key == {"databaseName": value["databaseName"]}
        assert value["source"]["table"] == named
        assert value["source"]["db"] == value["databaseName"]
        assert (value["source"]["ts_us"], value["source"]["snapshot"]) == (1_234_000, "false")


def test_a_definition_that_is_not_certain_is_left_out() -> None:
    ((_, known),), ((_, unknown),) = (
        messages("ALTER TABLE t ADD c INT"),
        messages("ALTER TABLE t ADD c INT", certain=False),
    )
    (column,) = known["tableChanges"][0]["table"]["columns"]
    assert (column["typeName"], column["jdbcType"], column["autoIncremented"]) == ("INT UNSIGNED", 4, True)
    assert unknown["tableChanges"] == [{"type": "ALTER", "id": '"d"."t"', "table": None}]
    ((_, dropped),) = messages("DROP TABLE t")
    assert dropped["tableChanges"][0]["table"] is None


def test_a_copy_and_the_schemas() -> None:
    text = "CREATE TABLE IF NOT EXISTS `t` (`id` int)"
    ((key, value),) = messages(text, transaction="copy:7", schemas=True)
    assert value["payload"]["ddl"] == "CREATE TABLE `t` (`id` int)"
    assert (value["payload"]["source"]["snapshot"], value["payload"]["source"]["gtid"]) == ("true", None)
    assert [each["field"] for each in value["schema"]["fields"]] == list(value["payload"])
    of_table = value["schema"]["fields"][-1]["items"]["fields"][-1]
    assert [each["field"] for each in of_table["fields"]] == list(value["payload"]["tableChanges"][0]["table"])
    assert key["schema"]["name"] == "io.debezium.connector.mysql.SchemaChangeKey"


@pytest.mark.parametrize(
    ("type_", "default", "expected"),
    [
        ("decimal(10,2) unsigned zerofill", "1.50", ("DECIMAL UNSIGNED ZEROFILL", 10, 2, "1.50", None)),
        ("set('a','b''c')", "a", ("SET", 3, None, "a", ["'a'", "'b'c'"])),
        ("enum('(1)')", None, ("ENUM", 1, None, None, ["'(1)'"])),
        ("geomcollection", None, ("GEOMETRYCOLLECTION", None, None, None, None)),
        ("bit(3)", "b'101'", ("BIT", 3, None, "101", None)),
        ("datetime(6)", None, ("DATETIME", 6, None, None, None)),
    ],
)  # fmt: skip
def test_columns(type_: str, default: str | None, expected: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    column = ShownColumn("c", type_, None, True, False, default)
    monkeypatch.setattr(f"{__name__}.SHOWN", SHOWN._replace(columns=(column,)))
    ((_, value),) = messages("CREATE TABLE t (c INT)")
    (found,) = value["tableChanges"][0]["table"]["columns"]
    names = ("typeName", "length", "scale", "defaultValueExpression", "enumValues")
    assert tuple(found[name] for name in names) == expected
