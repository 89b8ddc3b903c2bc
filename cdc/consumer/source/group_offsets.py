"""Commits the offsets of what is applied to the consumer group, for those who look on from outside."""

import time
from collections.abc import Callable, Mapping
from functools import partial

from confluent_kafka import Consumer, TopicPartition

from cdc.consumer.state.checkpoint import TopicIdPartition
from cdc.kafka.follower_places import place_note

__all__ = ["GroupOffsets", "note_of"]

# A producer that copies tables waits for these. Lag tools look much less often.
_COMMIT_SECONDS = 0.2


def note_of(topic: str, *, delayed: bool) -> Callable[[int], str]:
    """What offsets say of the sequence that is applied, of those in ``topic``: nothing where the follower is to stay
    behind, so that no copy of a table waits for it."""
    return (lambda _: "") if delayed else partial(place_note, topic)


class GroupOffsets:
    """Those of ``consumer``, which is never asked for them: the follower's checkpoint is what counts.

    ``note`` gives what is said of a sequence.
    """

    def __init__(self, consumer: Consumer, *, note: Callable[[int], str]) -> None:
        self._consumer = consumer
        self._note = note
        self._committed_at = 0.0
        self._waiting: dict[TopicIdPartition, TopicPartition] = {}

    def commit(self, offsets: Mapping[TopicIdPartition, int], *, sequence: int | None = None) -> None:
        """Commit the offsets, up to record ``sequence``, within 0.2 s if this is called until then, also without any.

        The result is not waited for.
        """
        note = "" if sequence is None else self._note(sequence)
        for partition, at in offsets.items():
            self._waiting[partition] = TopicPartition(partition.topic, partition.number, at, note)
        if time.monotonic() - self._committed_at > _COMMIT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Commit now what has not been committed yet."""
        if self._waiting:
            self._committed_at = time.monotonic()
            self._consumer.commit(offsets=list(self._waiting.values()), asynchronous=True)
            self._waiting.clear()
