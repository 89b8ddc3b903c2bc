"""What is to be created is read again if a statement has changed it meanwhile, and a long time of that is logged."""

import pytest

from cdc.producer.copy import structure
from cdc.producer.copy.structure import Creations
from cdc.sql.effects import Effect
from cdc.sql.statement import classify


def effects(text: str) -> tuple[Effect, ...]:
    _, found = classify(text, database="d", ansi_quotes=False, backslash_escapes=True)
    return tuple(found)


def wants(database: str, name: str) -> bool:
    return (database, name) == ("d", "t")


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("ALTER TABLE t ADD n INT", True), ("ALTER TABLE u ADD n INT", False), ("ALTER TABLE e.t ADD n INT", False),
        ("RENAME TABLE u TO t", True), ("RENAME TABLE t TO u", True), ("RENAME TABLE u TO v", False),
        ("DROP DATABASE e", True), ("CREATE PROCEDURE p() SELECT 1", True),
    ],
)  # fmt: skip
def test_which_statements_count(text: str, counts: bool) -> None:
    """All but those on tables that the filters leave out, before and after."""
    creations = Creations()
    assert creations.note(effects(text), wants) is counts
    assert creations.ask(0.0) == (effects(text) if counts else ())


def test_effects_are_those_since_the_last_try() -> None:
    creations = Creations()
    creations.note(effects("CREATE TABLE t (id INT)"), wants)
    creations.note(effects("DROP TABLE t"), wants)
    assert creations.ask(0.0) == effects("CREATE TABLE t (id INT)") + effects("DROP TABLE t")
    assert (creations.ask(0.0), creations.tries) == ((), 2)


def test_a_long_time_is_logged_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "_TELL_SECONDS", 10.0)
    creations = Creations()
    assert not creations.is_late(100.0)
    creations.ask(100.0)
    creations.ask(109.0)
    assert [creations.is_late(now) for now in (109.0, 110.0, 111.0, 119.9, 120.0)] == [False, True, False, False, True]
