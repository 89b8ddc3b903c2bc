"""Tables that one side alone has emptied, of which no log has the rows."""

import pytest

from cdc.spark.ddl.accepted_drift import DEFINITION, ROWS, Entry
from cdc.spark.ddl.definitions import EMPTIED, Unmatched, emptied_drift
from cdc.spark.ddl.lineage import BEGINS_COPY, Act

Step = tuple[str, ...]
EMPTY, CREATE, DROP = ("TruncateTable", "t"), ("CreateTable", "t"), ("DropTable", "t")
MOVE, COPY, MAYBE = ("RenameTable", "t", "u"), (BEGINS_COPY, "t"), ("CreateTable", "t", "", "IF NOT EXISTS")


def acts(steps: list[Step]) -> list[Act]:
    """Statements, one a sequence, from 0 on: action, table, its new name, text."""
    found = []
    for at, step in enumerate(steps):
        action, name, to, text = (*step, "", "")[:4]
        new = f"flv://srv/db/{to}" if to else None
        found.append(Act(at, 0, action, f"flv://srv/db/{name}", new, text=text))
    return found


def drifted(leader: list[Step], follower: list[Step], *alone: tuple[str, int]) -> list[str | None]:
    """Names of tables; ``alone`` are the side and the sequence of the statements that only one side ran."""
    sides = {"leader": acts(leader), "follower": acts(follower)}
    unmatched = [Unmatched(side, at, (sides[side][at],), False, "…") for side, at in alone]
    found = list(emptied_drift(unmatched, sides))
    assert {each.cause for each in found} <= {EMPTIED}
    return [each.name for each in found]


HERE, THERE = ("follower", 0), ("leader", 0)


@pytest.mark.parametrize(
    ("leader", "follower", "alone", "expected"),
    [
        ([], [EMPTY], [HERE], ["t"]),
        ([EMPTY], [], [THERE], ["t"]),
        # Twice: what came in between is known, and not what was there before.
        ([], [EMPTY, EMPTY], [HERE, ("follower", 1)], ["t"]),
        ([MAYBE], [MAYBE, EMPTY], [("follower", 1)], ["t"]),
        ([MOVE], [EMPTY, MOVE], [HERE], ["u"]),
        # All rows of the table are in the logs, then or since.
        ([CREATE], [CREATE, EMPTY], [("follower", 1)], []),
        ([EMPTY], [EMPTY, EMPTY], [("follower", 1)], []),
        ([EMPTY], [EMPTY, EMPTY], [HERE], []),
        ([EMPTY], [EMPTY], [HERE, THERE], []),
        ([DROP, CREATE], [EMPTY, DROP, CREATE], [HERE], []),
        ([COPY], [EMPTY], [HERE], []),
        ([EMPTY, COPY], [], [THERE], []),
        ([], [EMPTY], [], []),
    ],
)
def test_which_tables_may_lack_rows_that_no_log_has(
    leader: list[Step], follower: list[Step], alone: list[tuple[str, int]], expected: list[str]
) -> None:
    assert drifted(leader, follower, *alone) == expected


def test_only_an_entry_for_all_rows_accepts_it() -> None:
    sides = {"leader": list[Act](), "follower": acts([EMPTY])}
    [found] = emptied_drift([Unmatched("follower", 0, (sides["follower"][0],), False, "…")], sides)
    assert Entry(1, (ROWS,), "db.*", "…").accepts(found)
    assert not Entry(1, (DEFINITION,), "db.*", "…").accepts(found)
    assert not Entry(1, (ROWS,), "db.u", "…").accepts(found)
    assert not Entry(1, (ROWS,), "db.*", "…", kinds=("extra",)).accepts(found)
    assert not Entry(1, (ROWS,), "db.*", "…", keys=({"id": "1"},)).accepts(found)
