"""What a run appends to the tables of changes, by what they have and what the topics had when."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.errors import UserError
from cdc.lake.change_tables import Append, ChangeTables, _told
from cdc.lake.commits import Note, Written
from cdc.lake.folder import State
from cdc.lake.new_records import Arrived
from cdc.spark.ddl.lineage import Act

URI = "flv://l/d/t"
STATE = State(sequence=9, last={URI: 8})
NOTE = Note("d", "t", 8, "", "changes 1")


@dataclass
class Found:
    """Tables of which each has ``newest``."""

    newest: Written | None

    def written(self, folder: str, since: int | None) -> Written | None:
        assert folder == "_history/d/t"
        return self.newest


def appends(newest: Written | None, *, last: int = 12, cut: bool = False, acts: tuple[Act, ...] = ()) -> list[Append]:
    arrived = SimpleNamespace(upto=15, last={URI: last}, source=SimpleNamespace(cut=cut))
    tables = ChangeTables(cast(Any, Found(newest)), lambda name: True)
    return tables.appends(cast(Arrived, arrived), STATE, acts, {})


def test_what_came_since_is_appended_once() -> None:
    name = ("d", "t")
    assert appends(Written(1, NOTE)) == [Append(name, 8, False, ())]
    assert appends(Written(1, replace(NOTE, sequence=12))) == [], "a run that was killed appended it"
    assert appends(Written(1, NOTE), last=8) == []
    assert appends(None) == [Append(name, -1, True, ())], "records of before are read again"
    assert appends(Written(1, replace(NOTE, sequence=5))) == [Append(name, 5, True, ())], "it was left out for a while"


def test_what_can_not_be_appended_is_refused() -> None:
    with pytest.raises(UserError, match="something else wrote to a table of changes"):
        appends(Written(1, None))
    with pytest.raises(UserError, match="the changes up to sequence 16, which is after 15"):
        appends(Written(1, replace(NOTE, sequence=16)))
    with pytest.raises(UserError, match="changes after sequence 5 are missing in the lake"):
        appends(Written(1, replace(NOTE, sequence=5)), cut=True)


def test_statements_are_told_under_both_names() -> None:
    renamed, dropped = Act(10, 0, "RenameTable", "flv://l/d/u", URI), Act(11, 0, "DropDatabase", "flv://l/d")
    acts = (replace(renamed, sequence=7), renamed, dropped, Act(12, 0, "CreateIndex", URI))
    assert appends(Written(1, NOTE), last=8, acts=acts) == [Append(("d", "t"), 8, False, (renamed, dropped))]
    assert (_told(renamed), _told(dropped)) == ("RenameTable d.u to d.t", "DropDatabase d")
