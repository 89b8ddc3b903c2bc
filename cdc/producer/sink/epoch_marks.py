"""Finds the marks of a topic that is written without Kafka transactions (module kafka.fragments), and those that
readers still need.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from confluent_kafka import Message

from cdc.config.topic_names import SINGLE
from cdc.kafka.fragments import Stamp, stamp_of
from cdc.kafka.partitions import backwards, begin_offsets
from cdc.model.commit_entry import Entry, Mark
from cdc.model.position import Partition
from cdc.producer.sink.message_heads import sequence_of
from cdc.producer.sink.topic_admin import TopicAdmin

__all__ = ["all_marks", "located"]

_MARK_OFFSETS = 2


def located(
    properties: Mapping[str, Any],
    partition: Partition,
    marks: Collection[Mark],
    *,
    next_sequence: int,
    resource: str,
) -> tuple[Mark, ...]:
    """Finds the offsets of ``marks``, and returns the marks that readers still need; to be called once all transactions
    in the partition have ended.

    A mark is the first message of a producer that writes without Kafka transactions. It is committed together with the
    first entry that names it, so that entry does not contain the mark's offset. A mark that is not found was rolled
    back, and its producer has written nothing. The newest mark is kept even so, since its number decides the number of
    the next mark.

    Readers may see two marks of one number, of which the first one counts: if the brokers lose the end of a transaction
    that was rolled back, the next end commits its mark, too. All of them come after the newest mark whose offset is
    known, and after the records before ``next_sequence`` that its producer has written. Raises the errors of
    ``backwards``.
    """
    if not marks:
        return ()
    begin = begin_offsets(properties, [partition])[partition]
    there = _not_lost(properties, partition, tuple(marks), begin)
    unknown = {mark.epoch for mark in there if mark.offset < 0}
    epoch, newest = max(((mark.epoch, mark.offset) for mark in there if mark.offset >= 0), default=(0, -1))
    found: dict[int, int] = {}
    for stamp, offset, sequence in _stamps(properties, partition, resource) if unknown else ():
        if stamp.is_mark and stamp.epoch in unknown:
            found[stamp.epoch] = offset
        elif offset <= newest or (stamp.epoch == epoch and not stamp.is_mark and sequence < next_sequence):
            break
    known = [mark if mark.offset >= 0 else Mark(mark.epoch, found.get(mark.epoch, -1)) for mark in there]
    return _mattering(known, begin)


def _not_lost(properties: Mapping[str, Any], partition: Partition, marks: Sequence[Mark], begin: int) -> Sequence[Mark]:
    """Removes the offsets of the marks that readers do not see, because the brokers have lost the end of the partition
    (an unclean election): a message behind such a mark is void to none that reads the partition from before it.

    ``begin`` is the partition's first offset. All before a mark that is still there was not lost.
    """
    for at in reversed(range(len(marks))):
        epoch, offset = marks[at]
        if 0 <= offset < begin:
            return marks
        message = next(backwards(properties, partition, end=offset + 1), None) if offset >= 0 else None
        if message is not None and message.offset() == offset and stamp_of(message) == Stamp(epoch, True):
            return [*marks[: at + 1], *(Mark(mark.epoch, -1) for mark in marks[at + 1 :])]
    return [Mark(mark.epoch, -1) for mark in marks]


def _mattering(marks: Sequence[Mark], begin: int) -> tuple[Mark, ...]:
    """Selects the newest mark (the first message of a producer without Kafka transactions), and each earlier mark that
    is followed by another message before the next mark: that message may be void, since a former producer may have
    written it late.

    ``begin`` is the partition's first offset. If the offsets of two marks differ by two, there is no message between
    them: the end marker of the first mark's transaction takes one offset.
    """
    kept = [
        mark
        for mark, following in pairwise(marks)
        if begin <= mark.offset and (following.offset < 0 or following.offset - mark.offset > _MARK_OFFSETS)
    ]
    return (*kept, *marks[-1:])


def all_marks(topics: TopicAdmin, committed: Entry | None, resource: str) -> tuple[Mark, ...]:
    """Returns the marks (module kafka.fragments) that the newest ``committed`` entry names, with their offsets, and the
    marks that no entry names.
    """
    properties, partition = topics.properties, (topics.names.topic, 0)
    if committed is None:
        return ()
    following = committed.next_sequence
    marks = located(properties, partition, committed.marks, next_sequence=following, resource=resource)
    if topics.names.layout != SINGLE:
        return marks
    there = tuple(mark for mark in marks if mark.offset >= 0)
    if max((mark.offset for mark in committed.marks), default=-1) <= max((mark.offset for mark in there), default=-1):
        return marks + _unannounced(properties, partition, marks, committed.next_sequence, resource)
    # The brokers have lost the newest mark. The entry no longer names marks for which it stood, and a replaced producer
    # may have written records again that the entry counts, so none of them ends the search.
    found = _unannounced(properties, partition, there, 0, resource)
    # The first one of several marks with one number counts.
    return tuple(sorted({mark.epoch: mark for mark in (*marks, *reversed(found))}.values()))


def _unannounced(
    properties: Mapping[str, Any], partition: Partition, marks: Sequence[Mark], next_sequence: int, resource: str
) -> tuple[Mark, ...]:
    """Finds the marks that no entry of the commit log names, since readers obey these marks, too. A mark is the first
    message of a producer that writes without Kafka transactions. It lacks an entry if a commit that arrived late ended
    its transaction before the entry was written.

    Such marks come after all records that the newest entry counts: that entry was committed after its records, and
    before the mark was written. ``next_sequence`` is the sequence after these records; with 0, the search ends only at
    the newest of the ``marks`` that is in the partition.
    """
    epoch, found = max((mark.epoch for mark in marks), default=0), list[Mark]()
    newest = max((mark.offset for mark in marks), default=-1)
    for stamp, offset, sequence in _stamps(properties, partition, resource):
        if stamp.is_mark and stamp.epoch > epoch:
            found.append(Mark(stamp.epoch, offset))
        # Unknown marks come after the newest known mark, so the search ends there.
        elif offset <= newest or (stamp.epoch == epoch and not stamp.is_mark and sequence < next_sequence):
            break
    return tuple(reversed(found))


def _stamps(properties: Mapping[str, Any], partition: Partition, resource: str) -> Iterator[tuple[Stamp, int, int]]:
    """Yields the stamp, the offset and the record's sequence (-1 for a mark) of each message, newest first."""

    def placed(message: Message) -> tuple[Stamp, int, int]:
        stamp, value = stamp_of(message), message.value()
        return stamp, message.offset() or 0, -1 if value is None else sequence_of(message, resource)

    return backwards(properties, partition, pick=placed)
