"""Records go round a topic's partitions, and go on there after a restart; what each partition holds is counted."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cdc.model.commit_entry import Commits, Entry
from cdc.model.position import Position
from cdc.producer.sink.router import Partitioner

PARTITIONS = {"a": 1, "b": 3, "c/d": 2}
START = Entry(next_sequence=0, position=Position("binlog.000001", 4), gtid_set="", server_uuid="u")


def partitions_of(topics: set[str]) -> dict[str, int]:
    return {topic: PARTITIONS[topic] for topic in topics}


def entry(spread: Partitioner) -> Entry:
    text = Entry(
        next_sequence=spread.next_sequence, position=START.position, gtid_set="", server_uuid="u",
        counts=spread.counts(), last=spread.last(),
    ).to_json()  # fmt: skip
    return Entry.parse(text, where="here")


def taken(spread: Partitioner, topic: str) -> int:
    """The partition of the next record, which is written there."""
    partition = spread.next_partition(topic)
    spread.count(topic, partition)
    return partition


@given(st.lists(st.sampled_from(sorted(PARTITIONS)), max_size=30), st.integers(0, 30))
def test_a_restart_changes_nothing(topics: list[str], cut: int) -> None:
    whole = Partitioner(None, open_topics=partitions_of)
    places = [(topic, taken(whole, topic)) for topic in topics]
    first = Partitioner(START, open_topics=partitions_of)
    found = [(topic, taken(first, topic)) for topic in topics[:cut]]
    second = Partitioner(entry(first), open_topics=partitions_of)
    found += [(topic, taken(second, topic)) for topic in topics[cut:]]
    assert found == places
    # A partition that nothing ever went to may be known to the one and not yet to the other.
    assert {name: count for name, count in entry(second).counts.items() if count} == {
        name: count for name, count in entry(whole).counts.items() if count
    }
    assert entry(second).last == entry(whole).last
    for topic, number in entry(whole).partitions:
        mine = [sequence for sequence, place in enumerate(places) if place == (topic, number)]
        assert whole.counts()[f"{topic}/{number}"] == len(mine)
        assert whole.last().get(f"{topic}/{number}", -1) == max(mine, default=-1)
    read = Commits.parse(entry(whole).to_json(), where="here")
    assert (read.next_sequence, list(read.partitions)) == (len(topics), sorted(entry(whole).partitions))


def test_a_record_that_is_refused_is_not_counted() -> None:
    spread = Partitioner(None, open_topics=partitions_of)
    taken(spread, "b")
    before = entry(spread)
    assert (spread.next_partition("b"), spread.next_partition("b")) == (1, 1)
    assert entry(spread) == before


def test_topics_are_known_once_they_are_open() -> None:
    spread = Partitioner(None, open_topics=partitions_of)
    assert not spread.knows({"a"})
    spread.open({"a", "b"})
    assert spread.knows({"a", "b"})
    assert spread.knows({"a"})
    assert not spread.knows({"a", "c/d"})


def test_entries_of_one_topic_are_as_they_were() -> None:
    assert b"last" not in START.to_json()
    assert b"shown" not in START.to_json()
    assert b"fragmented" not in START.to_json()


def test_an_entry_says_that_records_are_in_fragments() -> None:
    text = replace(START, fragmented=True).to_json()
    assert Entry.parse(text, where="here").fragmented
    assert Commits.parse(text, where="here").fragmented
    assert not Commits.parse(START.to_json(), where="here").fragmented
