"""What a reader has read is in the topics: where it was, elsewhere since brokers had lost it, or an error says so."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import CdcError, PromiseError, UserError
from cdc.kafka import places
from cdc.kafka.fragments import EPOCH_HEADER, FRAGMENT_HEADER
from cdc.kafka.places import Reader, offsets_behind
from cdc.model.commit_entry import Mark
from cdc.model.read_record import ReadRecord, newest_record
from tests.harness.simulated_broker import Broker, Written

TOPIC = ("t", 0)
READER = Reader("the lake", "name another folder")
COPIED = 7  # added to the time of a record, as if a chunk had been read again
END = Written(1, None, is_commit=True)


def record(sequence: int, *, later: int = 0, epoch: int = 0, fragment: str = "") -> Written:
    """A record, or the mark of an epoch if its sequence is -1."""
    head = (
        f'{{"uri":"flv://r/d/t","sequence":{sequence},"bn_file":{{"fileName":"b.1","offset":{10 * sequence}}},'
        f'"transaction":{{"id":"u:1","index":0,"last":true,"ts_us":{1000 * sequence + later}}}'
    )
    text = head if fragment else f'{head},"columns":["i"],"operation":{{"Add":{{"rows":[]}}}}}}'
    headers = [(EPOCH_HEADER, str(epoch).encode())] if epoch else []
    headers += [(FRAGMENT_HEADER, f"{sequence} {fragment} 0".encode())] if fragment else []
    value = None if sequence < 0 else b"x" if fragment.startswith("1 ") else text.encode()
    return Written(-1, Message(topic="t", partition=0, key=b"flv://r/d/t", value=value, headers=headers))


def read(sequence: int, offset: int) -> ReadRecord:
    return ReadRecord(sequence, offset, "b.1", 10 * sequence, 1000 * sequence)


@contextmanager
def topic(log: Sequence[Written]) -> Iterator[None]:
    broker = Broker(random.Random(0), 0.0)
    broker.logs[TOPIC] = list(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(places, "backwards", broker.backwards)
        patch.setattr(places, "newest_within", broker.newest_within)
        yield


def behind(
    log: Sequence[Written], *records: ReadRecord, begin: int = 0, upto: int = 0, marks: Sequence[Mark] = ()
) -> int:
    """The offset at which a reader continues that has read up to the offset ``upto``."""
    with topic(log):
        offsets, ranges = {TOPIC: upto}, {TOPIC: (begin, len(log))}
        return offsets_behind({}, {TOPIC: records}, offsets, ranges, marks, reader=READER)[TOPIC]


def logged(strides: list[int], *, later: Sequence[int] = ()) -> tuple[list[Written], dict[int, int]]:
    """Records with the ends of Kafka transactions behind them: each takes as many offsets as its stride."""
    log, offsets = list[Written](), dict[int, int]()
    for sequence, stride in enumerate(strides):
        offsets[sequence] = len(log)
        log += [record(sequence, later=COPIED * (sequence in later)), *[END] * (stride - 1)]
    return log, offsets


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=9), st.data())
def test_a_record_is_found_wherever_it_is_now(strides: list[tuple[int, int]], data: st.DataObject) -> None:
    """Also where another one, or the end of a transaction, is at its former offset."""
    before, after = (logged([pair[which] for pair in strides]) for which in (0, 1))
    last = data.draw(st.integers(0, len(strides) - 1))
    copied = data.draw(st.integers(0, last))
    known = [read(each, before[1][each]) for each in (last, copied)]
    upto = before[1].get(last + 1, len(before[0]))
    assert behind(before[0], *known, upto=upto) == upto, "nothing was lost, and the reader has read the ends"
    found, following = behind(after[0], *known, upto=upto), after[1].get(last + 1, len(after[0]))
    assert after[1][last] < found <= following, "a record is passed over, or read twice"


@given(st.lists(st.integers(1, 3), min_size=2, max_size=9), st.data())
def test_a_chunk_that_was_read_again_is_another_record(strides: list[int], data: st.DataObject) -> None:
    """Also where the last record that was read is the same as before, at the same offset."""
    last = data.draw(st.integers(1, len(strides) - 1))
    copied = data.draw(st.integers(0, last - 1))
    log, offsets = logged(strides, later=[copied])
    with pytest.raises(PromiseError, match=f"record {copied} is not the record that the lake has"):
        behind(log, read(last, offsets[last]), read(copied, offsets[copied]))


@pytest.mark.parametrize(
    ("log", "error", "what"),
    [
        ([], UserError, "it has record 3, the topic ends with -1"),
        ([record(0), record(1), record(2)], UserError, "it has record 3, the topic ends with 2"),
        ([record(0), record(1), record(2), record(4)], PromiseError, "record 3 is not the record"),
        ([record(4), record(5)], PromiseError, "record 3 is not the record"),
        ([record(0), record(3, later=1)], PromiseError, "that one was from leader position b.1:30"),
    ],
)
def test_a_record_that_is_gone_is_told(log: list[Written], error: type[CdcError], what: str) -> None:
    with pytest.raises(error, match=what):
        behind(log, read(3, 5))


def test_a_record_that_retention_has_deleted_is_no_error() -> None:
    assert behind([END, END, record(4)], read(3, 0), begin=2, upto=2) == 2
    assert behind([END, END], read(3, 0), begin=2, upto=1) == 1
    with pytest.raises(UserError, match="the topic ends with 2"):
        behind([END, record(2)], read(3, 0), begin=1)


def test_what_retention_has_deleted_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest record shows it, also behind what is none: else each run would read the partition to its beginning."""
    log = [END, END, record(4), record(5)]
    with topic(log):
        monkeypatch.delattr(places, "backwards")
        found = offsets_behind({}, {TOPIC: (read(3, 0),)}, {TOPIC: 4}, {TOPIC: (1, 4)}, (), reader=READER)
        assert found == {TOPIC: 4}


def test_a_void_record_is_not_the_one_that_was_read() -> None:
    """The replaced producer's record is where the one was that was read, and the new producer's is behind it."""
    log = [record(0, epoch=1), record(-1, epoch=2), record(1, epoch=1), record(1, epoch=2)]
    assert behind(log, read(1, 2), upto=3, marks=[Mark(2, 1)]) == 4
    assert behind(log, read(1, 3), upto=4, marks=[Mark(2, 1)]) == 4


def test_a_record_of_several_messages_is_found_at_its_first_one() -> None:
    log = [record(0), record(1, fragment="0 2"), record(1, fragment="1 2"), record(2)]
    assert behind(log, read(1, 1), upto=3) == 3
    assert behind(log, read(1, 1), upto=4) == behind(log, read(1, 2), upto=3) == 2
    assert behind(log, read(2, 2), upto=3) == 4


def test_a_partition_that_is_gone_is_the_callers_matter() -> None:
    with topic([record(0)]):
        for known in ({("gone", 0): [read(3, 3)]}, {}):
            assert offsets_behind({}, known, {TOPIC: 1}, {TOPIC: (0, 1)}, [], reader=READER) == {TOPIC: 1}


def test_the_newer_of_two_records_is_kept() -> None:
    assert newest_record((), None) == ()
    assert newest_record((), (1, 2, "b.1", 3, 4)) == (ReadRecord(1, 2, "b.1", 3, 4),)
    assert newest_record((read(3, 3),), (1, 2, "b.1", 3, 4)) == newest_record((read(3, 3),), None) == (read(3, 3),)
