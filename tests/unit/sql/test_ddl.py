"""What each statement of a binlog is, and which objects it affects."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.sql.statement import accounts, classify
from cdc.sql.tokens import Token, excerpt, tokens
from tests.checks.statements import Form, Said, forms, said_in, said_of

FORMS = [form for form in forms() if form.expected]


def test_the_corpus_is_as_large_as_is_said() -> None:
    assert len(FORMS) > 350
    assert len({form.text for form in FORMS}) == len(FORMS)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.text[:60])
def test_a_statement_of_the_corpus(form: Form) -> None:
    assert said_of(form.text, database=form.database, sql_mode=form.sql_mode) == form.expected


@given(st.sampled_from(FORMS), st.data())
def test_comments_space_case_and_quotes_change_nothing(form: Form, data: st.DataObject) -> None:
    """A statement written anew from its tokens, each as it might have been typed too, is the same statement."""
    modes = form.sql_mode.split(",")
    found = tokens(form.text, ansi_quotes="ANSI_QUOTES" in modes, backslash_escapes="NO_BACKSLASH_ESCAPES" not in modes)
    text = ""
    for token in found:
        # A host follows its @ at once, and so does the string that is one.
        between = "" if text.endswith("@") else data.draw(st.sampled_from(BETWEEN))
        text += ("" if token.kind == "host" else between) + data.draw(st.sampled_from(typed(token, modes)))
    assert said_of(text, database=form.database, sql_mode=form.sql_mode) == form.expected


QUOTES = {"'": "''"}
BETWEEN = [
    " ",
    "\n",
    "\t ",
    "/* DROP TABLE x */",
    " -- RENAME TO x\n",
    " # 'x\n",
    " /*! */ ",
    "/*!50100*/ ",
    "/*M! x */ ",
]


def typed(token: Token, modes: list[str]) -> list[str]:
    """Ways to write a token."""
    if token.kind == "word":
        keyword = [token.text.upper(), token.text.lower(), token.text.title()]
        return keyword if token.text.isupper() else [token.text]
    if token.kind == "quoted":
        quotes = ['"', "`"] if "ANSI_QUOTES" in modes else ["`"]
        return [quote + token.text.replace(quote, quote * 2) + quote for quote in quotes]
    if token.kind == "string":
        # The text is as it stands between its quotes: what a backslash has escaped stays so.
        escaped = r"'" if "NO_BACKSLASH_ESCAPES" in modes else r"\\.|'"
        return [
            "'" + re.sub(escaped, lambda found: "''" if found[0] == "'" else found[0], token.text, flags=re.S) + "'"
        ]
    return ["@" + token.text] if token.kind == "host" else [token.text]


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    kind, effects = classify(text, database="db", ansi_quotes=False)
    assert bool(effects) == (kind == "ddl") or kind == "temporary"


@given(st.sampled_from(FORMS), st.data())
def test_a_statement_cut_short_names_no_other_objects(form: Form, data: st.DataObject) -> None:
    """A name may come out shorter, but none is taken from elsewhere in the text."""
    text = form.text[: data.draw(st.integers(0, len(form.text)))]
    for effect in classify(text, database="db", ansi_quotes=False)[1]:
        assert all(name == "db" or name.replace("`", "``") in text for name in (effect.database, effect.name or "db"))


@pytest.mark.parametrize("said", said_in("accounts.sql"), ids=str)
def test_account_statements_are_named_without_their_secrets(said: Said) -> None:
    assert accounts(said.text, ansi_quotes=False) == said.expected
    assert "secret" not in said.expected


@pytest.mark.parametrize("form", [form for form in FORMS if "secret" in form.text], ids=lambda form: form.text[:60])
def test_no_secret_is_in_what_logs_show(form: Form) -> None:
    assert "secret" not in excerpt(form.text, length=1000)
    assert "secret" not in accounts(form.text, ansi_quotes=False)


@given(st.text(), st.sampled_from(["'", '"', "0x"]), st.text())
def test_an_excerpt_ends_before_the_first_literal(before: str, quote: str, after: str) -> None:
    text = excerpt(f"{before} {quote}{after}", length=80)
    assert "'" not in text
    assert '"' not in text
    assert len(text) <= 82
