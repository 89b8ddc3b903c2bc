"""What statements do, how faithfully a follower can repeat it, and how rows are numbered: data/sql/effects.sql."""

import pytest

from cdc.sql.effects import numbered_otherwise
from cdc.sql.statement import Effect, classify
from tests.checks.statements import Said, all_words, said_in


def effects(text: str, *, session_bound: bool = False) -> tuple[str, tuple[Effect, ...]]:
    return classify(text, database="db", ansi_quotes=False, session_bound=session_bound)


@pytest.mark.parametrize("said", said_in("effects.sql", "session"), ids=str)
def test_a_statement(said: Said) -> None:
    bound = said.settings["session"] == "bound"
    kind, found = effects(said.text, session_bound=bound)
    assert ", ".join([kind] * (kind != "ddl") + [all_words(each) for each in found]) == said.expected
    # Without the mark of its session each of these can be repeated.
    assert not bound or not any(each.unfaithful for each in effects(said.text)[1])


@pytest.mark.parametrize("said", said_in("effects.sql", "session"), ids=str)
def test_engines_other_than_innodb_number_in_an_order_of_their_own(said: Said) -> None:
    for each in effects(said.text)[1]:
        (otherwise,) = numbered_otherwise((each,))
        if not each.numbered and not each.any_order:
            assert otherwise == each
        elif not each.unfaithful:
            assert "an order of its own" in otherwise.unfaithful


def test_another_doubt_stays() -> None:
    numbered = "DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY"
    _, (found,) = effects(f"ALTER TABLE t {numbered}, ADD c INT DEFAULT (CONNECTION_ID())")
    assert "returns another value" in found.unfaithful


def test_no_text_is_no_statement() -> None:
    assert effects("") == ("unknown", ())


def test_double_quotes_are_names_only_where_the_session_says_so() -> None:
    assert classify('DROP TABLE "t"', database="db", ansi_quotes=True) == ("ddl", (Effect("DropTable", "db", "t"),))
    assert classify('DROP TABLE "t"', database="db", ansi_quotes=False)[0] == "unknown"
