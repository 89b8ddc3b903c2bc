"""The versions of a table from which its rows are taken."""

import pytest

from cdc.errors import UserError
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act
from cdc.spark.frames.told import Columns, History, Statement, Told
from cdc.spark.frames.versions import plan

NAME, URI = ("d", "t"), "flv://l/d/t"
COLUMNS: Columns = (("id", "int"), ("n", "int"))
CREATED = Act(0, 0, "CreateTable", URI)


def history(*acts: Act, keys: dict[int, tuple[str, ...] | None]) -> History:
    """``keys`` are those that records tell, by their sequences."""
    statements = {act.sequence: Statement("", frozenset(), "", True) for act in acts}
    told = tuple(Told(NAME, sequence, COLUMNS, key) for sequence, key in keys.items())
    return History((CREATED, *acts), statements, told, silent_cascades=False)


@pytest.mark.parametrize("key", [None, ("n",), ("id", "n")])
def test_rows_are_not_known_by_a_key_that_was_dropped(key: tuple[str, ...] | None) -> None:
    """Two rows may have the same values there from then on: one of them would be lost."""
    found = history(Act(4, 0, "DropIndex", URI), keys={1: ("id",), 5: key})
    with pytest.raises(UserError, match="from sequence 5 on the table has another key"):
        plan(found, NAME, 10, cut=False)
    assert plan(found, NAME, 4, cut=False).keyed, "no such row came yet"


def test_rows_stay_known_by_the_same_key() -> None:
    same = history(Act(4, 0, "DropIndex", URI), keys={1: ("id", "n"), 5: ("n", "id")})
    assert plan(same, NAME, 10, cut=False).stretches[-1].key == ("id", "n")
    keyless = history(Act(4, 0, "CreateIndex", URI), keys={1: None, 5: ("id",)})
    assert not plan(keyless, NAME, 10, cut=False).keyed, "all values of rows stay right"


def test_a_copy_knows_rows_again() -> None:
    copied = (Act(6, 0, BEGINS_COPY, URI), Act(6, 1, ENDS_COPY, URI))
    found = history(Act(4, 0, "DropIndex", URI), *copied, keys={1: ("id",), 5: None, 6: None})
    assert not plan(found, NAME, 10, cut=False).keyed
