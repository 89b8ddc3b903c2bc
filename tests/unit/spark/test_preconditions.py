"""Why an audit can't judge, as far as that can be told without records."""

from dataclasses import replace

import pytest

from cdc.config.filters import Filters
from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.gtid import StatementSequences
from cdc.spark.ddl.lineage import Act
from cdc.spark.ddl.scope import Scope
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.spans import Span, early_reasons
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.integrity import Integrity
from cdc.spark.streams.preconditions import Preconditions, unmet
from cdc.spark.streams.watermark import Watermark

NOTHING = Preconditions(
    profiles={LEADER: Profile(), FOLLOWER: Profile()},
    sequences=StatementSequences("mysql-srv1"),
    scope=Scope(),
    renames=Renames({}),
    contents={},
    acts={},
    limits={LEADER: None, FOLLOWER: None},
    watermark=Watermark(-1, -1, -1, None, 0, 0),
    integrity=Integrity({}, []),
    gap=None,
)


def left_out(
    capture: Filters, *acts: tuple[str, str], consumer: Filters | None = None, renames: Renames | None = None
) -> str:
    """What of the leader's statements (action, path) the follower's capture leaves out, in the audit's words."""
    profiles = {LEADER: Profile(), FOLLOWER: Profile(filters=capture)}
    statements = [Act(at, 0, action, f"flv://mysql-srv1/{path}") for at, (action, path) in enumerate(acts)]
    checked = replace(NOTHING, profiles=profiles, scope=Scope(consumer), acts={LEADER: statements})
    reasons = unmet(replace(checked, renames=renames) if renames else checked)
    return "".join(reasons).rpartition("leave out what the leader topic has: ")[2]


@pytest.mark.parametrize(("limit", "cut"), [(None, False), (4, False), (5, True)])
def test_a_topic_that_ends_before_its_commit_log_does(limit: int | None, *, cut: bool) -> None:
    contents = Contents(4, 0, 0, 3, 1, 2, frozenset({"mysql-srv1"}), frozenset())
    reasons = unmet(replace(NOTHING, contents={LEADER: contents}, limits={LEADER: limit, FOLLOWER: None}))
    assert ["ends at sequence 3, its commit log at 4: retention cut the rest" in each for each in reasons] == (
        [True] * cut
    )


ONE = Filters(include_dbs=("db", "cdc"))
NO_VIEW = Filters(exclude_tables=("db.v", "db.p"))


@pytest.mark.parametrize(
    ("capture", "act", "expected"),
    [
        (ONE, ("CreateTable", "db/t"), ""),
        (ONE, ("CreateTable", "y/t"), "y.t"),
        (ONE, ("CreateDatabase", "y"), "y"),
        (ONE, ("CreateProcedure", "y/p"), "y.p"),
        (ONE, ("CreateTrigger", "y/g"), ""),
        (NO_VIEW, ("CreateView", "db/v"), "db.v"),
        (NO_VIEW, ("CreateIndex", "db/v"), "db.v"),
        (NO_VIEW, ("CreateProcedure", "db/p"), ""),
        (NO_VIEW, ("CreateView", "db/w"), ""),
    ],
)
def test_a_capture_that_leaves_out_what_statements_made(capture: Filters, act: tuple[str, str], expected: str) -> None:
    assert left_out(capture, act) == expected


def test_a_capture_without_the_consumers_ledger() -> None:
    profiles = {LEADER: Profile(), FOLLOWER: Profile(filters=Filters(exclude_tables=("cdc.ledger",)))}
    assert any("leave out cdc.ledger" in each for each in unmet(replace(NOTHING, profiles=profiles)))
    assert not any("ledger" in each for each in unmet(NOTHING))


def test_what_is_none_of_the_followers_or_has_another_name_there() -> None:
    assert left_out(ONE, ("CreateDatabase", "y"), consumer=Filters(include_dbs=("db",))) == ""
    copy = Filters(include_dbs=("copy", "cdc"))
    assert left_out(copy, ("CreateDatabase", "db"), renames=Renames({"db": "copy"})) == ""
    assert left_out(copy, ("CreateDatabase", "db")) == "db"


def contents(*, first: int = 0, end: int = 9, tables: tuple[tuple[str, str], ...] = ()) -> Contents:
    return Contents(1, 0, first, end, 1, 2, frozenset({"mysql-srv1"}), frozenset(tables))


def test_all_reasons_are_told_at_once() -> None:
    """Each for itself is in the way of a verdict: whoever mends one would learn of the next one minutes later."""
    no_ledger = Profile(filters=Filters(exclude_tables=("cdc.ledger", "db.t")))
    watermark = Watermark(20, 20, 3, None, 0, 0)
    found = unmet(
        replace(
            NOTHING,
            profiles={LEADER: Profile(), FOLLOWER: no_ledger},
            watermark=watermark,
            contents={LEADER: contents(tables=(("db", "t"),))},
        )
    )
    for reason in (
        "leave out cdc.ledger", "leave out what the leader topic has: db.t",
        "the follower is at sequence 20", "begins when the follower was at sequence 3",
    ):  # fmt: skip
        assert any(reason in each for each in found), (reason, found)


def test_what_a_reason_explains_is_none() -> None:
    nothing_seen = Watermark(None, None, None, None, 0, 0)
    no_notes = {LEADER: Profile(), FOLLOWER: Profile(filters=Filters(exclude_dbs=("cdc",)))}
    (reason,) = unmet(replace(NOTHING, profiles=no_notes, watermark=nothing_seen))
    assert "leave out database cdc" in reason
    (reason,) = unmet(replace(NOTHING, watermark=nothing_seen))
    assert "has no checkpoint" in reason
    cut = {LEADER: contents(first=4), FOLLOWER: replace(contents(first=4), resources=frozenset())}
    found = unmet(replace(NOTHING, contents=cut, watermark=Watermark(20, 20, 3, None, 0, 0), gap=(4, 5)))
    assert ["begins at sequence 4" in each for each in found] == [True, True]


def test_early_reasons() -> None:
    """What the profiles and the offsets tell, before Spark starts."""
    empty, cut = Span({("leader", 0): (0, 0)}), Span({("follower", 0): (7, 9)})
    sides = {LEADER: Profile(), FOLLOWER: Profile(filters=Filters(exclude_tables=("cdc.ledger",)))}
    found = list(early_reasons(sides, {LEADER: empty, FOLLOWER: cut}, "cdc"))
    assert ["leave out cdc.ledger" in found[0], "has no records yet" in found[1], "offset 7" in found[2]] == [True] * 3
    assert not list(
        early_reasons({LEADER: Profile(), FOLLOWER: Profile()}, dict.fromkeys(sides, cut), "cdc", kept=True)
    )


def test_a_capture_that_leaves_rows_out_is_refused_at_once_and_by_the_judge() -> None:
    """A foreign write of such a row is in no topic."""
    profiles = {LEADER: Profile(), FOLLOWER: Profile(filters=Filters(rows={"db.t": "a = 1"}))}
    spans = {side: Span({("t", 0): (0, 1)}) for side in profiles}
    for reasons in (unmet(replace(NOTHING, profiles=profiles)), [*early_reasons(profiles, spans, own="cdc")]):
        assert [each for each in reasons if "filters.rows leaves out rows of the follower (db.t)" in each], reasons
    leader_only = {LEADER: profiles[FOLLOWER], FOLLOWER: Profile()}
    assert not [each for each in unmet(replace(NOTHING, profiles=leader_only)) if "filters.rows" in each]
