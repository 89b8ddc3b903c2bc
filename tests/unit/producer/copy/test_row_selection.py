"""Rows that are left out of table copies: no key of such a row is in a chunk's bounds."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.filters import Mask
from cdc.producer.copy.chunk_reader import ReadChunk
from cdc.producer.copy.definition import CopiedColumn, TableDefinition
from cdc.producer.copy.row_selection import RowSelection
from cdc.sql.row_condition import RowCondition

COLUMNS = (CopiedColumn("id", "int", False, sql_type="int"), CopiedColumn("a", "int", True, sql_type="int"))
TABLE = TableDefinition("d", "t", COLUMNS, ("id",), "PRIMARY", "", "CREATE TABLE …")
SELECTION = RowSelection(lambda _, table: RowCondition.parse("a > 1") if table == "t" else None)


class Leader:
    """Answers the questions about a table's columns."""

    def __init__(self, *answers: tuple[str, str]) -> None:
        self.answers = answers

    def execute(self, *_: object) -> None: ...

    def fetchall(self) -> tuple[tuple[str, str], ...]:
        return self.answers


def row(key: int, value: int | None) -> str:
    cols = [{"SignedInteger": key}, "Null" if value is None else {"SignedInteger": value}]
    return json.dumps({"cols": cols}, separators=(",", ":"))


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), min_size=1), st.booleans())
def test_a_chunk_ends_with_a_row_that_passes(values: list[int | None], is_last: bool) -> None:
    rows = [row(key, value) for key, value in enumerate(values)]
    bound = None if is_last else (f'{{"SignedInteger":{len(rows) - 1}}}',)
    found = SELECTION.of(TABLE, ReadChunk(rows, bound, 1))
    passing = [key for key, value in enumerate(values) if value is not None and value > 1]
    assert found.rows == [rows[key] for key in passing]
    if is_last or not passing:
        assert found.upto == bound
    else:
        assert found.upto == (f'{{"SignedInteger":{passing[-1]}}}',)


def test_pieces_and_other_tables() -> None:
    piece = ReadChunk([row(1, 0), row(2, 2)], (), 9)
    assert SELECTION.of(TABLE, piece).upto == ()
    assert SELECTION.of(TABLE, piece).rows == [row(2, 2)]
    other = replace(TABLE, name="u")
    assert SELECTION.of(other, piece) is piece
    assert SELECTION.checked(Leader(), other) is other


@pytest.mark.parametrize(
    ("table", "leader", "why"),
    [
        (replace(TABLE, columns=COLUMNS[:1]), Leader(), "there is no column a"),
        (replace(TABLE, columns=(COLUMNS[0], replace(COLUMNS[1], mask=Mask("null")))), Leader(), "column a is masked"),
        (TABLE, Leader(("A", "is generated")), "by column A, which is generated"),
        (TABLE, Leader(("id", "is generated")), None),
    ],
)
def test_a_table_that_does_not_fit_is_not_copied(table: TableDefinition, leader: Any, why: str | None) -> None:
    found = SELECTION.checked(leader, table)
    assert found.refusal is None if why is None else why in str(found.refusal)
    assert found.hides_keys == (found.refusal is None or "by column" in found.refusal)
