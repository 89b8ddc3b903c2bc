"""A follower is promoted only if it has everything that it can have, and nobody writes to the leader."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc.consumer.follower.promoted import ServerState
from cdc.consumer.promotion import first_begin, shortcomings
from cdc.consumer.state.status import Applied, Entry, Parked, Status
from cdc.model.commit_entry import Commits
from cdc.model.gtid import GtidSet

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
APPLIED = Applied(9, "t", "id", {}, "", "", None, datetime(2026, 1, 1, tzinfo=UTC))
NEWEST = Commits(10, (), gtid_set=f"{UUID}:1-5")
FOLLOWER = ServerState(False, False, GtidSet())
LEADER = ServerState(True, True, GtidSet.parse(f"{UUID}:1-5"))
ENTRY = Entry(9, "intent", "ALTER TABLE t", "", datetime(2026, 1, 1, tzinfo=UTC))


def told(
    status: Status | None = None, newest: Commits | None = NEWEST, follower: ServerState | None = FOLLOWER,
    leader: tuple[ServerState, ...] = (LEADER,),
) -> list[str]:  # fmt: skip
    return [each.what for each in shortcomings(status or Status(None, APPLIED), newest, state=follower, leaders=leader)]


def test_nothing_is_missing() -> None:
    assert told() == told(leader=()) == []
    # The leader died within a transaction: its first two records can't be applied any more.
    assert told(newest=replace(NEWEST, next_sequence=12, of_open=2)) == []


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"newest": replace(NEWEST, next_sequence=12)}, "2 records of the topic are not applied"),
        ({"newest": replace(NEWEST, next_sequence=13, of_open=2)}, "1 records of the topic are not applied"),
        (
            {"newest": replace(NEWEST, copying=(("d", "t"), ("d", "u"))), "leader": ()},
            "a copy of tables has not ended, so rows may be missing: d.t, d.u",
        ),
        (
            {"newest": replace(NEWEST, copying=(("d", "t"),) * 22)},
            f"a copy of tables has not ended, so rows may be missing: {', '.join(['d.t'] * 20)} and 2 more",
        ),
        ({"newest": None}, "this is no follower, or its topic has no commit log"),
        ({"status": Status(None)}, "this is no follower, or its topic has no commit log"),
        ({"status": Status(None, APPLIED, open=(ENTRY,))}, "1 statements are begun"),
        ({"status": Status(None, APPLIED, parked=(Parked("d", "t", "refused", 3, "x"),))}, "tables are parked: d.t"),
        (
            {"follower": FOLLOWER._replace(runs_events=True)},
            "event_scheduler is ON: an event that has run once would run again",
        ),
        ({"leader": (LEADER, LEADER._replace(read_only=False))}, "the leader takes writes"),
        (
            {"leader": (LEADER._replace(executed=GtidSet.parse(f"{UUID}:1-7")),)},
            f"the topic lacks transactions of the leader: {UUID}:6-7",
        ),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(given: dict[str, object], says: str) -> None:
    assert told(**given) == [says]  # type: ignore[arg-type]


def test_a_copy_of_a_lost_leader_can_not_end() -> None:
    newest = replace(NEWEST, copying=(("d", "t"),))
    assert [*shortcomings(Status(None, APPLIED), newest, state=FOLLOWER, leaders=(), is_lost=True)] == []


def test_a_second_attempt_begins_where_the_first_one_did_unless_the_server_has_begun_new_logs() -> None:
    first, second, anew = (GtidSet.parse(f"{UUID}:1-{end}") for end in (5, 7, 2))
    assert first_begin([], second) == second
    assert first_begin([first], second) == first
    assert first_begin([first], anew) == anew
