"""Checks that the topics continue the checkpoint of the follower."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from cdc.consumer.source.reader import Place, Topic
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import PromiseError, UserError
from cdc.kafka.partitions import FIRST

__all__ = ["First", "check_topics", "continued"]

First = Callable[[], int | None]
# The follower must be fresh. A follower that has executed GTIDs of the old topic would skip statements of the new
# topic, because they would seem to be executed already.
_FRESH = (
    "start with a new topic and a fresh follower: drop its schema cdc (consumer.schema) and the replicated "
    "databases, and run RESET BINARY LOGS AND GTIDS (before MySQL 8.4: RESET MASTER), or use another "
    "mysql_resource_name in all profiles"
)
_AGAIN = (
    "the brokers lost records: start cdc-producer, which writes them again if the leader still has them, then this "
    f"program; if it can't, {_FRESH}"
)


class Places(Protocol):
    """The type of the method ``KafkaReader.places``."""

    def __call__(self, topic: Topic, *, before: int) -> Iterator[Place]: ...


def continued(checkpoint: Checkpoint, topic: Topic, places: Places) -> Checkpoint:
    """Returns the checkpoint with the offset from which the only partition of ``topic`` must be read.

    The topic must still contain the last record that the follower has applied, unless retention has deleted it. If
    brokers have lost records, the producer writes them again from the leader's binlog. They then have other offsets,
    but the same sequences, if nothing else has changed. Raises UserError if the topic ends before the last applied
    record, PromiseError if a different record now has the sequence of the last applied record.
    """
    partition, sequence = TopicIdPartition(topic.name, FIRST, topic.id), checkpoint.sequence
    offset, high = checkpoint.offsets.get(partition, 0), topic.ranges[FIRST][1]
    if sequence < 0:
        return checkpoint
    place, is_newest = _find(sequence, places(topic, before=offset))
    moved = offset > high or not is_newest
    if place is not None and place.sequence < sequence and offset < high:
        place, is_newest = _find(sequence, places(topic, before=high))
        moved = True
    if place is not None and place.sequence < sequence and is_newest:
        raise UserError(
            f"the follower is ahead of the topic: it has applied record {sequence}, the topic ends with record "
            f"{place.sequence}",
            code="CDC-FOLLOWER-AHEAD",
            where=f"topic {topic.name}, partition {FIRST}, offset {place.offset}",
            hint=_AGAIN,
        )
    # If retention has deleted the record, or the record is missing in a gap, the later records will show whether the
    # stream continues.
    if place is None or place.sequence < sequence:
        return checkpoint
    if place.sequence == sequence and checkpoint.position not in (None, place.position):
        raise PromiseError(
            f"record {sequence} is not the one that the follower has applied: it is from leader position "
            f"{place.position}, the applied one was from {checkpoint.position}",
            code="CDC-TOPIC-OTHER-RECORDS",
            where=f"topic {topic.name}, partition {FIRST}, offset {place.offset}",
            hint=f"the brokers lost records, and others were written in their place: {_FRESH}",
        )
    return replace(checkpoint, offsets={**checkpoint.offsets, partition: place.offset}) if moved else checkpoint


def _find(sequence: int, places: Iterator[Place]) -> tuple[Place | None, bool]:
    """Returns the first place in ``places`` with a sequence of at most ``sequence``, and whether it is the first of all
    ``places``.

    If there is no such place, returns the last place if its sequence is the sequence after ``sequence``, since that
    record is then the oldest record in the topic; otherwise returns None.
    """
    place: Place | None = None
    for number, place in enumerate(places):
        if place.sequence <= sequence:
            return place, number == 0
    return (place if place is not None and place.sequence == sequence + 1 else None), False


def check_topics(checkpoint: Checkpoint, topic: Topic, others: Mapping[str, Topic], *, first: First | None) -> None:
    """Raises UserError if the topics do not continue the checkpoint. Either the topic is not the topic of the
    checkpoint, or retention has deleted records that are still needed, or the topic ends before the checkpoint.

    ``topic`` is the topic whose id the checkpoint should contain: the single topic, or the topic of the commit log.
    ``others`` are the other topics of the checkpoint that exist. ``first()`` returns the sequence of the oldest record
    in the topic, or None if it is unknown. If there are many topics, ``first`` is None; a missing sequence is then
    found only while the topics are read.
    """
    if (checkpoint.topic, checkpoint.topic_id) != (topic.name, topic.id):
        raise UserError(
            f"the follower's checkpoint is of topic {checkpoint.topic} (id {checkpoint.topic_id}), "
            f"this is another one (id {topic.id})",
            code="CDC-FOLLOWER-OTHER-TOPIC",
            where=f"topic {topic.name}",
            hint=f"set kafka.topic and kafka.layout as they were; if it was deleted and created again, {_FRESH}",
        )
    offsets = {TopicIdPartition(topic.name, number, topic.id): 0 for number in topic.ranges} | dict(checkpoint.offsets)
    for partition, offset in offsets.items():
        there = topic if partition.topic == topic.name else others.get(partition.topic)
        _check_partition(partition, offset, there, checkpoint.sequence, first)


def _check_partition(
    partition: TopicIdPartition, offset: int, topic: Topic | None, sequence: int, first: First | None
) -> None:
    where = f"topic {partition.topic}, partition {partition.number}"
    if topic is None or topic.id != partition.topic_id or partition.number not in topic.ranges:
        raise UserError(
            "the topic was deleted, or created again",
            code="CDC-FOLLOWER-OTHER-TOPIC",
            where=f"{where}, after sequence {sequence}",
            hint=_FRESH,
        )
    low, high = topic.ranges[partition.number]
    if offset > high:
        raise UserError(
            f"the checkpoint is ahead of the topic: it is at offset {offset}, the topic ends at {high}",
            code="CDC-FOLLOWER-BEHIND-RETENTION",
            where=f"{where}, after sequence {sequence}",
            hint=_AGAIN,
        )
    if first is None or offset >= low:
        return
    # All deleted records may have been applied. The checkpoint's offset may be the offset of the transaction marker
    # after the last record.
    oldest = first()
    if high > offset + 1 if oldest is None else oldest > sequence + 1:
        raise UserError(
            f"retention has deleted records: the checkpoint is at offset {offset}, the topic begins at {low}",
            code="CDC-FOLLOWER-BEHIND-RETENTION",
            where=f"{where}, sequence {sequence + 1} is needed",
            hint=f"raise the topic's retention.ms and retention.bytes, then {_FRESH}",
        )
