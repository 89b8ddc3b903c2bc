"""The table whose definition CREATE TABLE … LIKE copies, from the record or from the statement's text."""

import pytest

from cdc.spark.ddl.definitions import like_source
from cdc.spark.ddl.lineage import Act


def act(text: str, *, action: str = "CreateTable", like: str | None = None) -> Act:
    """A statement on the table or view db/u."""
    return Act(0, 0, action, "flv://srvr/db/u", like=like, text=text)


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("CREATE TABLE u LIKE t", "db/t"),
        ("create table db.u like `t`", "db/t"),
        ("CREATE TABLE IF NOT EXISTS `u` (LIKE /* x */ other . t)", "other/t"),
        ("CREATE TABLE `like` LIKE copy.`a``/b`", "main/a%60%2Fb"),
        ("CREATE TABLE u (`LIKE` INT, t INT)", None),
        ("CREATE TABLE u (a INT, CHECK (b LIKE 't'))", None),
        ("CREATE TABLE u AS SELECT a FROM t WHERE b LIKE c", None),
        ("CREATE TABLE u", None),
        ("CREATE TABLE u LIKE", None),
        ("", None),
    ],
)
def test_the_source_in_a_text(text: str, source: str | None) -> None:
    assert like_source(act(text), {"copy": "main"}) == (source and f"flv://srvr/{source}")


def test_the_source_in_a_record() -> None:
    assert like_source(act("CREATE TABLE u LIKE t", like="flv://srvr/x/y"), {"x": "z"}) == "flv://srvr/x/y"
    assert like_source(act("CREATE TABLE u LIKE t", action="CreateView"), {}) is None
