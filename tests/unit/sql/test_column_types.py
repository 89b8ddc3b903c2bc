"""Types of columns as records tell them: what is written can be read again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.sql.column_types import ColumnType, character_type, members_type, read_type


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("int", ColumnType("int")),
        ("bigint unsigned", ColumnType("bigint", unsigned=True)),
        ("decimal(10,2) unsigned", ColumnType("decimal", (10, 2), unsigned=True)),
        ("datetime(3)", ColumnType("datetime", (3,))),
        (character_type("varchar(20)", "utf8mb4"), ColumnType("varchar", (20,), charset="utf8mb4")),
        (members_type("set", None, "sjis"), ColumnType("set", charset="sjis")),
        (members_type("enum", [], "latin1"), ColumnType("enum", members=(), charset="latin1")),
    ],
)
def test_a_type_is_read(text: str, meant: ColumnType) -> None:
    assert read_type(text) == meant


@given(st.lists(st.text()))
def test_members_are_those_that_were_written(members: list[str]) -> None:
    assert read_type(members_type("enum", members, "utf8mb4")).members == tuple(members)


@pytest.mark.parametrize("text", ["", "INT", "varchar(20", "enum('a'b') character set latin1"])
def test_anything_else_is_no_type(text: str) -> None:
    with pytest.raises(ValueError, match="not a column's type"):
        read_type(text)
