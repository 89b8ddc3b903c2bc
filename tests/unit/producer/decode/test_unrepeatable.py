"""Statements that a follower may execute although its rows differ then, since the table is copied again."""

import pytest

from cdc.producer.decode.query_event import LoggedStatement, with_copies, with_row_filters
from cdc.sql.effects import needing_more, numbered_otherwise
from cdc.sql.statement import classify


def logged(text: str, *, in_innodb: bool = True, unreadable: str = "", session_bound: bool = False) -> LoggedStatement:
    kind, effects = classify(
        text, database="db", ansi_quotes=False, session_bound=session_bound, real=lambda _: in_innodb
    )
    effects = effects if in_innodb else numbered_otherwise(effects)
    return LoggedStatement(kind, text, "db", effects, {"charset": "gbk"}, text, unreadable, None, (), None, in_innodb)


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("ALTER TABLE t ADD n INT AUTO_INCREMENT UNIQUE", ("db", "t")),
        ("ALTER TABLE a.t ADD n SERIAL, RENAME TO b.u", ("b", "u")),
        ("ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID())", ("db", "t")),
        ("ALTER TABLE t ADD c INT DEFAULT (1 / 3)", ("db", "t")),
        ("ALTER TABLE `t``s` IMPORT TABLESPACE", ("db", "t`s")),
    ],
)
def test_the_altered_table_is_copied(text: str, table: tuple[str, str]) -> None:
    found = with_copies(logged(text))
    assert found.copies == (table,)
    assert found.unlike
    assert not any(effect.unfaithful for effect in found.effects)


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD n INT",
        "ALTER TABLE t DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY",
        "ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID()), CONNECTION = 'mysql://u:hunter2@h/d/t'",
        "ALTER TABLE t ADD c VARCHAR(36) DEFAULT (UUID())",
        "ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID()), ADD d VARCHAR(36) DEFAULT (UUID())",
        "ALTER TABLE t DISCARD PARTITION p1 TABLESPACE",
        "ALTER TABLE t IMPORT PARTITION p1 TABLESPACE",
        "CREATE TABLE t SELECT CONNECTION_ID()",
        "CREATE TEMPORARY TABLE t (i INT)",
        "CREATE VIEW v AS SELECT 1",
    ],
)
def test_others_stay_as_they_are(text: str) -> None:
    statement = logged(text)
    assert with_copies(statement) is statement


def test_what_may_be_of_a_temporary_table_or_of_another_engine_stays_refused() -> None:
    for text in ("ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID())", "ALTER TABLE t ADD n INT AUTO_INCREMENT UNIQUE"):
        for bound in (False, True):
            statement = logged(text, in_innodb=False, session_bound=bound)
            assert with_copies(statement) is statement
            assert any(effect.unfaithful for effect in statement.effects)


def test_a_text_that_cannot_be_sent_is_not_executed() -> None:
    statement = logged("ALTER TABLE t ADD n SERIAL", unreadable="it has bytes that are no letters")
    assert with_copies(statement) is statement


def test_values_of_a_session_that_only_its_log_has_stay_refused() -> None:
    statement = with_copies(logged("ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID())"))
    assert all(effect.unfaithful for effect in needing_more(statement.effects))
    bound = logged("ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID())")
    assert with_copies(bound).copies
    doubted = needing_more(bound.effects)
    assert with_copies(logged("ALTER TABLE t ADD n INT").__class__(
        bound.kind, bound.text, "db", doubted, {}, "", "", None, (), None, True
    )).copies == ()  # fmt: skip


@pytest.mark.parametrize("text", ["ALTER TABLE `t``s` DISCARD TABLESPACE", "ALTER TABLE `t``s` IMPORT TABLESPACE"])
def test_a_tablespace_that_comes_or_goes_empties_the_table(text: str) -> None:
    found = with_copies(logged(text))
    assert found.text == "TRUNCATE TABLE `db`.`t``s`"
    assert [(effect.action, effect.name) for effect in found.effects] == [("TruncateTable", "t`s")]
    assert found.context["charset"] == "utf8mb4"
    assert bool(found.copies) == ("IMPORT" in text)


@pytest.mark.parametrize(
    ("text", "is_marked"),
    [
        ("ALTER TABLE t MODIFY a BIGINT", True),
        ("ALTER TABLE t CONVERT TO CHARACTER SET latin1", True),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD n INT AUTO_INCREMENT PRIMARY KEY", True),
        ("ALTER TABLE t MODIFY b INT AUTO_INCREMENT", True),
        ("ALTER TABLE t ADD n SERIAL", True),
        ("ALTER TABLE t ADD b INT DEFAULT 1, ADD KEY (a)", False),
        ("ALTER TABLE u MODIFY a BIGINT", False),
        ("DROP TABLE t", False),
    ],
)
def test_a_table_whose_rows_pass_otherwise_after_the_statement_is_copied(text: str, *, is_marked: bool) -> None:
    """Followers lack rows, so they can neither number them nor get those that pass only now."""
    marked = with_row_filters(logged(text), lambda _, table: frozenset({"a"} if table == "t" else ()))
    if not is_marked:
        assert marked == logged(text)
        return
    assert any("filters.rows" in effect.unfaithful for effect in marked.effects)
    assert with_copies(marked).copies == (("db", "t"),)
