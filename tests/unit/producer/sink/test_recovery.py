"""Which entry of the commit log is true, by what readers can see of each partition."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from cdc.config.topic_names import PER_TABLE, Topics
from cdc.errors import PromiseError, UserError
from cdc.kafka import commit_log
from cdc.kafka.fragments import EPOCH_HEADER
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Partition, Position
from cdc.producer.copy.state import Pending
from cdc.producer.sink import epoch_marks, recovery
from cdc.producer.sink.recovery import Recovered, _unseen, recover, require_chunks_before, since_last_start, true_entry
from cdc.producer.sink.router import Partitioner
from cdc.producer.sink.topic_admin import require_counted
from tests.harness.simulated_broker import Broker, Written

POSITION = Position("binlog.000001", 4)
NAMES = Topics("t", layout=PER_TABLE)
SINGLE = Topics("t")


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


def test_an_entry_that_was_rolled_back_before_the_last_start_is_not_true() -> None:
    """Readers see records that no entry counts, after a commit that came late. An entry of an earlier start counts as
    many, but a chunk of a copy had another place among them.
    """
    begun, rolled_back, newer, before = (
        Entry(next_sequence=number, position=Position("binlog.000001", place), gtid_set="", server_uuid="u")
        for number, place in ((100, 40), (120, 70), (110, 50), (90, 30))
    )
    single, visible = Topics("t"), {("t", 0): 119}
    log = [begun, rolled_back, before]
    assert true_entry(visible, None, since_last_start(log, begun), single) == begun
    # What the last start itself has begun counts, and so does what is below its entry.
    assert true_entry(visible, None, since_last_start([newer, *log], begun), single) == newer
    assert true_entry({("t", 0): 95}, None, since_last_start(log, begun), single) == before
    assert true_entry(visible, None, since_last_start(log, None), single) == rolled_back


def test_nothing_was_ever_written() -> None:
    assert true_entry({}, None, iter([]), NAMES) is None


def test_one_topic_needs_no_sequences_in_its_entries() -> None:
    past = [Entry(next_sequence=number, position=POSITION, gtid_set="", server_uuid="u") for number in (5, 3, 0)]
    single = Topics("t")
    assert chosen(History([], past[::-1]), {("t", 0): 4}, single) == past[0]
    assert chosen(History([], past[::-1]), {("t", 0): 2}, single) == past[1]
    assert chosen(History([], past[::-1]), {}, single) == past[2]


def test_an_entry_needs_debeziums_messages_of_its_records() -> None:
    place, records = ("p.d.t", 0), {("t", 0): 8}
    past = [
        Entry(next_sequence=number, position=POSITION, gtid_set="", server_uuid="u", debezium={"p.d.t/0": number - 2})
        for number in (9, 5)
    ]
    single = Topics("t")
    assert [Entry.parse(each.to_json(), where="") for each in past] == past
    for seen, expected in ((7, past[0]), (6, past[1]), (3, past[1]), (1 << 63, past[0])):
        assert true_entry(records | {place: seen}, None, iter(past), single) == expected
    # The topic is gone, or belongs to a former prefix.
    assert true_entry(records, None, iter(past), single) == past[0]


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


Log = list[Message | None]
Recovery = Callable[..., Recovered]


@pytest.fixture
def recovered(monkeypatch: pytest.MonkeyPatch) -> Recovery:
    """Recovers topics with these logs, and a commit log with these entries; all transactions there have ended. A log
    that begins with nothing is one whose first messages retention has removed.
    """

    def recovered(
        logs: dict[str, Log], *entries: Entry, aborted: Log | None = None, names: Topics = SINGLE
    ) -> Recovered:
        broker = Broker(random.Random(0), 0.0, {("t.commits", 0): []})
        for topic, log in logs.items():
            broker.logs[topic, 0] = [Written(-1, each) for each in log]
        # The messages of a transaction that was rolled back are behind those of the last topic.
        broker.logs[list(logs)[-1], 0] += [Written(1, each) for each in aborted or []]
        for each in entries:
            message = Message(topic="t.commits", partition=0, key=b"r", value=each.to_json())
            broker.logs["t.commits", 0].append(Written(-1, message))
        begins = {(topic, 0): int(log[:1] == [None]) for topic, log in logs.items()}
        for module in (recovery, epoch_marks, commit_log):
            monkeypatch.setattr(module, "backwards", broker.backwards)
        monkeypatch.setattr(recovery, "newest", broker.newest)
        monkeypatch.setattr(recovery, "unended", broker.unended)
        for module in (recovery, epoch_marks):
            monkeypatch.setattr(module, "begin_offsets", lambda _, places: {each: begins[each] for each in places})
        topics = SimpleNamespace(names=names, properties={}, suspects=set())
        return recover({}, cast("Any", None), cast("Any", topics), resource="r")

    return recovered


def written(sequence: int, epoch: int = 0) -> Message:
    """A record of the producer of an epoch."""
    place = {"fileName": POSITION.file, "offset": POSITION.offset}
    body: dict[str, Any] = {"uri": "flv://r/d/t", "sequence": sequence, "bn_file": place, "columns": ["i"]}
    body |= {"transaction": {"id": "u:1", "index": 0, "last": True, "ts_us": 1}}
    body |= {"operation": {"Add": {"rows": [{"cols": [{"Int": sequence}]}]}}}
    return Message(topic="t", partition=0, key=b"flv://r/d/t", value=json.dumps(body).encode(), headers=stamped(epoch))


def begun(epoch: int) -> Log:
    """The mark of an epoch, and the end of its Kafka transaction."""
    return [Message(topic="t", partition=0, key=b"r", value=None, headers=stamped(epoch)), None]


def stamped(epoch: int) -> list[tuple[str, str | bytes | None]]:
    return [(EPOCH_HEADER, str(epoch).encode())] if epoch else []


def entry_of(following: int, *marks: Mark, copied: int = 0, last: dict[str, int] | None = None) -> Entry:
    copy = Pending(written=copied).to_json() if copied else None
    counts = dict.fromkeys(last or {}, 1)
    return Entry(following, POSITION, "", "u", marks=marks, copy=copy, last=last or {}, counts=counts)


def test_a_mark_that_no_entry_names_counts_however_late_records_before_it_come(recovered: Recovery) -> None:
    """Readers obey the mark, so records that a former start writes behind it are void for the producer, too."""
    log = [*begun(1), written(0, 1), *begun(2), written(1, 2), *begun(3), written(2, 2), written(0, 1)]
    named = entry_of(2, Mark(1, 0), Mark(2, 3))
    found = recovered({"t": log}, named)
    assert found.marks == (Mark(1, 0), Mark(2, 3), Mark(3, 6))
    assert (found.entry, found.visible_checksums, found.ahead, found.rewritten) == (named, {}, {}, 0)


def test_the_mark_behind_one_that_the_brokers_lost_counts(recovered: Recovery) -> None:
    """They lost the newest mark with all behind it; the next one was committed without its entry, by a late commit."""
    before, lost = entry_of(2, Mark(1, 0)), entry_of(4, Mark(1, 0), Mark(2, 4))
    log = [*begun(1), written(0, 1), written(1, 1)]
    assert recovered({"t": [*log, *begun(2), written(2, 2), written(3, 2)]}, before, lost).entry == lost
    found = recovered({"t": log}, before, lost)
    assert (found.entry, found.marks, found.rewritten) == (before, (Mark(1, 0), Mark(2, -1)), 2)
    assert recovered({"t": [*log, *begun(3)]}, before, lost).marks == (Mark(1, 0), Mark(2, -1), Mark(3, 4))
    # A producer that was replaced writes a record behind it that an entry counts.
    far = entry_of(4, Mark(1, 0), Mark(2, 40))
    late = {"t": [*log, *begun(3), written(1, 1)]}
    assert recovered(late, before, far).marks == (Mark(1, 0), Mark(2, -1), Mark(3, 4))


def test_the_search_for_marks_does_not_read_the_topic(recovered: Recovery) -> None:
    """It may be large."""
    unreadable = Message(topic="t", partition=0, key=b"", value=b"read", headers=stamped(1))
    log = [*begun(1), unreadable, written(0, 1)]
    assert recovered({"t": log}, entry_of(1, Mark(1, 0))).marks == (Mark(1, 0),)


def test_what_retention_has_removed_was_not_lost(recovered: Recovery) -> None:
    """Chunks that were rolled back are read again from the leader, unless readers may have seen one of them."""
    logs: dict[str, Log] = {"t.d.a": [None], "t.d.b": [written(2)]}
    before, last = [entry_of(at + 1, copied=at, last={"t.d.a/0": 1, "t.d.b/0": at}) for at in (2, 3)]
    found = recovered(logs, before, last, aborted=[written(3), None], names=NAMES)
    assert found.entry is not None
    assert (found.entry.next_sequence, found.rewritten) == (3, 1)
    with pytest.raises(PromiseError, match="1 records of a copy after sequence 2 are lost"):
        recovered(logs, before, last, names=NAMES)
