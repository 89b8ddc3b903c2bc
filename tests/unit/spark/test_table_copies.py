"""How far the copies of tables are, by the leader's statements and the records that begin and end them."""

from dataclasses import replace

import pytest

from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, PARKS, UNPARKS, Act, lineage
from cdc.spark.ddl.table_copies import TableCopy, UnderCopy, table_copies, under_copy

A, B = ("db", "a"), ("db", "b")


def acts(*steps: tuple[str, str] | tuple[str, str, str]) -> list[Act]:
    """Statements and ends of copies, one a sequence, from 1 on; ``+`` after the action: a copy makes it."""
    return [
        Act(at, 0, action.rstrip("+"), f"flv://srv/{path}", f"flv://srv/{to[0]}" if to else None, copying="+" in action)
        for at, (action, path, *to) in enumerate(steps, start=1)
    ]


CREATED, BEGUN, ENDED = ("CreateTable+", "db/a"), (BEGINS_COPY, "db/a"), (ENDS_COPY, "db/a")
ALTERED, EMPTIED = ("AlterTable", "db/a"), ("TruncateTable", "db/a")
UNLIKE, IMPORTED = ("AlterTable+", "db/a"), ("TruncateTable+", "db/a")
PARKED, UNPARKED = (PARKS, "db/a"), (UNPARKS, "db/a")
MOVED = ("RenameTable", "db/a", "db/b")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([("CreateTable", "db/a"), ALTERED, EMPTIED], {}),
        ([CREATED], {A: TableCopy(1)}),
        ([PARKED], {A: TableCopy(1, parked=True)}),
        ([PARKED, EMPTIED, ENDED], {A: TableCopy(1, parked=True)}),
        ([PARKED, BEGUN, ENDED], {A: TableCopy(2, 2, complete=True)}),
        ([BEGUN, PARKED, ENDED], {A: TableCopy(2, parked=True)}),
        ([PARKED, ("DropTable", "db/a")], {}),
        # What was left out is applied or given up: the table is as before, but for a copy that was left out, too.
        ([PARKED, UNPARKED], {}),
        ([PARKED, ALTERED, PARKED, UNPARKED], {}),
        ([PARKED, UNPARKED, PARKED], {A: TableCopy(3, parked=True)}),
        ([PARKED, UNPARKED, BEGUN, ENDED], {A: TableCopy(3, 3, complete=True)}),
        ([PARKED, BEGUN, ENDED, UNPARKED], {A: TableCopy(2, 2, complete=True)}),
        ([PARKED, BEGUN, PARKED, ENDED, UNPARKED], {A: TableCopy(3)}),
        ([BEGUN, PARKED, UNPARKED, ENDED], {A: TableCopy(1)}),
        ([BEGUN, ENDED, PARKED, ALTERED, UNPARKED], {A: TableCopy(1, 1, complete=True, alters=1)}),
        ([PARKED, BEGUN, ENDED, PARKED, UNPARKED], {A: TableCopy(2, 2, complete=True)}),
        ([PARKED, MOVED, (PARKS, "db/b"), UNPARKED, (UNPARKS, "db/b")], {}),
        ([CREATED, BEGUN], {A: TableCopy(2, 2)}),
        ([CREATED, BEGUN, ENDED], {A: TableCopy(2, 2, complete=True)}),
        ([CREATED, ENDED], {A: TableCopy(1)}),
        # A copy that begins again is not complete until it ends again.
        ([BEGUN, BEGUN, ENDED], {A: TableCopy(2, 2, complete=True)}),
        ([BEGUN, ENDED, BEGUN], {A: TableCopy(3, 3)}),
        # One that is stopped has no end: nothing but another copy makes the table known.
        ([BEGUN, ENDED, BEGUN, BEGUN, ENDED], {A: TableCopy(4, 4, complete=True)}),
        ([BEGUN, ENDED, CREATED], {A: TableCopy(3)}),
        # A statement in the midst of it interrupts it.
        ([BEGUN, ALTERED, ENDED], {A: TableCopy(1)}),
        ([BEGUN, ALTERED, BEGUN, ENDED], {A: TableCopy(3, 3, complete=True, altered=True)}),
        ([BEGUN, MOVED, (ENDS_COPY, "db/b")], {B: TableCopy(1)}),
        ([BEGUN, MOVED, (BEGINS_COPY, "db/b"), (ENDS_COPY, "db/b")], {B: TableCopy(3, 3, complete=True)}),
        ([BEGUN, ("DropTable", "db/a"), ("CreateTable", "db/a")], {}),
        ([BEGUN, ("DropDatabase", "db")], {}),
        ([BEGUN, ("DropDatabase", "other")], {A: TableCopy(1, 1)}),
        # After a statement that a follower can't repeat the rows differ until a copy ends.
        ([UNLIKE], {A: TableCopy(1)}),
        ([UNLIKE, MOVED, ("AlterTable", "db/b")], {B: TableCopy(1)}),
        ([UNLIKE, BEGUN], {A: TableCopy(2, 2, altered=True)}),
        ([UNLIKE, BEGUN, ENDED], {A: TableCopy(2, 2, complete=True, altered=True)}),
        ([BEGUN, ENDED, UNLIKE], {A: TableCopy(3)}),
        ([BEGUN, UNLIKE, ENDED], {A: TableCopy(2)}),
        ([BEGUN, ENDED, IMPORTED], {A: TableCopy(3)}),
        ([IMPORTED, BEGUN, ENDED], {A: TableCopy(2, 2, complete=True)}),
        ([UNLIKE, EMPTIED], {A: TableCopy(2, 2, complete=True)}),
        # Of an empty table all is known.
        ([BEGUN, EMPTIED], {A: TableCopy(2, 2, complete=True)}),
        ([ALTERED, EMPTIED, BEGUN, ENDED], {A: TableCopy(3, 3, complete=True)}),
        # After it is complete it follows the table.
        ([BEGUN, ENDED, MOVED, ("AlterTable", "db/b")], {B: TableCopy(1, 1, complete=True, alters=1)}),
        ([ALTERED, MOVED, (BEGINS_COPY, "db/b")], {B: TableCopy(3, 3, altered=True)}),
        # An index may change the key, as an ALTER does, and the lineage counts an era for it.
        ([BEGUN, ENDED, ("CreateIndex", "db/a")], {A: TableCopy(1, 1, complete=True, alters=1)}),
        ([("DropIndex", "db/a"), BEGUN, ENDED], {A: TableCopy(2, 2, complete=True, altered=True)}),
        ([BEGUN, ("CreateIndex", "db/a"), ENDED], {A: TableCopy(1)}),
        ([BEGUN, (BEGINS_COPY, "db/b"), ENDED, MOVED], {B: TableCopy(1, 1, complete=True)}),
        ([BEGUN, ENDED, ("RenameTable", "db/b", "db/a")], {}),
    ],
)
def test_how_far_a_copy_is(steps: list[tuple[str, str]], expected: dict[tuple[str, str], TableCopy]) -> None:
    assert table_copies(reversed(acts(*steps))) == expected


def test_a_copy_that_is_left_out_whole_leaves_its_table_incomplete() -> None:
    left_out = [*acts(PARKED, BEGUN, PARKED, UNPARKED)]
    ended = Act(2, 0, ENDS_COPY, "flv://srv/db/a")
    noted = [replace(each, sequence=2, place=place) for place, each in enumerate(left_out[2:], start=1 << 30)]
    assert table_copies([*left_out[:2], ended, *noted]) == {A: TableCopy(2)}


def test_only_tables_that_are_not_complete_are_under_copy() -> None:
    found = table_copies(acts(BEGUN, ENDED, ("CreateTable+", "db/b"), (BEGINS_COPY, "db/c")))
    assert under_copy(found) == [UnderCopy("db", "b", None), UnderCopy("db", "c", 4)]
    assert under_copy(table_copies(acts(PARKED))) == [UnderCopy("db", "a", None, 1)]


def test_what_was_logged_before_a_copy_begins_is_past() -> None:
    segments = lineage([A], acts(BEGUN, ENDED, ALTERED))
    assert [(each.first, each.end, each.era, each.owner) for each in segments] == [
        (0, 1, 0, None), (1, 3, 0, A), (3, 1 << 62, 1, A)
    ]  # fmt: skip
