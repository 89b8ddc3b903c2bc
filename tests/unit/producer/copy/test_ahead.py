"""Which follower a copy waits for: one that applies chunks, and none for ever."""

from dataclasses import dataclass
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from cdc.producer.copy.throttle import PATIENCE_SECONDS, Ahead

A, B = "a:3306", "b:3306"
LIMIT = 100


def ahead(*sizes: int) -> Ahead:
    """Chunks with the sequences 10, 11 …, of these sizes, after looks at two followers of which one then moves."""
    made = Ahead(LIMIT, now=0)
    for name, sequence in ((A, 8), (B, 9), (A, 9)):
        made.seen(name, sequence)
    for sequence, size in enumerate(sizes, start=10):
        made.written(sequence, size)
    return made


def test_a_chunk_waits_for_a_follower_that_lacks_more_than_the_limit() -> None:
    copy = ahead(60, 40)
    assert copy.awaited(0) is None
    copy.written(12, 1)
    assert copy.awaited(0) == A
    copy.seen(A, 10)
    assert copy.awaited(0) is None


def test_the_one_that_has_applied_least_is_awaited() -> None:
    copy = ahead(60, 40, 200)
    copy.seen(B, 11)
    assert (copy.counted, copy.awaited(0)) == ({A, B}, A)
    copy.seen(A, 11)
    copy.seen(A, 12)
    assert copy.awaited(0) == B


def test_a_follower_that_has_not_moved_is_not_awaited() -> None:
    copy = ahead(500)
    copy.seen(A, 10)
    copy.seen(B, 9)
    assert (copy.counted, copy.awaited(0)) == ({A}, None)


def test_one_that_applies_no_chunk_is_given_up_and_counts_again_when_it_is_close() -> None:
    copy = ahead(60, 60, 60)
    waited = [second for second in range(60) if copy.awaited(second)]
    assert waited == list(range(int(PATIENCE_SECONDS) + 1))
    copy.seen(A, 9)
    assert copy.awaited(60) is None
    copy.written(13, 60)
    copy.seen(A, 10)  # it lacks 180 bytes
    assert (copy.counted, copy.awaited(61)) == (set(), None)
    copy.seen(A, 12)
    copy.written(14, 60)
    assert (copy.counted, copy.awaited(62)) == ({A}, A)


def test_one_that_moves_without_applying_a_chunk_is_given_up_too() -> None:
    copy = Ahead(LIMIT, now=0)
    copy.seen(A, 0)
    copy.written(1000, 500)
    held = 0
    for second in range(1, 100):
        copy.seen(A, second)
        held += copy.awaited(second) is not None
    assert held == PATIENCE_SECONDS


def test_time_in_which_nothing_waits_is_not_held_against_a_follower() -> None:
    copy = ahead(60, 60)
    assert copy.awaited(1000) == A
    copy.seen(A, 11)
    assert copy.awaited(2000) is None
    copy.written(12, 200)
    assert [copy.awaited(second) for second in (3000, 3001)] == [A, A]


def test_chunks_that_are_long_written_are_forgotten() -> None:
    copy = ahead()
    for sequence in range(10, 10_000 + 10_011):
        copy.written(sequence, 1)
    copy.seen(A, 19_920)
    assert copy.awaited(0) is None
    copy.seen(A, 19_900)
    assert copy.awaited(0) == A


@dataclass
class Consumer:
    """Applies so many records a second, except between two times."""

    behind: int
    speed: int
    stops: int
    goes_on: int
    sequence: int = 0

    def apply(self, second: int, newest: int) -> None:
        if not self.stops <= second < self.goes_on:
            self.sequence = min(self.sequence + self.speed, newest)


consumers = st.builds(
    Consumer,
    behind=st.sampled_from([0, 0, 3, 500]),
    speed=st.integers(0, 4),
    stops=st.integers(0, 100),
    goes_on=st.integers(0, 200),
)


@given(
    followers=st.dictionaries(st.sampled_from([A, B]), consumers),
    changes=st.lists(st.integers(0, 3), min_size=1, max_size=5),
    sizes=st.lists(st.integers(1, 80), min_size=1, max_size=5),
)
def test_no_follower_that_counts_lacks_more_than_the_limit_and_none_is_awaited_for_ever(
    followers: dict[str, Consumer], changes: list[int], sizes: list[int]
) -> None:
    copy, newest, held_since = Ahead(LIMIT, now=0), 600, 0
    chunks: dict[int, int] = {}
    lacks_before: dict[str, int] = {}
    for follower in followers.values():
        follower.sequence = newest - follower.behind
    turns = count()
    for second in range(200):
        for name, follower in followers.items():
            follower.apply(second, newest)
            copy.seen(name, follower.sequence)
        newest += changes[second % len(changes)]
        lacks = {
            name: sum(size for sequence, size in chunks.items() if sequence > follower.sequence)
            for name, follower in followers.items()
        }
        if any(lacks[name] < lacks_before.get(name, 0) for name in lacks):
            held_since = second
        awaited = copy.awaited(second)
        if awaited is None:
            assert all(lacks[name] <= LIMIT for name in copy.counted)
            newest += 1
            chunks[newest] = sizes[next(turns) % len(sizes)]
            copy.written(newest, chunks[newest])
            held_since = second
        else:
            assert awaited in copy.counted
            assert lacks[awaited] > LIMIT
            assert second - held_since <= PATIENCE_SECONDS + 1
        lacks_before = lacks
