"""Steps become SQL of any size, with the changes that it makes; data/changes.txt has the SQL of each kind of step."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.consumer.literals.values import exact, identifier, literal, quoted
from cdc.consumer.plan.packets import PACKET_BYTES, Statement, larger_packet, packets
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


def test_prepared_statements_name_all_changes_and_those_that_scan() -> None:
    changes = [change("Delete", [n(1), n(2)], key=None)] * 2
    prepared = [(b"SELECT 1", None), (b"DELETE FROM t", 2)]
    found = list(statements([Step("Remove", changes, prepared=prepared)], generated=nothing_generated))
    assert found == [
        Statement(b"SELECT 1", None, changes, scans=False), Statement(b"DELETE FROM t", 2, changes, scans=True)
    ]  # fmt: skip


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
        "CAST(JSON_OBJECT('a''b',JSON_ARRAY(CAST('1' AS JSON),1.5e0,CAST('null' AS JSON),"
        "CAST(-1.50 AS DECIMAL(65,2)))) AS JSON)"
    )


def test_few_documents_that_are_subqueries_share_a_statement() -> None:
    document = {"JsonTyped": {"Opaque": {"type": 254, "base64": "AA=="}}}
    counts = [rows for _, rows in sql(*[change("Add", [n(1), document]) for _ in range(1200)])]
    assert sum(filter(None, counts)) == 1200
    assert 300 < max(filter(None, counts)) <= 500


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


@pytest.mark.parametrize("operation", ["Update", "Delete"])
def test_rows_without_a_key_are_compared_by_nothing_else(operation: str) -> None:
    step = Step(operation, [change(operation, [n(1), n(2)], [n(1), n(3)], key=None)])
    plain = list(statements([step], generated=only("")))
    assert list(statements([step], generated=only(""), comparable=lambda uri: frozenset("ab"))) == plain


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
