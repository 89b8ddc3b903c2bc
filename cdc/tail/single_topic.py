"""Gives the newest records of the topic of layout "single" and then new ones."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from cdc.config.topic_names import Topics
from cdc.kafka.commit_log import newest_commits
from cdc.kafka.fragments import Fragments
from cdc.kafka.partitions import begin_offsets, end_offsets
from cdc.model.commit_entry import Mark

__all__ = ["TailedTopic"]


class TailedTopic:
    """The ``last`` records of the one topic of ``names``, or all (None), then new ones.

    ``properties`` are librdkafka's. Raises KafkaException.
    """

    def __init__(self, consumer: Consumer, properties: Mapping[str, Any], names: Topics, *, last: int | None) -> None:
        name, commits = names.topic, names.commits
        self._consumer = consumer
        self._name = name
        self._fragments = Fragments(lambda _: _marks(properties, commits))
        self._last: deque[tuple[bytes, str]] | None = None if last is None else deque(maxlen=last)
        self.at_end = False
        place = name, 0
        self._first, self._end = begin_offsets(properties, [place])[place], end_offsets(properties, [place])[place]
        # Each Kafka transaction takes one more offset for its end, so there are fewer records than offsets.
        self._offsets = self._end if last is None else 2 * last + 100
        self._read()

    def _read(self) -> None:
        self._fragments.forget([(self._name, 0)])
        self._start = max(self._first, self._end - self._offsets)
        self._consumer.assign([TopicPartition(self._name, 0, self._start)])

    def _has_enough(self) -> bool:
        """Whether enough records have arrived, or all that the topic has; else more offsets are read, from
        the start.
        """
        if self._last is None or self._start == self._first or len(self._last) == self._last.maxlen:
            return True
        # A record may take many offsets (fragments), and so do aborted transactions.
        self._last.clear()
        self._offsets *= 8
        self._read()
        return False

    def next(self, wait: float) -> Iterator[tuple[bytes, str]]:
        """Value and place of each record that can be shown after the next message; waits ``wait`` seconds for it."""
        polled = self._consumer.poll(wait)
        message = None if polled is None else self._fragments.whole(polled)
        if message is None:
            return
        error = message.error()
        if error is None:
            found = message.value() or b"", f"topic {self._name}, offset {message.offset()}"
            # The last records are known only at the topic's end.
            if self._last is None or self.at_end:
                yield found
            else:
                self._last.append(found)
        elif error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        elif self.at_end or self._has_enough():
            self.at_end = True
            if self._last:
                yield from self._last
                self._last.clear()


def _marks(properties: Mapping[str, Any], commits: str) -> tuple[Mark, ...]:
    newest = newest_commits(properties, commits)
    return newest.marks if newest else ()
