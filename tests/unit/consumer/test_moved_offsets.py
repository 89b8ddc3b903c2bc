"""With many topics, too, a follower continues only behind the record that it has applied, wherever that is now."""

import random
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from confluent_kafka import Message

from cdc.consumer.chunk_check import require_same_chunks
from cdc.consumer.moved_offsets import continued_in_many
from cdc.consumer.source.assembler import Located
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.source.record_source import SeenRecords
from cdc.consumer.state.checkpoint import Checkpoint, LastChunk, TopicIdPartition
from cdc.errors import CdcError, PromiseError
from cdc.model.position import Position
from cdc.model.record import Record
from tests.harness.simulated_broker import Broker, Written
from tests.harness.simulated_reader import patched

PLACES = {"a": TopicIdPartition("a", 0, "id"), "b": TopicIdPartition("b", 0, "id")}


def text(sequence: int, at: int, ts_us: int = 1) -> bytes:
    return (
        f'{{"uri":"flv://r/d/a","sequence":{sequence},"bn_file":{{"fileName":"binlog.000001","offset":{at}}},'
        f'"transaction":{{"id":"u:{at}","index":0,"last":true,"ts_us":{ts_us}}},"columns":["i"],'
        '"operation":{"Add":{"rows":[]}}}'
    ).encode()


def reader_of(patch: pytest.MonkeyPatch, logs: Mapping[str, Sequence[tuple[int, ...]]]) -> KafkaReader:
    """A reader of topics whose ``logs`` have sequences and positions."""
    broker = Broker(random.Random(0), 0.0)
    for name, records in logs.items():
        messages = [Message(topic=name, partition=0, key=b"r", value=text(*record)) for record in records]
        broker.logs[name, 0] = [Written(-1, message) for message in messages]
    patched(broker, patch)
    return KafkaReader(bootstrap_servers="none", group="g", properties={}, retry_seconds=0, commits="c")


def continued(
    patch: pytest.MonkeyPatch, logs: dict[str, list[tuple[int, int]]], offsets: dict[str, int], **applied: int | None
) -> dict[str, int] | str:
    """The offsets from which a follower continues that has ``applied`` a sequence, from a position; or the error's
    code.
    """
    reader = reader_of(patch, logs)
    topics = {name: Topic(name, "id", {0: (0, len(records))}) for name, records in logs.items()}
    checkpoint: Any = Checkpoint(
        "r", "c", "id", applied["sequence"] or 0, {PLACES[name]: at for name, at in offsets.items()}, ts_us=1,
        position=None if applied["at"] is None else Position("binlog.000001", applied["at"]),
    )  # fmt: skip
    try:
        found = continued_in_many(checkpoint, topics, reader).offsets
    except CdcError as error:
        return error.code
    return {partition.topic: offset for partition, offset in found.items()}


LOGS = {"a": [(0, 10), (2, 12)], "b": [(1, 11), (3, 13)]}


def test_a_record_at_its_place_is_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    assert continued(monkeypatch, LOGS, {"a": 2, "b": 1}, sequence=2, at=12) == {"a": 2, "b": 1}


def test_a_record_at_another_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that would have skipped record 3 by its old offsets finds it."""
    assert continued(monkeypatch, LOGS, {"a": 2, "b": 2}, sequence=2, at=12) == {"a": 2, "b": 1}
    assert continued(monkeypatch, LOGS, {"a": 9, "b": 0}, sequence=2, at=12) == {"a": 2, "b": 1}


@pytest.mark.parametrize("offsets", [{"a": 2, "b": 1}, {"a": 9, "b": 9}])
def test_another_record_under_its_number_is_refused(monkeypatch: pytest.MonkeyPatch, offsets: dict[str, int]) -> None:
    assert continued(monkeypatch, LOGS, offsets, sequence=2, at=99) == "CDC-TOPIC-OTHER-RECORDS"


def test_a_record_that_is_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert continued(monkeypatch, LOGS, {"a": 2, "b": 1}, sequence=7, at=20) == "CDC-FOLLOWER-AHEAD"
    assert continued(monkeypatch, {**LOGS, "a": [(0, 10)]}, {"a": 1}, sequence=2, at=12) == "CDC-TOPIC-OTHER-RECORDS"


def test_a_checkpoint_that_was_moved_by_hand_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past a record that is in no topic, for instance: its position is not known."""
    logs = {**LOGS, "a": [(0, 10)]}
    assert continued(monkeypatch, logs, {"a": 1, "b": 1}, sequence=2, at=None) == {"a": 1, "b": 1}
    checkpoint = Checkpoint("r", "t", "id", 2, ts_us=1)
    checkpoint.require_same(Position("binlog.000001", 12), 99, "here")


def located(value: bytes) -> Located:
    return Located(PLACES["a"], 0, Record.parse(value, where="here"))


def test_a_repeated_number_must_be_the_same_record() -> None:
    seen = SeenRecords(lambda offsets, sequence: None)
    for value in (text(0, 10), text(1, 11), text(0, 10)):
        seen.check(located(value))
    with pytest.raises(PromiseError, match="two different records have sequence 1"):
        seen.check(located(text(1, 11, ts_us=2)))
    seen.begin(applied=Checkpoint("r", "t", "id", 1, ts_us=1, position=Position("binlog.000001", 11)))
    seen.check(located(text(1, 11)))
    with pytest.raises(PromiseError, match="record 1 is not the record that the follower has applied"):
        seen.check(located(text(1, 12)))


@pytest.mark.parametrize(("at", "is_refused"), [(11, False), (12, True)])
def test_a_repeated_number_is_compared_with_what_an_earlier_run_has_read(
    monkeypatch: pytest.MonkeyPatch, at: int, is_refused: bool
) -> None:
    """A run that ended because of it must not be followed by one that passes over it."""
    seen = SeenRecords(reader_of(monkeypatch, {"a": [(1, 11), (2, 12)], "b": [(0, 10)]}).place_before)
    offsets = {PLACES["a"]: 2, PLACES["b"]: 1}
    applied = Checkpoint("r", "t", "id", 2, offsets, ts_us=1, position=Position("binlog.000001", 12))
    for _ in range(2):
        seen.begin(next_sequence=3, applied=applied)
        if is_refused:
            with pytest.raises(PromiseError, match="two different records have sequence 1"):
                seen.check(located(text(1, at)))
        else:
            seen.check(located(text(1, at)))
        seen.check(located(text(3, 13)))


CHUNK = LastChunk(2, 7, PLACES["a"], 2)


def chunk_refused(patch: pytest.MonkeyPatch, log: list[tuple[int, ...]], *, low: int = 0, sequence: int = 9) -> bool:
    """Whether a follower at ``sequence`` that has applied CHUNK is refused: the ``log`` has sequences, positions
    and times, of which retention has removed all below the offset ``low``.
    """
    reader, topic = reader_of(patch, {"a": log}), Topic("a", "id", {0: (low, len(log))})
    try:
        require_same_chunks(Checkpoint("r", "t", "id", sequence, chunks={PLACES["a"]: CHUNK}), {"a": topic}, reader)
    except PromiseError as error:
        assert error.code == "CDC-TOPIC-OTHER-CHUNK"
        assert "record 2, a chunk" in str(error)
        return True
    return False


def test_the_last_chunk_that_was_applied_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [(0, 10), (2, 12, 7), (9, 19)]
    assert not chunk_refused(monkeypatch, there)
    assert not chunk_refused(monkeypatch, [(0, 10), (1, 11), *there[1:]])  # at another offset
    assert not chunk_refused(monkeypatch, there[1:])
    assert chunk_refused(monkeypatch, [(0, 10), (2, 12, 8), (9, 19)])  # read again
    assert chunk_refused(monkeypatch, [(0, 10), (1, 11), (3, 13), (9, 19)])
    assert chunk_refused(monkeypatch, [(3, 13), (9, 19)])


def test_a_chunk_that_retention_removed_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [(0, 10), (2, 12, 8), (3, 13), (9, 19)]
    assert not chunk_refused(monkeypatch, there, low=2)
    assert not chunk_refused(monkeypatch, there, sequence=1)  # moved back by hand
    assert chunk_refused(monkeypatch, there, low=1)


def test_a_chunk_is_kept_until_the_next_one() -> None:
    chunk = Record.parse(
        b'{"uri":"flv://r/d/a","sequence":5,"bn_file":{"fileName":"binlog.000001","offset":1},"transaction":{"id":"copy:0",'
        b'"index":0,"last":true,"ts_us":8},"columns":["i"],"key":["i"],'
        b'"operation":{"Copy":{"after":null,"upto":null,"rows":[]}}}',
        where="here",
    )
    before = Checkpoint("r", "t", "id", 4, chunks={PLACES["a"]: CHUNK})
    at = before.advanced(last=chunk, offsets={PLACES["b"]: 6})
    assert at.chunks == {PLACES["a"]: CHUNK, PLACES["b"]: LastChunk(5, 8, PLACES["b"], 6)}
    assert "REPLACE INTO `cdc`.`chunks`" in (at.note_chunk(last=chunk) or "")
    last = Record.parse(text(6, 20), where="here")
    behind = at.advanced(last=last, offsets={PLACES["a"]: 9})
    assert behind.chunks == at.chunks
    assert behind.note_chunk(last=last) is None


def test_a_chunk_of_each_topic_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The chunk in topic a was read again; the one that was applied last, in topic b, is there."""
    later = LastChunk(5, 8, PLACES["b"], 2)
    checkpoint = Checkpoint("r", "t", "id", 9, chunks={each.partition: each for each in (CHUNK, later)})
    topics = {name: Topic(name, "id", {0: (0, 2)}) for name in "ab"}
    for time in (7, 8):
        reader = reader_of(monkeypatch, {"a": [(0, 10), (2, 12, time)], "b": [(1, 11), (5, 15, 8)]})
        with pytest.raises(PromiseError, match="record 2") if time != CHUNK.ts_us else nullcontext():
            require_same_chunks(checkpoint, topics, reader)
