"""A stream continues at offsets before which it has read all records, whatever readers see behind the newest entry."""

import random
from dataclasses import replace

import pytest
from confluent_kafka import Message

from cdc.config.profile import Kafka, Profile
from cdc.config.topic_names import PER_TABLE, SINGLE
from cdc.errors import PromiseError, UserError
from cdc.kafka.fragments import EPOCH_HEADER, FRAGMENT_HEADER
from cdc.model.commit_entry import Commits, Mark
from cdc.model.record import Record
from cdc.reader import stream_place
from cdc.reader.stream_place import StreamPlace, transactions_between
from tests.harness.simulated_broker import Broker, Written

A, B = ("a", 0), ("b", 0)
PROFILE = Profile("r", None, kafka=Kafka("none", "t"))  # type: ignore[arg-type]
Log = list[tuple[int, int] | tuple[int, int, str]]


def message(sequence: int, epoch: int, fragment: str = "") -> Message:
    """A record, or a mark if the sequence is -1."""
    text = (
        f'{{"uri":"flv://r/d/a","sequence":{sequence},"bn_file":{{"fileName":"binlog.000001","offset":{sequence}}},'
        f'"transaction":{{"id":"u:1","index":0,"last":true,"ts_us":1}},"columns":["i"],"operation":{{"Add":{{"rows":[]}}}}}}'
    ).encode()
    headers = [(EPOCH_HEADER, str(epoch).encode())] if epoch else []
    headers += [(FRAGMENT_HEADER, f"{sequence} {fragment} 0".encode())] if fragment else []
    value = None if sequence < 0 else b"x" if fragment else text
    return Message(topic="a", partition=0, key=b"flv://r/d/a", value=value, headers=headers)


def newest(
    patch: pytest.MonkeyPatch, logs: dict[tuple[str, int], Log], commits: Commits | None, former: StreamPlace
) -> StreamPlace:
    broker = Broker(random.Random(0), 0.0)
    for place, log in logs.items():
        broker.logs[place] = [Written(-1, message(*each)) for each in log]
    for name in ("backwards", "end_offsets", "newest_within"):
        patch.setattr(stream_place, name, getattr(broker, name))
    patch.setattr(stream_place, "begin_offsets", lambda _, places: dict.fromkeys(places, 0))
    patch.setattr(stream_place, "await_ends", lambda *_, seconds: True)
    patch.setattr(stream_place, "known_topics", lambda _, names: dict.fromkeys(names))
    patch.setattr(stream_place, "newest_commits", lambda *_: commits)
    layout = SINGLE if len(logs) == 1 else PER_TABLE
    profile = Profile("r", None, kafka=Kafka("none", "t", layout=layout))  # type: ignore[arg-type]
    return former.newest(profile)


def test_a_record_that_no_entry_counts_is_read_later(monkeypatch: pytest.MonkeyPatch) -> None:
    log: Log = [(number, 0) for number in range(12)]
    for counted in range(1, 13):
        place = newest(monkeypatch, {A: log}, Commits(counted, (A,)), StreamPlace())
        assert place == StreamPlace(counted - 1, {"a/0": counted})
    place = newest(monkeypatch, {A: log}, Commits(12, (A,), of_open=4), StreamPlace(2, {"a/0": 3}))
    assert place == StreamPlace(7, {"a/0": 8})


def test_a_record_of_a_replaced_producer_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record 1 comes again behind the newest mark, and is void: 2 and 3 are before it."""
    log: Log = [(0, 1), (1, 1), (-1, 2), (2, 2), (3, 2), (1, 1)]
    marks = (Mark(1, 0), Mark(2, 2))
    assert newest(monkeypatch, {A: log}, Commits(3, (A,), marks=marks), StreamPlace()).offsets == {"a/0": 4}
    # The newest producer has written nothing that counts yet, so all is read again.
    assert newest(monkeypatch, {A: log[:3]}, Commits(2, (A,), marks=marks), StreamPlace(0, {"a/0": 1})).offsets == {
        "a/0": 1
    }


def test_partitions_keep_places_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: dict[tuple[str, int], Log] = {A: [(0, 0), (2, 0), (5, 0)], B: [(1, 0), (3, 0, "0 2"), (3, 0, "1 2"), (4, 0)]}
    assert newest(monkeypatch, logs, Commits(4, (A, B)), StreamPlace()).offsets == {"a/0": 2, "b/0": 3}
    assert newest(monkeypatch, logs, Commits(6, (A, B)), StreamPlace()).offsets == {"a/0": 3, "b/0": 4}


def test_a_stream_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    former = StreamPlace(5, {"a/0": 6})
    assert newest(monkeypatch, {A: [(0, 0)]}, Commits(1, (A,)), former) == former
    with pytest.raises(UserError, match="the topics have no records yet"):
        newest(monkeypatch, {A: []}, None, former)


def test_the_rest_of_a_transaction_in_which_a_stream_begins_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention may have removed the beginning of the oldest one, of which nothing is read."""

    def record(sequence: int, index: int, *, last: bool) -> Record:
        parsed = Record.parse(message(sequence, 0).value() or b"", where="here")
        return replace(parsed, index=index, last=last)

    there = [record(3, 1, last=False), record(4, 2, last=True), record(5, 0, last=True)]

    def read(begin: int, end: int) -> list[list[int]]:
        found = transactions_between(PROFILE, StreamPlace(begin), StreamPlace(end))
        return [[each.sequence for each in transaction.records] for transaction in found]

    monkeypatch.setattr(stream_place, "Records", lambda *_, **__: there)
    assert read(2, 5) == [[3, 4], [5]]
    assert read(-1, 5) == [[5]]
    assert read(5, 5) == []
    for begin, end in ((2, 6), (5, 4)):
        with pytest.raises(PromiseError, match="the topics end with sequence"):
            read(begin, end)
