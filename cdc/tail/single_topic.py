"""Gives the newest records of the topic of layout "single" and then new ones."""

from collections import deque
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

__all__ = ["TailedTopic"]

_ANSWER_SECONDS = 10.0


class TailedTopic:
    """The ``last`` records of the topic ``name``, or all (None), then new ones. Raises KafkaException."""

    def __init__(self, consumer: Consumer, name: str, *, last: int | None) -> None:
        self._consumer = consumer
        self._name = name
        self._last: deque[tuple[bytes, str]] | None = None if last is None else deque(maxlen=last)
        self.at_end = False
        first, end = consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=_ANSWER_SECONDS)
        # Each Kafka transaction takes one more offset for its end, so there are fewer records than offsets.
        start = first if last is None else max(first, end - 2 * last - 100)
        consumer.assign([TopicPartition(name, 0, start)])

    def next(self, wait: float) -> Iterator[tuple[bytes, str]]:
        """Value and offset of each record that can be shown after the next message; ``wait`` seconds for it."""
        message = self._consumer.poll(wait)
        if message is None:
            return
        error = message.error()
        if error is None:
            found = message.value() or b"", f"topic {self._name}, offset {message.offset()}"
            # Which are the last ones is known only at the end.
            if self._last is None or self.at_end:
                yield found
            else:
                self._last.append(found)
        elif error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        else:
            self.at_end = True
            if self._last:
                yield from self._last
                self._last.clear()
