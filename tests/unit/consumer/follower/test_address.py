"""The follower among several servers: the only one that takes writes, if its checkpoint is ours and of our history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.profile import Database
from cdc.consumer.errors import Interrupted
from cdc.consumer.follower.address import Candidate, chosen

SERVERS = [Database(port=3306 + number) for number in range(3)]
UUIDS = ["a", "b", "group"]
_uuids = st.frozensets(st.sampled_from(UUIDS))
_candidates = st.builds(
    Candidate,
    trouble=st.sampled_from(["", "", "", "no answer"]),
    server=st.sampled_from(["a", "b", "c"]),
    read_only=st.booleans(),
    sequence=st.none() | st.integers(-1, 9),
    writes_as=_uuids,
    executed=_uuids,
)


@given(answers=st.lists(_candidates, min_size=1, max_size=3), former=st.none() | _candidates)
def test_no_other_server_may_be_the_follower(answers: list[Candidate], former: Candidate | None) -> None:
    asked = dict(zip(SERVERS, answers, strict=False))
    try:
        database = chosen(asked, asked=len(SERVERS), former=former)
    except Interrupted:
        return
    found = asked[database]
    writable = {each.server for each in answers if not each.trouble and not each.read_only}
    assert writable == {found.server}
    if found.sequence is None:  # a new follower: no server can have a checkpoint
        assert former is None
        assert len(answers) == len(SERVERS)
        assert all(not each.trouble and each.sequence is None for each in answers)
    elif former is not None and former.server != found.server:
        assert former.writes_as & found.executed


def test_a_replica_of_the_former_one_is_taken_and_another_server_named() -> None:
    former = Candidate(server="a", sequence=7, writes_as=frozenset({"a"}), executed=frozenset({"a"}))
    gone, replica = Candidate("no answer"), Candidate(server="b", sequence=5, executed=frozenset({"a", "b"}))
    asked = dict(zip(SERVERS, [gone, replica, Candidate(server="c", read_only=True, sequence=7)], strict=True))
    assert chosen(asked, asked=3, former=former) == SERVERS[1]
    asked[SERVERS[1]] = Candidate(server="b", sequence=5, executed=frozenset({"b"}))
    with pytest.raises(Interrupted, match=r":3307 takes writes, and lacks all transactions of the server a,"):
        chosen(asked, asked=3, former=former)
    # After a restart of the consumer nothing is known of the former one: the checkpoint counts.
    assert chosen(asked, asked=3, former=None) == SERVERS[1]
    asked[SERVERS[1]] = Candidate(server="b")
    with pytest.raises(Interrupted, match=r"no checkpoint of this stream; fluvio@127\.0\.0\.1:3308 has one"):
        chosen(asked, asked=3, former=None)
