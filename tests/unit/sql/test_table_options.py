"""Which words of CREATE TABLE and ALTER TABLE are options: only those that stand where the grammar has options."""

import pytest

from cdc.sql.create_table import table_options
from tests.checks.statements import Said, said_in

WANTED = {"ENGINE", "TABLESPACE"}


def found(text: str) -> list[str]:
    """The options of ``text`` that a follower may need otherwise, as ``NAME value``."""
    options = table_options(text, ansi_quotes=False, backslash_escapes=True)
    return [f"{name} {text[value.start : value.end]}" for name, value in options if name in WANTED]


@pytest.mark.parametrize("said", said_in("table_options.sql"), ids=str)
def test_options_are_found_where_the_grammar_has_them(said: Said) -> None:
    assert (", ".join(found(said.text)) or "none") == said.expected
    assert found("") == []


def test_a_value_is_where_it_stands_in_the_text() -> None:
    text = "CREATE TABLE engine (engine INT) /* é */ ENGINE='MyISAM' TABLESPACE `ts` COMMENT 'ENGINE=MyISAM'"
    options = table_options(text, ansi_quotes=False, backslash_escapes=True)
    assert [text[value.start : value.end] for name, value in options if name in WANTED] == ["'MyISAM'", "`ts`"]
