"""The places of a topic's records are those that count: a follower's checkpoint is never compared with others."""

import json
import random

import pytest
from confluent_kafka import Message

from cdc.consumer.source import reader
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.kafka import commit_log
from cdc.kafka.fragments import EPOCH_HEADER
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Position
from tests.harness.simulated_broker import Broker, Written

RECORDS, COMMITS = ("t", 0), ("t.commits", 0)


def record(sequence: int, epoch: int = 0) -> Message:
    body = {"uri": "flv://r/d/t", "sequence": sequence, "bn_file": {"fileName": "binlog.000001", "offset": sequence}}
    body |= {"columns": ["i"], "transaction": {"id": "u:1", "index": 0, "last": True, "ts_us": 1}}
    body["operation"] = {"Add": {"rows": [{"cols": [{"Int": 1}]}]}}
    return Message(topic="t", partition=0, key=b"flv://r/d/t", value=json.dumps(body).encode(), headers=header(epoch))


def mark(epoch: int) -> Message:
    return Message(topic="t", partition=0, key=b"r", value=None, headers=header(epoch))


def header(epoch: int) -> list[tuple[str, str | bytes | None]]:
    return [(EPOCH_HEADER, str(epoch).encode())] if epoch else []


def places(
    patch: pytest.MonkeyPatch, messages: list[Message], marks: dict[int, int] | None, *, before: int
) -> list[int]:
    """The sequences of the places before an offset; the commit log names ``marks``, by their epochs."""
    broker = Broker(random.Random(0), 0.0, {RECORDS: [Written(-1, each) for each in messages], COMMITS: []})
    if marks is not None:
        named = tuple(Mark(epoch, offset) for epoch, offset in marks.items())
        entry = Entry(0, Position("binlog.000001", 4), "", "u", marks=named)
        broker.logs[COMMITS] = [Written(-1, Message(topic="t.commits", partition=0, key=b"r", value=entry.to_json()))]
    patch.setattr(reader, "windows", broker.windows)
    patch.setattr(reader, "Consumer", lambda settings, logger: None)
    patch.setattr(commit_log, "backwards", broker.backwards)
    own = KafkaReader(bootstrap_servers="none", group="g", properties={}, retry_seconds=0, commits=COMMITS[0])
    topic = Topic("t", "id", {0: (0, len(messages))})
    found = list(own.places(topic, before=before))
    assert all(place.position == Position("binlog.000001", place.sequence) for place in found)
    assert [messages[place.offset].value() for place in found] == [record(place.sequence).value() for place in found]
    return [place.sequence for place in found]


def test_void_messages_are_no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer that was replaced writes record 1 late: to a reader it is not there."""
    messages = [mark(1), record(0, 1), record(1, 1), mark(2), record(2, 2), record(1, 1), record(3, 2), record(2, 1)]
    assert places(monkeypatch, messages, {1: 0, 2: 3}, before=8) == [3, 2, 1, 0]
    assert places(monkeypatch, messages, {1: 0, 2: 3}, before=6) == [2, 1, 0]


def test_places_begin_at_the_end_of_a_topic_that_is_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a checkpoint's offset may be, when the brokers have lost records."""
    messages = [mark(1), record(0, 1), record(1, 1)]
    assert places(monkeypatch, messages, {1: 0}, before=30) == [1, 0]


def test_records_of_kafka_transactions_need_no_commit_log(monkeypatch: pytest.MonkeyPatch) -> None:
    assert places(monkeypatch, [record(0), record(1)], None, before=2) == [1, 0]
    assert places(monkeypatch, [record(0), mark(1), record(1, 1)], {1: 1}, before=3) == [1, 0]
