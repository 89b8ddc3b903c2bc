"""Which entry of the commit log is true, by what readers can see of each partition."""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import PromiseError, UserError
from cdc.model.commit_entry import Entry
from cdc.model.partition import Partition
from cdc.model.position import Position
from cdc.producer.copy.state import Pending
from cdc.producer.sink.partitioner import Partitioner
from cdc.producer.sink.recovery import _unseen, require_chunks_before, true_entry
from cdc.producer.sink.topic_admin import require_counted

POSITION = Position("binlog.000001", 4)
NAMES = Topics("t", layout=PER_TABLE)


@dataclass
class History:
    """Kafka transactions, as the sequences that each brought into each partition, and the entries with them."""

    brought: list[dict[Partition, list[int]]]
    entries: list[Entry]


def history(transactions: list[list[str]]) -> History:
    spread = Partitioner(None, open_topics=lambda topics: dict.fromkeys(topics, 2))
    found = History([], [entry(spread)])
    for topics in transactions:
        brought: dict[Partition, list[int]] = {}
        for topic in topics:
            sequence = spread.next_sequence
            number = spread.next_partition(topic)
            spread.count(topic, number)
            brought.setdefault((topic, number), []).append(sequence)
        found.brought.append(brought)
        found.entries.append(entry(spread))
    return found


def entry(spread: Partitioner) -> Entry:
    return Entry(
        next_sequence=spread.next_sequence, position=POSITION, gtid_set="", server_uuid="u",
        counts=spread.counts(), last=spread.last(),
    )  # fmt: skip


def chosen(past: History, visible: dict[Partition, int], names: Topics = NAMES) -> Entry | None:
    return true_entry(visible, None, iter(past.entries[::-1]), names)


TRANSACTIONS = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=6)


@given(TRANSACTIONS, st.data())
def test_below_the_true_entry_nothing_is_missing_and_no_better_one_is_true(
    transactions: list[list[str]], data: st.DataObject
) -> None:
    """Each partition may have lost the newest transactions, whatever the others have."""
    past = history(transactions)
    partitions = sorted({place for brought in past.brought for place in brought})
    seen = {}
    for place in partitions:
        kept = data.draw(st.integers(0, len(past.brought)))
        seen[place] = {number for brought in past.brought[:kept] for number in brought.get(place, [])}
    visible = {place: max(numbers) for place, numbers in seen.items() if numbers}
    everything = set().union(*seen.values())
    found = chosen(past, visible)
    assert found is not None
    assert set(range(found.next_sequence)) <= everything
    better = [each for each in past.entries if set(range(each.next_sequence)) <= everything]
    assert found.next_sequence == max(each.next_sequence for each in better)


def test_records_that_no_entry_speaks_of_follow_the_newest_one() -> None:
    """As after a commit that came late, in the midst of the next transaction."""
    past = history([["a"], ["b"]])
    assert chosen(past, {("a", 0): 3, ("b", 0): 1}) == past.entries[-1]
    assert chosen(past, {("a", 0): 3}) == past.entries[1]
    with pytest.raises(PromiseError, match="up to sequence 9000000"):
        chosen(past, {("a", 0): 9_000_000, ("b", 0): 1})
    with pytest.raises(PromiseError, match="up to sequence 9"):
        chosen(History([], []), {("a", 0): 9})


def test_nothing_was_ever_written() -> None:
    assert true_entry({}, None, iter([]), NAMES) is None


def test_one_topic_needs_no_sequences_in_its_entries() -> None:
    past = [Entry(next_sequence=number, position=POSITION, gtid_set="", server_uuid="u") for number in (5, 3, 0)]
    single = Topics("t")
    assert chosen(History([], past[::-1]), {("t", 0): 4}, single) == past[0]
    assert chosen(History([], past[::-1]), {("t", 0): 2}, single) == past[1]
    assert chosen(History([], past[::-1]), {}, single) == past[2]


def test_events_that_cannot_be_seen_are_shown_again() -> None:
    shown = [Position("binlog.000001", offset) for offset in (900, 500)]
    past = [
        Entry(next_sequence=0, position=POSITION, gtid_set="", server_uuid="u", shown=position) for position in shown
    ]
    assert true_entry({}, shown[0], iter(past), NAMES) == past[0]
    assert true_entry({}, shown[1], iter(past), NAMES) == past[1]


@pytest.mark.parametrize(
    ("visible", "lost"),
    # Sequences of the chunks that readers see; 9 and 11 are records of the leader, 8, 10, 12 and 13 chunks.
    [([], 0), ([8], 0), ([8, 10], 0), ([10], 1), ([8, 10, 13], 1), ([13], 3), ([8, 10, 12, 13], 0)],
)
@pytest.mark.parametrize("before", [0, 4])
def test_a_chunk_that_readers_see_is_refused_where_one_before_it_is_lost(
    visible: list[int], lost: int, before: int
) -> None:
    tables = (("d", "t"),)
    entry = Entry(8, POSITION, "", "", copy=Pending(again=tables, written=before).to_json())
    written = {8: 1, 10: 2, 12: 3, 13: 4}
    chunks = {
        each: ("t.d.t", json.dumps(Pending(again=tables, written=before + written[each]).to_json())) for each in visible
    }
    if not lost:
        require_chunks_before(entry, chunks)
        return
    with pytest.raises(PromiseError, match=f"{lost} records of a copy after sequence 7 are lost"):
        require_chunks_before(entry, chunks)
    with pytest.raises(PromiseError):
        require_chunks_before(None, chunks)


def test_a_chunk_of_which_readers_see_the_first_fragments_is_refused() -> None:
    """It can't be read again as it was, and what is written behind it would end all readers."""
    chunks = {8: ("t.d.t", json.dumps(Pending(written=1).to_json()))}
    with pytest.raises(PromiseError, match="the last fragments of record 8, which a copy wrote, are lost"):
        require_chunks_before(Entry(8, POSITION, "", ""), chunks, {8})


def test_chunks_that_brokers_have_lost_are_refused() -> None:
    """An entry counts them, and they can't be read again as they were."""
    entry, counted = (Entry(at, POSITION, "", "", copy=Pending(written=written).to_json()) for at, written in COPIED)
    chunks = {8: ("t.d.t", json.dumps(Pending(written=2).to_json()))}
    require_chunks_before(entry, chunks, counted=entry)
    with pytest.raises(PromiseError, match="1 records of a copy after sequence 7 are lost"):
        require_chunks_before(entry, chunks, counted=counted)
    with pytest.raises(PromiseError, match="2 records of a copy after sequence 7 are lost"):
        require_chunks_before(entry, {}, counted=counted)


COPIED = ((8, 1), (12, 3))


def test_what_is_written_again_is_what_an_entry_counts_and_readers_do_not_see() -> None:
    counted = Entry(12, POSITION, "", "")
    assert _unseen(8, counted, [8, 9, 10, 11]) == 0
    assert _unseen(8, counted, [8, 9, 12, 13]) == 2  # the commit log has lost its newest entries, too
    assert (_unseen(12, counted, []), _unseen(0, None, [0, 1])) == (0, 0)


def test_a_topic_that_was_created_again_has_lower_offsets_than_its_records_need() -> None:
    """It may contain the newest records all the same: a running producer has written them."""
    entry = Entry(121, POSITION, "", "", counts={"t/0": 121, "u/0": 3})
    require_counted(entry, {("t", 0): 240, ("u", 0): 3, ("new", 0): 0})
    require_counted(None, {("t", 0): 5})
    with pytest.raises(UserError, match=r"the commit log counts 121 records, the topic ends at offset 22: .* topic t,"):
        require_counted(entry, {("t", 0): 22, ("u", 0): 3})
