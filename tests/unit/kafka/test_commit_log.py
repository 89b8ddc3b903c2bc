"""An entry of the commit log is found behind messages without content, which only ended a hanging transaction."""

import random
from collections.abc import Sequence

import pytest
from confluent_kafka import Message

from cdc.kafka import commit_log
from cdc.kafka.commit_log import entries, newest_commits, oldest_commits
from cdc.model.commit_entry import Entry
from cdc.model.position import Position
from tests.harness.simulated_broker import Broker, Written

LOG = ("t.commits", 0)


def entry(next_sequence: int) -> Written:
    text = Entry(next_sequence, Position("b.1", 4), "", "u", instance="i").to_json()
    return Written(-1, Message(topic=LOG[0], partition=0, key=b"r", value=text))


EMPTY = Written(-1, Message(topic=LOG[0], partition=0, key=b"r", value=None))


@pytest.mark.parametrize(
    ("log", "newest", "oldest"),
    [
        ([], None, None),
        ([EMPTY], None, None),
        ([entry(3), EMPTY, EMPTY], 3, 3),
        ([EMPTY, entry(3), entry(5), EMPTY], 5, 3),
    ],
)
def test_a_message_without_content_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, log: Sequence[Written], newest: int | None, oldest: int | None
) -> None:
    broker = Broker(random.Random(0), 0.0)
    broker.logs[LOG] = list(log)
    monkeypatch.setattr(commit_log, "backwards", broker.backwards)
    monkeypatch.setattr(commit_log, "oldest", broker.oldest)
    first, last = oldest_commits({}, LOG[0]), newest_commits({}, LOG[0])
    assert (last and last.next_sequence, first and first.next_sequence) == (newest, oldest)
    found = [each.next_sequence for each in entries({}, topic=LOG[0], resource="r")]
    assert found[:1] == ([newest] if newest else [])
