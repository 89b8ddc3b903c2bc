"""Steps become SQL: every value a literal, every name quoted, every statement with the rows it must match."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.literals.values import exact, identifier, literal, quoted
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, packets
from cdc.consumer.plan.planner import Change, Step, in_order
from cdc.consumer.plan.statements import single, statements
from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri

KEYED: tuple[str, ...] = ("a",)


def change(
    operation: str, *images: list[Any], key: tuple[str, ...] | None = KEYED, columns: str = "ab", flags: int = 0
) -> Change:
    before = images[0] if operation in ("Update", "Delete") else None
    after = images[-1] if operation in ("Update", "Add") else None
    record = Record(
        uri=Uri("srv", "db", "t"),
        sequence=7,
        position=Position("binlog.000001", 4),
        transaction="uuid:1",
        index=0,
        last=True,
        ts_us=0,
        operation=operation,
        columns=tuple(columns),
        key=key,
        rows=(Row(before, after),),
        flags=flags,
    )
    return Change(record, record.rows[0])


def nothing_generated(uri: Uri) -> frozenset[str]:
    return frozenset()


def sql(
    *changes: Change, generated: frozenset[str] = frozenset(), size: int = PACKET_BYTES
) -> list[tuple[str, int | None]]:
    steps = in_order([item.record for item in changes])
    found = statements(steps, generated=lambda uri: generated, size=size)
    return [(statement.sql.decode(), statement.rows) for statement in found]


def n(value: int) -> dict[str, int]:
    return {"SignedInteger": value}


def test_neighbouring_inserts_are_one_statement() -> None:
    assert sql(change("Add", [n(1), n(2)]), change("Add", [n(3), "Null"])) == [
        ("INSERT INTO `db`.`t` (`a`,`b`) VALUES (1,2),(3,NULL)", 2)
    ]


def test_updates_set_every_column_and_match_by_the_key_of_the_before_image() -> None:
    assert sql(change("Update", [n(1), n(2)], [n(9), n(2)])) == [("UPDATE `db`.`t` SET `a`=9,`b`=2 WHERE `a`=1", 1)]


def test_neighbouring_deletes_by_key_are_one_statement() -> None:
    assert sql(change("Delete", [n(1), n(2)]), change("Delete", [n(3), n(2)])) == [
        ("DELETE FROM `db`.`t` WHERE (`a`) IN ((1),(3))", 2)
    ]


def test_rows_whose_keys_stay_are_updated_in_one_statement() -> None:
    changes = [change("Update", [n(key), n(2)], [n(key), n(3)]) for key in (1, 4)]
    (found,) = statements([Step("Upsert", changes)], generated=nothing_generated)
    assert found.sql.decode() == (
        "INSERT INTO `db`.`t` (`a`,`b`) VALUES (1,3),(4,3) AS `n` ON DUPLICATE KEY UPDATE "
        "`a`=IF(`db`.`t`.`a`=`n`.`a`,`db`.`t`.`a`,NULL),`b`=`n`.`b`"
    )
    assert found.rows == 4


def test_a_row_that_came_and_went_must_not_be_there() -> None:
    (found,) = statements([Step("Absent", [change("Delete", [n(1), n(2)])])], generated=nothing_generated)
    assert (found.sql.decode(), found.rows) == ("DELETE FROM `db`.`t` WHERE (`a`) IN ((1))", 0)


def test_a_row_without_a_key_is_one_of_those_that_equal_it_exactly() -> None:
    found = sql(change("Delete", [{"String": "é"}, "Null"], key=None), change("Delete", [n(1), n(2)], key=None))
    text = "`a`='é' AND CAST(CONVERT(`a` USING utf8mb4) AS BINARY)=x'c3a9'"
    assert found == [
        (f"DELETE FROM `db`.`t` WHERE {text} AND `b` IS NULL LIMIT 1", 1),
        ("DELETE FROM `db`.`t` WHERE `a`=1 AND `b`=2 LIMIT 1", 1),
    ]


def test_generated_columns_are_matched_but_never_written() -> None:
    found = sql(
        change("Add", [n(1), n(2)]), change("Update", [n(1), n(2)], [n(1), n(3)], key=("b",)), generated=frozenset("b")
    )
    assert [text for text, _ in found] == [
        "INSERT INTO `db`.`t` (`a`) VALUES (1)",
        "UPDATE `db`.`t` SET `a`=1 WHERE `b`=2",
    ]


def test_the_checks_are_as_each_event_had_them_and_as_before_at_the_end() -> None:
    found = sql(change("Add", [n(1), n(1)], flags=2), change("Add", [n(2), n(2)], flags=4), change("Add", [n(3), n(3)]))
    assert [text for text, _ in found if text.startswith("SET")] == [
        "SET foreign_key_checks=0, unique_checks=1",
        "SET foreign_key_checks=1, unique_checks=0",
        "SET foreign_key_checks=1, unique_checks=1",
    ]
    assert found[-1][0].startswith("INSERT")
    assert sql(change("Add", [n(1), n(1)], flags=2))[-1][0] == "SET foreign_key_checks=1, unique_checks=1"


@given(st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=40), st.integers(1, 400))
def test_any_size_gives_the_same_rows_in_order(values: list[int], size: int) -> None:
    found = sql(*[change("Add", [n(value), n(0)]) for value in values], size=size)
    rows = ",".join(text.partition("VALUES ")[2] for text, _ in found)
    assert rows == ",".join(f"({value},0)" for value in values)
    assert sum(count or 0 for _, count in found) == len(values)
    assert all(len(text) <= max(size, len("INSERT INTO `db`.`t` (`a`,`b`) VALUES (1000000000,0)")) for text, _ in found)


@given(st.lists(st.integers(min_value=1, max_value=50), max_size=40))
def test_packets_keep_the_order_and_the_limit(lengths: list[int]) -> None:
    source = [Statement(b"x" * length) for length in lengths]
    found = list(packets(source, limit=60))
    assert [statement for packet in found for statement in packet] == source
    assert all(len(b";".join(statement.sql for statement in packet)) < 60 for packet in found)


def test_a_row_too_large_for_the_follower_is_named() -> None:
    large = single(change("Add", [n(1), {"String": "x" * 2000}]), generated=nothing_generated)
    with pytest.raises(
        PromiseError, match=r"a row of flv://srv/db/t needs a statement of 20\d\d bytes, but the follower accepts 1024"
    ) as caught:
        list(packets([large], limit=1024))
    assert "sequence 7" in caught.value.where
    assert "max_allowed_packet = 4096" in caught.value.hint


def test_an_unknown_value_stops_with_its_record() -> None:
    step = Step("Add", [change("Add", [n(1), {"Hologram": 1}])])
    with pytest.raises(PromiseError, match="Hologram") as caught:
        list(statements([step], generated=nothing_generated))
    assert "sequence 7" in caught.value.where


@given(st.text())
def test_a_quoted_text_reads_back(text: str) -> None:
    found = quoted(text)
    assert re.fullmatch(r"'(?:[^'\\]|''|\\\\)*'", found)
    assert re.sub(r"''|\\\\", lambda pair: pair[0][0], found[1:-1]) == text


def test_names_are_quoted() -> None:
    assert identifier("a`b") == "`a``b`"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back_and_is_a_double_literal(value: float) -> None:
    found = literal({"Double": value})
    assert "e" in found
    assert float(found) == value
    assert found.startswith("-") == (str(value)[0] == "-")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Null", "NULL"),
        ({"UnsignedInteger": 18446744073709551615}, "18446744073709551615"),
        ({"Decimal": "-0.10"}, "-0.10"),
        ({"String": "it's \\ \n"}, "'it''s \\\\ \n'"),
        ({"Text": {"charset": "sjis", "base64": "g1w="}}, "_sjis x'835c'"),
        ({"Blob": ""}, "x''"),
        ({"Blob": "AP8="}, "x'00ff'"),
        ({"Enum": "a"}, "'a'"),
        ({"Enum": 3}, "3"),
        ({"Set": []}, "''"),
        ({"Set": ["a", "b"]}, "'a,b'"),
        ({"Set": 5}, "5"),
        ({"Bit": 5}, "5"),
        ({"Year": 0}, "0"),
        ({"Date": {"year": 2000, "month": 0, "day": 0}}, "'2000-00-00'"),
        ({"Time": {"negative": True, "hour": 838, "minute": 59, "second": 59, "subsecond": 0}}, "'-838:59:59'"),
        ({"Timestamp": {"unix_time": 0, "subsecond": 0}}, "'0000-00-00 00:00:00'"),
        ({"Timestamp": {"unix_time": 1, "subsecond": 5}}, "'1970-01-01 00:00:01.000005'"),
        ({"Json": {"a": [1, 1.0, None, "it's"]}}, "CAST('{\"a\": [1, 1.0, null, \"it''s\"]}' AS JSON)"),
    ],
)
def test_literals(value: Any, text: str) -> None:
    assert literal(value) == text


@pytest.mark.parametrize(
    "value",
    [{}, {"a": 1, "b": 2}, 5, "null", {"Decimal": "1; DROP"}, {"Text": {"charset": "x'", "base64": ""}}, {"Bit": None}],
)
def test_what_is_no_value_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r".+"):
        literal(value)


def test_zeros_and_error_values_are_told_apart() -> None:
    assert exact("a", {"Double": -0.0}) != exact("a", {"Double": 0.0})
    assert exact("a", {"Enum": 0}) != exact("a", {"Enum": ""})


def test_a_document_with_members_of_sql_types_keeps_them() -> None:
    node = {"object": {"a'b": {"array": [1, 1.5, None, {"Decimal": "-1.50"}]}}}
    assert literal({"JsonTyped": node}) == (
        "CAST(JSON_OBJECT('a''b',JSON_ARRAY(CAST('1' AS JSON),CAST('1.5' AS JSON),CAST('null' AS JSON),"
        "CAST(-1.50 AS DECIMAL(65,2)))) AS JSON)"
    )


def test_few_documents_that_are_subqueries_share_a_statement() -> None:
    document = {"JsonTyped": {"Opaque": {"type": 254, "base64": "AA=="}}}
    counts = [rows for _, rows in sql(*[change("Add", [n(1), document]) for _ in range(1200)])]
    assert sum(filter(None, counts)) == 1200
    assert 300 < max(filter(None, counts)) <= 500


def test_rows_are_deleted_by_keys_of_several_columns_with_an_enum() -> None:
    image = [{"Enum": 3}, {"Enum": ""}]
    assert sql(change("Delete", image, key=("a", "b")), change("Delete", image, key=("a", "b"))) == [
        ("DELETE FROM `db`.`t` WHERE (`a`=3 AND `b`='' AND `b`+0<>0) OR (`a`=3 AND `b`='' AND `b`+0<>0)", 2)
    ]


def test_a_set_with_its_last_member_is_compared_as_a_negative_number() -> None:
    assert exact("a", {"Set": (1 << 64) - 1}) == "`a`=-1"
    assert literal({"Set": (1 << 64) - 1}) == "18446744073709551615"
