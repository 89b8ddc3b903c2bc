"""A record that no topic of many has is a gap only if the producer, which may write it again, has not done so."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cdc.config.topic_names import PER_TABLE, Topics
from cdc.consumer.source.record_source import MergedSource
from cdc.errors import PromiseError


class Topic:
    """Stands for the topics: ``read`` of the ``written`` offsets have been read."""

    def __init__(self) -> None:
        self.read = self.written = 5
        reader = SimpleNamespace(
            topics=None, place_before=None, offsets=SimpleNamespace(commit=None), written=lambda _: {"t": self.written}
        )
        self.source = MergedSource(cast(Any, reader), Topics("t", layout=PER_TABLE, prefix="t."))
        self.source._merged = cast(Any, SimpleNamespace(partitions={}, has_read=lambda ends: self.read >= ends["t"]))

    def look(self, *, entries: int = 0) -> None:
        """Looks for the record 3 twice, after ``entries`` newer entries of the commit log."""
        self.source._entries += entries
        for _ in range(2):
            self.source._look_for_gap(3)


@pytest.fixture
def topic() -> Topic:
    return Topic()


def test_a_record_is_waited_for_until_the_producer_has_committed_again(
    topic: Topic, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    for _ in range(3):
        topic.look()
    topic.look(entries=1)  # it may have been written before the producer noticed that a broker was away
    assert caplog.text.count("writes a record again") == 1
    with pytest.raises(PromiseError, match="a gap: sequence 3 is committed, but in no topic"):
        topic.look(entries=1)


def test_a_transaction_without_an_end_is_not_taken_for_a_gap_when_it_is_rolled_back(topic: Topic) -> None:
    topic.written = 7  # two more messages, of which nobody can read anything yet
    topic.look(entries=1)
    topic.look(entries=1)
    topic.read = 7  # the producer has rolled them back, and will write them again
    topic.look()
    topic.look()
    with pytest.raises(PromiseError, match="a gap"):
        topic.look(entries=2)


def test_a_run_to_the_present_end_does_not_wait(topic: Topic) -> None:
    topic.source._until = 9
    with pytest.raises(PromiseError, match="a gap"):
        topic.look()
