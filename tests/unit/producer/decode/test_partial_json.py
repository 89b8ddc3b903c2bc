"""Triggers whose work is not among the differences of JSON documents: which ones stop the producer."""

import re

import pytest

from cdc.errors import PromiseError
from cdc.producer.decode.json_differences import assigned, refuse, unless_triggers


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SET NEW.j = JSON_SET(NEW.j, '$.a', 1)", "j"),
        ("SET new . `J`= 1", "j"),
        ("SELECT 1 INTO NEW.j", "j"),
        ("SET NEW./* why */j=1", "j"),
        ('SET NEW."my doc"=1', "my doc"),
        ("SET NEW.$d=1", "$d"),
        ("SET NEW.n = 1", "dé"),  # who knows how it is written there
        ("SET NEW.n = 1", "a`b"),
    ],
)
def test_a_trigger_that_names_a_column_may_assign_it(text: str, column: str) -> None:
    assert assigned(text, ["other", column]) == column


@pytest.mark.parametrize(
    "text", ["SET NEW.jj = 1, NEW.j1 = 2, NEW._j = 3, NEW.j$ = 4, NEW.$j = 5", "SET NEW.n = 1", ""]
)
def test_a_trigger_that_does_not_name_it_cannot(text: str) -> None:
    assert assigned(text, ["j"]) is None
    assert assigned(text, []) is None


def test_the_trigger_and_the_column_are_told_with_the_way_out() -> None:
    asked: list[tuple[str, str]] = []

    def ask(database: str, table: str) -> list[tuple[str, str]]:
        asked.append((database, table))
        return [("harmless", "SET NEW.n = 1"), ("x", "SET NEW.k = NULL")]

    allow = unless_triggers(ask)
    allow("d", "t", ["j"])
    with pytest.raises(
        PromiseError, match=re.escape("trigger x (BEFORE UPDATE) of d.t does to the JSON column k")
    ) as of:
        allow("d", "t", ["j", "k"])
    assert "binlog_row_value_options = ''" in of.value.hint
    assert asked == [("d", "t")] * 2


def test_without_a_word_in_the_profile_differences_are_refused() -> None:
    with pytest.raises(PromiseError, match=r"a row of d\.t has differences") as of:
        refuse("d", "t", ["j"])
    assert "producer.partial_json" in of.value.hint
