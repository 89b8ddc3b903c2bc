"""Decides which messages of a partition count as written if a producer writes records without Kafka transactions.

Kafka fences a transactional producer when the next producer starts. A producer without transactions may still write
after the next producer has started: it may have been paused, or one of its requests may arrive late over an old
connection. So each start of such a producer has a number, the epoch. All messages of this producer have the epoch in
the header ``cdc_epoch``. The first of these messages in each partition is a mark, which has this header but no value. A
message that follows a mark and has a lower epoch is void: readers treat it as if it had never been written. Messages
without the header have epoch 0. They were written in Kafka transactions, whose producers Kafka fences. The commit log
contains the marks of a topic, with their offsets. It is always written in Kafka transactions, so that only one producer
at a time can write to it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from confluent_kafka import Message

from cdc.errors import PromiseError
from cdc.model.commit_entry import Mark
from cdc.model.position import Partition

__all__ = ["HEADER", "Epochs", "Stamp", "epoch_at", "stamp_of"]

HEADER = "cdc_epoch"


class Stamp(NamedTuple):
    """The epoch of a message, and whether the message is the mark with which that epoch begins."""

    epoch: int
    is_mark: bool


def stamp_of(message: Message, headers: Mapping[str, object] | None = None) -> Stamp:
    """Reads the stamp of ``message``, which must not contain an error. ``headers`` are the message's headers, if the
    caller has already read them.

    Raises PromiseError for a header that can't be read.
    """
    value: Any = (dict(message.headers() or ()) if headers is None else headers).get(HEADER)
    if value is None:
        return Stamp(0, False)
    try:
        return Stamp(int(value), message.value() is None)
    except (ValueError, TypeError):
        raise PromiseError(
            f"not an epoch of a producer: header {HEADER} is {value!r}",
            code="CDC-TOPIC-NOT-A-RECORD",
            where=f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}",
            hint="something else writes to this topic; start over with a new one",
        ) from None


def epoch_at(marks: Iterable[Mark], offset: int) -> int:
    """Returns the newest epoch that begins before ``offset`` in a partition with these ``marks``; 0 if no epoch
    does.
    """
    return max((mark.epoch for mark in marks if 0 <= mark.offset < offset), default=0)


class Epochs:
    """Tracks the current epoch of each partition that one connection reads. The messages of a partition must be passed
    in the order of their offsets.

    ``marks`` returns the marks of a partition from the commit log. It is called once per partition, for the first
    message with an epoch, because the mark of that epoch may precede the offset at which reading began.
    """

    def __init__(self, marks: Callable[[Partition], Iterable[Mark]]) -> None:
        self._marks = marks
        self._now: dict[Partition, int] = {}

    def forget(self, partition: Partition) -> None:
        """Forgets the partition's epoch. Must be called before the partition is read from another offset on."""
        self._now.pop(partition, None)

    def counts(self, message: Message, headers: Mapping[str, object] | None = None) -> bool:
        """Whether ``message`` counts as written: it is neither void nor a mark. It must be the next message of its
        partition.

        Raises the errors that ``stamp_of`` and ``marks`` raise.
        """
        stamp = stamp_of(message, headers)
        if not stamp.epoch and not self._now:
            return True
        partition = message.topic() or "", message.partition() or 0
        if stamp.epoch and partition not in self._now:
            self._now[partition] = epoch_at(self._marks(partition), message.offset() or 0)
        now = self._now.get(partition, 0)
        if stamp.is_mark:
            self._now[partition] = max(now, stamp.epoch)
        return stamp.epoch >= now and not stamp.is_mark
