"""Statements on real servers: that their effects are the truth, what never leaves the leader, and what is refused."""

import pytest

from cdc.sandbox.server.mysql import MySql
from cdc.sql.effects import MAINTAIN
from cdc.sql.statement import Effect, classify
from tests.checks.binlog import position, queries
from tests.checks.objects import objects, unnamed, unseen
from tests.checks.statements import Form, forms, said_of
from tests.harness.server_fixtures import MySqlFactory

pytestmark = pytest.mark.integration


@pytest.mark.newer("statements of 9.7")
def test_the_effects_of_every_form_are_what_the_server_does(mysql_server: MySqlFactory) -> None:
    """Each statement of the corpus: what it is said to do, as typed and as logged, is what happens to the objects."""
    server = mysql_server()
    with (
        server.root() as connection, connection.cursor() as cursor,
        server.root() as other, other.cursor() as looking,
    ):  # fmt: skip
        before = objects(looking)
        for form in forms():
            if form.not_run:
                continue
            start = position(server)
            cursor.execute(form.text)
            if form.expected.startswith("Create") and form.text.endswith("START TRANSACTION"):
                cursor.execute("COMMIT")
            after = objects(looking)
            effects = _effects(form)
            lost = _logged_otherwise(form, server, start)
            # A routine may do anything, and OPTIMIZE makes a table anew.
            if form.expected not in ("dml", "admin") and not form.expected.startswith(MAINTAIN):
                assert not unnamed(effects, before, after), form.text
            if "EXISTS" not in form.text:
                assert not [each for each in unseen(effects, before, after) if each.name != "t7b"], form.text
            assert not lost, f"logged as {lost}"
            before = after


def _effects(form: Form) -> tuple[Effect, ...]:
    modes = form.sql_mode.split(",")
    kind, effects = classify(
        form.text,
        database=form.database,
        ansi_quotes="ANSI_QUOTES" in modes,
        backslash_escapes="NO_BACKSLASH_ESCAPES" not in modes,
    )
    # A temporary table is to be seen by its session only; of one that is maintained no definition is another one.
    return tuple(effect for effect in effects if effect.action != MAINTAIN) if kind == "ddl" else ()


def _logged_otherwise(form: Form, server: MySql, start: tuple[str, int]) -> list[str]:
    """The statements in the log that are understood otherwise than the one that was typed."""
    logged = [
        (query.text.decode("utf-8", "replace"), query.database, query.variables.get("sql_mode", ""))
        for query in queries(server, start)
    ]
    said = {text: said_of(text, database=database, sql_mode=sql_mode) for text, database, sql_mode in logged}
    # DROP DATABASE first drops the tables of engines without transactions, and a routine's statements are its own.
    expected = {form.expected, "begin", "commit"}
    server_made = form.expected == "dml" or form.expected.startswith("DropDatabase")
    if any("START TRANSACTION" in text for text in said):
        expected.add(form.expected.removesuffix(", not faithfully"))  # the rows of its query follow it
    return [text for text, words in said.items() if words not in expected and not (server_made and "Drop" in words)]
