"""Which tables can be compared if the follower's capture began late, as far as statements and copies tell."""

import pytest

from cdc.model.gtid import StatementSequences
from cdc.spark.ddl.late_capture import Captured, LateCapture, LateTables, existing, late_tables
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, PARKS, Act
from cdc.spark.ddl.table_copies import ALTERED, NOT_CAPTURED, OLDER, UnderCopy, incomplete_copies, under_copy

A, B = ("db", "a"), ("db", "b")
SEQUENCES = StatementSequences("r", {f"ran:{number}": number for number in range(100)})


def acts(*steps: str) -> list[Act]:
    """``4 AlterTable db/a``: the effect of the statement with that sequence; on the follower ``4/30 …``, if it ran the
    leader's statement 4 with its own sequence 30. ``db/a>db/b`` is renamed, and ``+`` marks a table that is copied.
    """
    found = []
    for step in steps:
        at, action, names = step.split(" ", 2)
        ran, _, own = at.rpartition("/")
        uri, _, to = names.rstrip("+").partition(">")
        found.append(
            Act(
                int(own), 0, action, f"flv://r/{uri}", f"flv://r/{to}" if to else None,
                transaction=f"ran:{ran}" if ran else f"own:{own}", copying=names.endswith("+"),
            )
        )  # fmt: skip
    return found


def copied(name: str, *sequences: int) -> list[str]:
    return [f"{at} {action} db/{name}" for at, action in zip(sequences, (BEGINS_COPY, ENDS_COPY), strict=False)]


NEW = ["0 CreateDatabase db", "1 CreateTable db/a"]
COPIED = copied("a", 20, 21)


@pytest.mark.parametrize(
    ("leader", "follower", "expected"),
    [
        (NEW, COPIED, Captured(9)),
        ([], COPIED, OLDER),
        (copied("a", 3, 4), COPIED, Captured(9)),
        (copied("a", 3), COPIED, None),  # it is listed as being copied
        ([*NEW, f"4 {PARKS} db/a"], COPIED, None),
        (NEW, [], NOT_CAPTURED),
        (NEW, copied("a", 20), NOT_CAPTURED),
        (NEW, [*COPIED, *copied("a", 30)], NOT_CAPTURED),
        # An ALTER before the follower's copy, after it, and while it was under way.
        ([*NEW, "5 AlterTable db/a"], COPIED, ALTERED),
        ([*NEW, "5 CreateIndex db/a"], COPIED, ALTERED),
        ([*NEW, "5 AlterTable db/a"], [*COPIED, "5/30 AlterTable db/a"], Captured(9)),
        ([*NEW, "5 AlterTable db/a"], ["5/19 AlterTable db/a", *COPIED], ALTERED),
        # A foreign ALTER makes up for none of the leader's.
        ([*NEW, "5 AlterTable db/a"], [*COPIED, "30 AlterTable db/a"], ALTERED),
        # The leader's copy comes after the ALTER.
        ([*NEW, "5 AlterTable db/a", *copied("a", 6, 7)], COPIED, Captured(9)),
        ([*NEW, "5 AlterTable db/a", *copied("a", 6, 7)], [*COPIED, "5/30 AlterTable db/a"], Captured(9, altered=True)),
        ([*NEW, *copied("a", 6, 7), "8 AlterTable db/a"], [*COPIED, "8/30 AlterTable db/a"], Captured(9)),
        ([*NEW, "5 TruncateTable db/a"], COPIED, Captured(9)),
        ([*NEW, "5 AlterTable db/a", "6 TruncateTable db/a"], COPIED, Captured(9)),
        # Tables that are gone, or came since.
        ([*NEW, "5 DropTable db/a"], [*COPIED, "5/30 DropTable db/a"], None),
        ([*NEW, "5 DropDatabase db"], [], None),
        ([*NEW, "12 DropTable db/a", "13 CreateTable db/a"], ["12/30 DropTable db/a", "13/31 CreateTable db/a"], None),
        (["12 CreateTable db/a"], ["12/31 CreateTable db/a"], None),
        (["0 CreateDatabase db"], COPIED, Captured(9)),  # the follower alone has it
        # The follower lost it, which its log shows.
        (NEW, [*COPIED, "30 DropTable db/a"], None),
    ],
)
def test_a_table(leader: list[str], follower: list[str], expected: str | Captured | None) -> None:
    theirs = acts(*follower)
    late = LateCapture(9, 9, [act for act in theirs if act.is_of_copy])
    on_follower = {A} if any("CreateTable" in each or BEGINS_COPY in each for each in follower) else set()
    found = late_tables(
        late, acts(*leader), [act for act in theirs if not act.is_of_copy],
        tables=(set(), on_follower), sequences=SEQUENCES, left_out=lambda *_: False,
    )  # fmt: skip
    assert found.unjudged.get(A, found.captured.get(A)) == expected


def test_a_table_that_the_leaders_producer_leaves_out_is_the_followers_own() -> None:
    late = LateCapture(9, 9)
    found = late_tables(late, [], [], tables=((), [A, B]), sequences=SEQUENCES, left_out=lambda *name: name == A)
    assert found == LateTables({B: NOT_CAPTURED})


def test_statements_from_before_the_capture_are_not_compared() -> None:
    """One that ran just before it began is noted in its first transaction."""
    late = LateCapture(4, 5)
    ours, theirs = late.compared(
        acts("4 AlterTable db/a", "5 AlterTable db/a", "6 AlterTable db/a"),
        acts("5/20 AlterTable db/a", "6/22 AlterTable db/a", "23 AlterTable db/b"),
        SEQUENCES,
    )
    assert ([each.sequence for each in ours], [each.sequence for each in theirs]) == ([6], [22, 23])


def test_tables_that_exist() -> None:
    steps = ["1 CreateTable db/a", "2 RenameTable db/a>db/b", "3 CreateView db/v", "4 RenameTable db/v>db/w"]
    assert existing((), acts(*steps)) == {B}
    assert existing([A], acts("1 RenameTable db/a>db/b", "2 DropTable db/b")) == set()


def test_why_tables_are_not_compared() -> None:
    found = under_copy({}, {B: ALTERED, A: NOT_CAPTURED, ("db", "c"): OLDER})
    assert found[:2] == [UnderCopy("db", "a", None, late=NOT_CAPTURED), UnderCopy("db", "b", None, late=ALTERED)]
    not_captured, older, altered = incomplete_copies(found, 7)
    assert "these tables of the follower (1 in all): db.a; " in not_captured
    assert "have them copied into the leader's: cdc-producer PROFILE --copy db.c" in older
    assert "copied into the leader's: cdc-producer PROFILE --copy db.b" in altered
    assert "sequence 7" not in f"{not_captured}{older}{altered}"
