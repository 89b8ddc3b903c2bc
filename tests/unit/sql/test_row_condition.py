"""Conditions by which rows are left out: how they are written, and for which values they are true."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.sql.row_condition import RowCondition, Term

TEXT = "varchar(9) character set utf8mb4"
ENUM = "enum('a','B','it''s') character set utf8mb4"


def day(year: int, month: int, number: int) -> dict[str, Any]:
    return {"year": year, "month": month, "day": number}


def is_true(condition: str, kind: str, value: Any) -> bool:
    return RowCondition.parse(condition).compiled([("Other", "int"), ("C", kind)])([{"SignedInteger": 1}, value])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("region = 'EU' AND amount >= 10", "amount >= 10 AND region = 'EU'"),
        ('`a b`!="x\'y" and c is null', "`a b` <> 'x''y' AND c IS NULL"),
        ("A in (3, 1.50,1.5) AND a IN (1.5,3)", "a IN (1.5, 3)"),
        ("a<-1.0 AND `and` IS NOT NULL AND a < -1", "`and` IS NOT NULL AND a < -1"),
        ("a = '\\'", "a = '\\'"),
        ("a = 100", "a = 100"),
    ],
)
def test_conditions_that_differ_in_spelling_are_one(text: str, shown: str) -> None:
    condition = RowCondition.parse(text)
    assert str(condition) == shown
    assert RowCondition.parse(shown) == condition


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a column is missing"),
        ("a = 1 OR b = 2", "only AND may follow a term, not 'OR'"),
        ("NOT a = 1", "NOT has no meaning"),
        ("(a = 1)", "a name is missing"),
        ("a = NULL", "NULL needs IS NULL"),
        ("a = b", "a literal is a number"),
        ("1 = a", "a column comes first"),
        ("a LIKE 'x%'", "after the column a comes one of"),
        ("a IN ()", "a literal is a number"),
        ("a = 1 -- and b = 2", "a comment"),
        ("a = 1 /* and */ AND b = 2", "a comment"),
        ("a = 1e5", "a literal is a number"),
        ("a = 'x", "a literal is a number"),
        ("t.a = 1", "after the column t comes"),
        ("a = 1 AND", "a column is missing"),
    ],
)
def test_other_texts_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        RowCondition.parse(text)


@pytest.mark.parametrize(
    ("condition", "kind", "true", "false"),
    [
        ("c = 1", "int", {"SignedInteger": 1}, {"SignedInteger": 2}),
        ("c > 18446744073709551614", "bigint unsigned", {"UnsignedInteger": 2**64 - 1}, {"UnsignedInteger": 2**64 - 2}),
        ("c <= 1.5", "tinyint", {"SignedInteger": 1}, {"SignedInteger": 2}),
        ("c IN (1.0, 7)", "smallint", {"SignedInteger": 1}, {"SignedInteger": 10}),
        ("c = 0.1", "decimal(65,30)", {"Decimal": "0." + "1".ljust(30, "0")}, {"Decimal": "0.1".ljust(31, "0") + "1"}),
        ("c >= -10.5", "decimal(4,2)", {"Decimal": "-10.50"}, {"Decimal": "-10.51"}),
        ("c <> 1999", "year", {"Year": 2000}, {"Year": 1999}),
        ("c = 'EU'", TEXT, {"String": "EU"}, {"String": "eu"}),
        ("c = 'EU'", TEXT, {"String": "EU"}, {"String": "EU "}),
        ("c > 'z'", TEXT, {"String": "é"}, {"String": "Z"}),
        ("c <> ''", "text character set latin1", {"String": " "}, {"String": ""}),
        ("c <> 'x'", "char(1) character set ascii", {"Text": {"charset": "ascii", "base64": "6Q=="}}, {"String": "x"}),
        ("c IN ('a', 'it''s')", ENUM, {"Enum": "it's"}, {"Enum": "B"}),
        ("c = ''", ENUM, {"Enum": 0}, {"Enum": "a"}),
        ("c < '2024-02-01'", "date", {"Date": day(2024, 1, 31)}, {"Date": day(2024, 2, 1)}),
        ("c = '0000-00-00'", "date", {"Date": day(0, 0, 0)}, {"Date": day(0, 0, 1)}),
        (
            "c >= '2024-02-01 00:00:00.5'", "datetime(1)",
            {"DateTime": day(2024, 2, 1) | {"hour": 0, "minute": 0, "second": 0, "subsecond": 500_000}},
            {"DateTime": day(2024, 2, 1) | {"hour": 0, "minute": 0, "second": 0, "subsecond": 400_000}},
        ),
        (
            "c = '1970-01-02'", "timestamp", {"Timestamp": {"unix_time": 86_400, "subsecond": 0}},
            {"Timestamp": {"unix_time": 0, "subsecond": 0}},
        ),
        (
            "c <= '0000-00-00'", "timestamp(6)", {"Timestamp": {"unix_time": 0, "subsecond": 0}},
            {"Timestamp": {"unix_time": 1, "subsecond": 0}},
        ),
        ("c IS NULL", "json", "Null", {"Json": None}),
        ("c IS NOT NULL", "double", {"Double": 0.5}, "Null"),
    ],
)  # fmt: skip
def test_values_are_compared_exactly(condition: str, kind: str, true: Any, false: Any) -> None:
    assert is_true(condition, kind, true)
    assert not is_true(condition, kind, false)
    if "NULL" not in condition:
        assert not is_true(condition, kind, "Null")


@pytest.mark.parametrize(
    ("condition", "kind", "why"),
    [
        ("d = 1", "int", "there is no column d"),
        ("c = '1'", "int", "write it without quotes"),
        ("c = 1", TEXT, "write it in single quotes"),
        ("c = 'x'", "varchar(9) character set utf16le_unknown", "which has no exact text"),
        ("c = 'A'", ENUM, "'A' is no member"),
        ("c < 'a'", ENUM, "an ENUM, whose members have no order"),
        ("c = 'a'", "enum character set binary", "members have no exact text"),
        ("c = '2024-13-01'", "date", "is no date"),
        ("c = '2024-01-01 01:00:00'", "date", "compared with a DATE"),
        ("c = '2024-02-30'", "timestamp", "is no date"),
        ("c = 20240101", "datetime", "write it as"),
    ],
)
def test_literals_that_do_not_fit_are_refused(condition: str, kind: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        is_true(condition, kind, "Null")


@pytest.mark.parametrize(
    "kind", ["float", "double unsigned", "bit(3)", "time", "json", "geometry", "vector", "binary(3)", "blob",
             "longtext character set utf8mb4", "set('a') character set utf8mb4"],
)  # fmt: skip
def test_types_without_an_exact_comparison_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="whose values have no exact comparison"):
        is_true("c = 'x'", kind, "Null")


literals = st.one_of(st.text(), st.decimals(allow_nan=False, allow_infinity=False, places=3))
terms = st.builds(
    lambda column, operator, literal: Term(column.lower(), operator, (literal,)),
    st.text(min_size=1).filter(lambda text: not text[0].isdigit()),
    st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
    literals,
)


@given(st.lists(terms, min_size=1, max_size=3))
def test_what_is_shown_is_the_same_condition(found: list[Term]) -> None:
    """The commit log has the text: a condition that became another one by it would be copied for again and again."""
    shown = RowCondition.joined([RowCondition(tuple(found))])
    again = RowCondition.parse(str(shown))
    assert {(each.column, each.operator) for each in again.terms} == {(each.column, each.operator) for each in found}
    assert RowCondition.parse(str(again)) == again
    assert all(isinstance(value, str | Decimal) for each in again.terms for value in each.literals)
