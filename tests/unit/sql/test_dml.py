"""Which tables a change that was logged as a statement may have changed."""

import pytest

from cdc.sql.effects import ANY_DATABASE, Effect
from cdc.sql.statement import changed_by
from tests.checks.statements import Said, in_words, said_in

QUOTING = {"ansi_quotes": False, "backslash_escapes": True}


@pytest.mark.parametrize("said", said_in("dml.sql", "databases"), ids=str)
def test_what_a_change_may_have_changed(said: Said) -> None:
    found = changed_by(said.text, database="cur", databases=said.settings["databases"].split(), **QUOTING)
    assert ", ".join(map(in_words, found)) == said.expected


def test_bytes_that_are_no_letters_hide_which_table() -> None:
    found = changed_by("INSERT INTO x.t\udcfc VALUES (1)", database="cur", databases=["x"], **QUOTING)
    assert found == (Effect("SkipDatabase", "x"),)


def test_a_name_that_the_log_leaves_empty_stands_for_any() -> None:
    assert changed_by("DELETE FROM x.t", database="", databases=[""], **QUOTING) == (ANY_DATABASE,)
    assert Effect("SkipDatabase", "*") == ANY_DATABASE
