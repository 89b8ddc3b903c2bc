"""Steps become SQL: every value a literal, every name quoted, every statement with the rows it must match."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.consumer.literals.rounded import Rounded
from cdc.consumer.literals.values import DEFAULT, exact, identifier, literal, quoted
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, larger_packet, packets
from cdc.consumer.plan.planner import Change, Step, in_order
from cdc.consumer.plan.statements import single, statements
from cdc.errors import PromiseError
from cdc.model.position import Position
from cdc.model.record import Record, Row, Uri
from cdc.model.values import Value

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


@pytest.mark.parametrize("kind", ["Enum", "Set"])
def test_members_that_are_told_by_number_are_updated_by_number(kind: str) -> None:
    """The server makes texts of them otherwise, and the text of a SET's 3 is that of its 2, where '' is a member."""
    changes = [change("Update", [{kind: 3}, "Null"], [{kind: 3}, value]) for value in ("Null", {kind: 2})]
    (found,) = statements([Step("Upsert", changes)], generated=nothing_generated)
    assert found.sql.decode().endswith(
        "`a`=IF(`db`.`t`.`a`=`n`.`a`,CAST(`db`.`t`.`a` AS UNSIGNED),NULL),`b`=CAST(`n`.`b` AS UNSIGNED)"
    )


def test_the_key_is_looked_at_before_other_columns_are_changed() -> None:
    """Wherever it stands: a row that is found by another unique key must not be changed."""
    changes = [change("Update", [n(2), n(1)], [n(3), n(1)], key=("b",))]
    (found,) = statements([Step("Upsert", changes)], generated=nothing_generated)
    assert found.sql.decode().endswith(
        "ON DUPLICATE KEY UPDATE `b`=IF(`db`.`t`.`b`=`n`.`b`,`db`.`t`.`b`,NULL),`a`=`n`.`a`"
    )


def test_prepared_statements_name_all_changes_and_those_that_scan() -> None:
    changes = [change("Delete", [n(1), n(2)], key=None)] * 2
    prepared = [(b"SELECT 1", None), (b"DELETE FROM t", 2)]
    found = list(statements([Step("Remove", changes, prepared=prepared)], generated=nothing_generated))
    assert found == [
        Statement(b"SELECT 1", None, changes, scans=False), Statement(b"DELETE FROM t", 2, changes, scans=True)
    ]  # fmt: skip


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


@given(st.lists(st.booleans(), max_size=100))
@example([True] * 41)
def test_a_packet_has_few_statements_that_scan_a_table(scans: list[bool]) -> None:
    source = [Statement(b"x", scans=each) for each in scans]
    found = list(packets(source, limit=1000))
    assert [statement for packet in found for statement in packet] == source
    assert len(found) == max(-(-sum(scans) // 20), 1 if scans else 0)


@pytest.mark.parametrize("operation", ["Update", "Delete", "Remove"])
def test_rows_without_a_key_need_a_scan_each(operation: str) -> None:
    (found,) = statements(
        [Step(operation, [change("Update", [n(1), n(2)], [n(1), n(3)], key=None)])], generated=nothing_generated
    )
    assert found.scans
    (found,) = statements([Step("Update", [change("Update", [n(1), n(2)], [n(1), n(3)])])], generated=nothing_generated)
    assert not found.scans


def test_a_row_too_large_for_the_follower_is_named() -> None:
    large = single(change("Add", [n(1), {"String": "x" * 2000}]), generated=nothing_generated)
    with pytest.raises(
        PromiseError, match=r"a row of flv://srv/db/t needs a statement of 20\d\d bytes, but the follower accepts 1024"
    ) as caught:
        list(packets([large], limit=1024))
    assert "sequence 7" in caught.value.where
    assert "max_allowed_packet = 4096" in caught.value.hint


def test_no_larger_packet_is_proposed_than_mysql_has() -> None:
    assert "max_allowed_packet = 1073741824" in larger_packet((1 << 30) - 1025)
    assert "by hand" in larger_packet(1 << 30)


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


T = Uri("srv", "db", "t")


def only(generated: str) -> Any:
    """The generated columns of the table ``t``; another table is not asked for."""
    return lambda uri: frozenset(generated) if uri == T else pytest.fail(f"asked for {uri}")


NUMBERS = [n(key) for key in range(95, 125)]
MEMBER = {"Enum": 1}
# Thirty rows for each way to find or write rows, whether they are compared with their
# before-images, and how many bytes more than their text must be free: each compared text counts as the longest one.
THIRTY = [
    (Step("Add", [change("Add", [key, n(1)]) for key in NUMBERS]), False, 1),
    (Step("Upsert", [change("Update", [key, n(1)], [key, n(2)]) for key in NUMBERS]), False, 1),
    (Step("Delete", [change("Delete", [key, n(1)]) for key in NUMBERS]), False, 1),
    (Step("Delete", [change("Delete", [key, key], key=("a", "b")) for key in NUMBERS]), False, 1),
    (Step("Delete", [change("Delete", [key, MEMBER], key=("a", "b")) for key in NUMBERS]), False, 1),
    (Step("Delete", [change("Delete", [key, n(value)]) for value, key in enumerate(NUMBERS)]), True, 18),
    (Step("Delete", [change("Delete", [key, MEMBER], key=("a", "b")) for key in NUMBERS]), True, 11),
    (Step("Delete", [change("Delete", [key, n(1)]) for key in NUMBERS], modes=""), True, 8),
]


def sized(step: Step, size: int, *, compared: bool) -> list[Statement]:
    """The statements that change rows, or those that compare them."""
    comparable = (lambda uri: frozenset("ab")) if compared else None
    found = statements([step], generated=only(""), comparable=comparable, size=size)
    return [each for each in found if each.changes and (b"CONCAT_WS" in each.sql) == compared]


@pytest.mark.parametrize(("step", "compared", "spare"), THIRTY)
def test_statements_of_many_rows_are_as_large_as_they_may_be_and_no_larger(
    step: Step, compared: bool, spare: int
) -> None:
    (whole,) = sized(step, PACKET_BYTES, compared=compared)
    counts = []
    for size in range(1, len(whole.sql) + 80):
        found = sized(step, size, compared=compared)
        assert [each for statement in found for each in statement.changes] == list(whole.changes)
        assert all(len(each.sql) < size for each in found if len(each.changes) > 1)
        counts.append(len(found))
    assert (counts[0], counts[-1]) == (30, 1)
    assert counts.index(1) + 1 == len(whole.sql) + spare


def test_a_thousand_keys_are_deleted_or_compared_by_one_statement() -> None:
    step = Step("Delete", [change("Delete", [n(key), n(0)]) for key in range(2001)])
    found = list(statements([step], generated=only(""), comparable=lambda uri: frozenset("b")))
    assert [each.rows for each in found] == [1000, 1000, 1, 1000, 1000, 1]
    assert [len(each.changes) for each in found] == [1000, 1000, 1, 1000, 1000, 1]


@pytest.mark.parametrize(
    ("operation", "key"), [("Add", KEYED), ("Update", KEYED), ("Delete", KEYED), ("Add", None), ("Delete", None)]
)
def test_a_statement_names_the_changes_that_it_makes(operation: str, key: tuple[str, ...] | None) -> None:
    changes = [change(operation, [n(1), n(2)], key=key), change(operation, [n(3), n(4)], key=key)]
    found = list(statements([Step(operation, changes)], generated=only("")))
    assert [each for statement in found for each in statement.changes] == changes
    assert [statement.rows for statement in found] == [len(statement.changes) for statement in found]


@pytest.mark.parametrize("operation", ["Upsert", "Absent"])
def test_steps_of_the_planners_own_name_their_changes_too(operation: str) -> None:
    changes = [change("Update", [n(1), n(2)], [n(1), n(3)])]
    (found,) = statements([Step(operation, changes)], generated=only(""))
    assert found.changes == changes


def test_a_single_change_does_not_write_what_the_follower_computes() -> None:
    found = single(change("Add", [n(1), n(2)]), generated=only("b"))
    assert (found.sql, found.rows) == (b"INSERT INTO `db`.`t` (`a`) VALUES (1)", 1)
    assert single(change("Update", [n(1), n(2)], [n(1), n(3)]), generated=only("")).sql == (
        b"UPDATE `db`.`t` SET `a`=1,`b`=3 WHERE `a`=1"
    )


@pytest.mark.parametrize(("table", "alias"), [("t", "n"), ("n", "m"), ("N", "m"), ("m", "n")])
def test_new_values_have_another_name_than_their_table(table: str, alias: str) -> None:
    record = change("Update", [n(1), n(2)], [n(1), n(3)]).record
    renamed = replace(record, uri=Uri("srv", "db", table))
    (found,) = statements([Step("Upsert", [Change(renamed, record.rows[0])])], generated=lambda uri: frozenset())
    assert f" AS `{alias}` ON DUPLICATE KEY UPDATE `a`=IF(`db`.`{table}`.`a`=`{alias}`.`a`," in found.sql.decode()
    assert found.sql.decode().endswith(f",`b`=`{alias}`.`b`")


def test_keys_of_several_columns_are_deleted_by_a_list_of_rows() -> None:
    changes = [change("Delete", [n(key), {"String": "x"}], key=("b", "a")) for key in (1, 2)]
    assert sql(*changes) == [("DELETE FROM `db`.`t` WHERE (`b`,`a`) IN (('x',1),('x',2))", 2)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"Time": {"negative": False, "hour": 1, "minute": 2, "second": 3, "subsecond": 0}}, "'01:02:03'"),
        ({"Decimal": "1.50"}, "1.50"),
        ({"Double": 1.5}, "1.5e0"),
        ({"Date": {"year": 2024, "month": 2, "day": 9}}, "'2024-02-09'"),
        ({"Year": 2024}, "2024"),
        ({"Bit": 1}, "1"),
    ],
)
def test_keys_of_other_types_are_compared_one_by_one(value: Any, text: str) -> None:
    changes = [change("Delete", [value, n(2)]), change("Delete", [value, n(3)])]
    assert sql(*changes) == [(f"DELETE FROM `db`.`t` WHERE (`a`={text}) OR (`a`={text})", 2)]


@pytest.mark.parametrize("value", [n(1), {"UnsignedInteger": 1}, {"String": "a"}, {"Blob": "AP8="}])
def test_keys_of_the_usual_types_are_compared_in_a_list(value: Any) -> None:
    ((text, _),) = sql(change("Delete", [value, n(2)]))
    assert text == f"DELETE FROM `db`.`t` WHERE (`a`) IN (({literal(value)}))"


def test_updates_find_rows_as_they_were_where_that_is_asked_for() -> None:
    step = Step("Update", [change("Update", [n(1), n(2)], [n(1), n(3)])])
    (found,) = statements(
        [step], generated=only(""), comparable=lambda uri: frozenset("b") if uri == T else frozenset()
    )
    assert found.sql.decode() == (
        "UPDATE `db`.`t` SET `a`=1,`b`=3 WHERE `a`=1 AND CAST(CONCAT_WS(',',IFNULL(`b`+0,'NULL')) AS BINARY)='2'"
    )


@pytest.mark.parametrize("operation", ["Update", "Delete"])
def test_rows_without_a_key_are_compared_by_nothing_else(operation: str) -> None:
    step = Step(operation, [change(operation, [n(1), n(2)], [n(1), n(3)], key=None)])
    plain = list(statements([step], generated=only("")))
    assert list(statements([step], generated=only(""), comparable=lambda uri: frozenset("ab"))) == plain


@pytest.mark.parametrize("operation", ["Add", "Upsert", "Update"])
def test_computed_values_are_looked_up_after_they_were_written(operation: str) -> None:
    written = change("Add" if operation == "Add" else "Update", [n(1), n(2)], [n(1), n(3)])
    step = Step(operation, [written], modes="NO_ZERO_DATE", verified=frozenset("b"))
    mode, write, back, look = statements([step], generated=only("b"))
    assert mode.sql == b"SET SESSION sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ZERO_DATE'"
    assert write.rows == (2 if operation == "Upsert" else 1)
    assert back.sql == b"SET SESSION sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"
    assert look.sql.decode() == (
        "SELECT 1 FROM `db`.`t` WHERE ((`a`) IN ((1))) AND CAST(CONCAT_WS(',',IFNULL(`b`+0,'NULL')) AS BINARY) "
        "IN ('3') FOR UPDATE"
    )
    assert look.rows == 1
    assert [each.record for each in look.changes] == [written.record]


def test_computed_values_of_rows_that_go_or_have_no_key_are_not_looked_up() -> None:
    mode = b"SET SESSION sql_mode='NO_AUTO_VALUE_ON_ZERO,NO_ZERO_DATE'"
    back = b"SET SESSION sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"
    for operation in ("Delete", "Absent"):
        gone = Step(operation, [change("Delete", [n(1), n(2)])], modes="NO_ZERO_DATE", verified=frozenset("b"))
        first, delete, last = statements([gone], generated=only("b"))
        assert (first.sql, delete.sql[:6], last.sql) == (mode, b"DELETE", back)
    keyless = Step("Add", [change("Add", [n(1), n(2)], key=None)], modes="", verified=frozenset("b"))
    found = [each.sql for each in statements([keyless], generated=only("b"))]
    assert found == [
        b"SET SESSION sql_mode='STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'",
        b"INSERT INTO `db`.`t` (`a`) VALUES (1)",
        back,
    ]


def test_only_added_rows_are_padded() -> None:
    added = Step("Add", [change("Add", [n(1), n(2)])], modes="PAD_CHAR_TO_FULL_LENGTH")
    changed = Step("Update", [change("Update", [n(1), n(2)], [n(1), n(3)])], modes="PAD_CHAR_TO_FULL_LENGTH")
    gone = Step("Delete", [change("Delete", [n(1), n(2)])], modes="PAD_CHAR_TO_FULL_LENGTH")
    found = [each.sql for each in statements([added, changed, gone], generated=only(""))]
    assert [each.decode().partition("=")[2] for each in found if each.startswith(b"SET")] == [
        "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,PAD_CHAR_TO_FULL_LENGTH'",
        "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'",
        "'NO_AUTO_VALUE_ON_ZERO'",
        "'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    ]


def test_the_mode_is_set_once_for_steps_that_share_it() -> None:
    steps = [Step("Add", [change("Add", [n(key), n(2)])], modes="") for key in (1, 2)]
    found = [each.sql[:3] for each in statements(steps, generated=only(""))]
    assert found == [b"SET", b"INS", b"INS", b"SET"]


@pytest.mark.parametrize(
    ("operation", "given", "image"),
    [
        ("Delete", "Add", "before"), ("Update", "Add", "before"), ("Upsert", "Delete", "after"),
        ("Add", "Delete", "after"), ("Update", "Delete", "after"),
    ],
)  # fmt: skip
def test_an_image_that_a_step_needs_and_a_record_has_not(operation: str, given: str, image: str) -> None:
    step = Step(operation, [change(given, [n(1), n(2)])])
    with pytest.raises(PromiseError) as caught:
        list(statements([step], generated=only("")))
    article = "an" if image == "after" else "a"
    assert caught.value.what.endswith(f" cannot be applied: a row without {article} {image}-image")
    assert "sequence 7" in caught.value.where


def test_a_value_that_cannot_be_compared_is_named_with_its_error() -> None:
    step = Step("Delete", [change("Delete", [n(1), {"SignedInteger": "x"}])])
    with pytest.raises(PromiseError, match=r"ValueError: invalid literal for int\(\)"):
        list(statements([step], generated=only(""), comparable=lambda uri: frozenset("b")))


DIGITS = {"b": Rounded("FLOAT UNSIGNED", 9, 3)}
NUMBERS = (
    "JSON_TABLE(JSON_ARRAY(1.5e0),'$' COLUMNS (c0_0 FLOAT UNSIGNED PATH '$[0]' ERROR ON EMPTY ERROR ON ERROR)) AS n"
)


def f(value: float) -> Value:
    return {"Float": value}


def test_numbers_that_the_server_would_round_are_copied_from_a_column() -> None:
    changes = [change("Add", [n(1), f(1.5)]), change("Add", [n(2), "Null"])]
    found = [each.sql.decode() for each in statements([Step("Add", changes, rounded=DIGITS)], generated=only(""))]
    assert found == [
        f"INSERT INTO `db`.`t` (`a`,`b`) SELECT 1,n.c0_0 FROM {NUMBERS}",
        "INSERT INTO `db`.`t` (`a`,`b`) SELECT 2,NULL FROM (SELECT 1) AS n",
    ]
    step = Step("Update", [change("Update", [n(1), f(2.0)], [n(3), f(1.5)])], rounded=DIGITS)
    (update,) = statements([step], generated=only(""))
    assert update.sql.decode() == (f"UPDATE `db`.`t` JOIN {NUMBERS} SET `db`.`t`.`a`=3,`db`.`t`.`b`=n.c0_0 WHERE `a`=1")


def test_a_column_without_a_value_is_left_out_where_numbers_are_copied() -> None:
    (found,) = statements([Step("Add", [change("Add", [DEFAULT, f(1.5)])], rounded=DIGITS)], generated=only(""))
    assert found.sql.decode() == f"INSERT INTO `db`.`t` (`b`) SELECT n.c0_0 FROM {NUMBERS}"


def test_of_rows_without_a_key_one_is_replaced_by_the_one_with_copied_numbers() -> None:
    step = Step("Update", [change("Update", [n(1), f(2.0)], [n(3), f(1.5)], key=None)], rounded=DIGITS)
    found = [(each.sql.decode(), each.rows) for each in statements([step], generated=only(""))]
    assert found == [
        ("DELETE FROM `db`.`t` WHERE `a`=1 AND `b`+0e0=2.0e0 LIMIT 1", 1),
        (f"INSERT INTO `db`.`t` (`a`,`b`) SELECT 3,n.c0_0 FROM {NUMBERS}", 1),
    ]


@pytest.mark.parametrize(
    ("number", "condition"),
    [
        (3.25, "`b` BETWEEN 3.248e0 AND 3.252e0 AND `b`+0e0=3.25e0"),
        (1e6, "`b`+0e0=1000000.0e0"),  # no column of these digits has the ends of a range around it
    ],
)
def test_a_key_of_digits_is_found_by_a_range_around_it(number: float, condition: str) -> None:
    step = Step("Delete", [change("Delete", [n(1), f(number)], key=("b",))], rounded=DIGITS)
    (found,) = statements([step], generated=only(""))
    assert found.sql.decode() == f"DELETE FROM `db`.`t` WHERE ({condition})"
