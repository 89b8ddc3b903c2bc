"""Checks that a leader's many topics still contain the last record that the follower has applied, and finds the offsets
behind it.

Brokers that lose records get them again from the producer, at other offsets, and perhaps under other sequences: those
of a copy get other places. A follower that has applied lost records must not skip others in their place.
"""

from collections.abc import Mapping
from dataclasses import replace

from cdc.consumer.preflight import ahead
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.state.checkpoint import FRESH, Checkpoint, TopicIdPartition
from cdc.errors import PromiseError
from cdc.kafka.places import Place

__all__ = ["continued_in_many"]


def continued_in_many(checkpoint: Checkpoint, topics: Mapping[str, Topic], reader: KafkaReader) -> Checkpoint:
    """Returns the checkpoint, with other offsets if the last applied record is at another place in the ``topics`` now.

    If retention has deleted that record, this is no error. Raises UserError if the topics end before it, PromiseError
    if a different record has its sequence, or none while later ones are there, and Unreachable.
    """
    offsets = {
        each: at
        for each, at in checkpoint.offsets.items()
        if (topic := topics.get(each.topic)) is not None and topic.id == each.topic_id and each.number in topic.ranges
    }
    # A topic that is missing, or another one by its name, is refused later. A checkpoint without a position was moved
    # by hand, perhaps past a record that is in no topic.
    if (
        checkpoint.position is None
        or checkpoint.sequence < 0
        or not offsets
        or offsets.keys() != checkpoint.offsets.keys()
    ):
        return checkpoint
    return checkpoint if _is_at(checkpoint, topics, reader) else _searched(checkpoint, topics, reader)


def _is_at(checkpoint: Checkpoint, topics: Mapping[str, Topic], reader: KafkaReader) -> bool:
    """Whether the last applied record is right before the checkpoint's offset in one of the partitions, and none of
    them has a later one there.
    """
    sequence, offsets = checkpoint.sequence, checkpoint.offsets
    ranges = {each: topics[each.topic].ranges[each.number] for each in offsets}
    if any(offsets[each] > high for each, (_, high) in ranges.items()):
        return False
    before = {(each.topic, each.number): (low, max(low, offsets[each])) for each, (low, _) in ranges.items()}
    newest = reader.newest_sequences(before)
    found = [each for each in offsets if newest.get((each.topic, each.number)) == sequence]
    if not found or any(each > sequence for each in newest.values()):
        return False
    (each, *_) = found
    place = next(reader.places(topics[each.topic], before=offsets[each], number=each.number))
    checkpoint.require_same(place.position, place.ts_us, _where(each, place))
    return True


def _searched(checkpoint: Checkpoint, topics: Mapping[str, Topic], reader: KafkaReader) -> Checkpoint:
    sequence, newest, is_cut, applied = checkpoint.sequence, -1, False, False
    offsets: dict[TopicIdPartition, int] = {}
    for topic in topics.values():
        for number, (low, high) in topic.ranges.items():
            partition, is_cut = TopicIdPartition(topic.name, number, topic.id), is_cut or low > 0
            offsets[partition] = low
            for place in reader.places(topic, before=high, number=number):
                newest = max(newest, place.sequence)
                if place.sequence <= sequence:
                    if place.sequence == sequence:
                        checkpoint.require_same(place.position, place.ts_us, _where(partition, place))
                        applied = True
                    offsets[partition] = place.offset + 1  # the rest of a record of several messages is passed over
                    break
    if not applied and newest > sequence and not is_cut:
        raise PromiseError(
            f"record {sequence}, which the follower has applied, is in none of the topics, which end with {newest}",
            code="CDC-TOPIC-OTHER-RECORDS",
            where=f"the topics that {checkpoint.topic} names",
            hint=f"the brokers lost records, and others were written in their place: {FRESH}",
        )
    if not applied and newest < sequence and not is_cut:
        raise ahead(sequence, newest, f"the topics that {checkpoint.topic} names")
    return replace(checkpoint, offsets=offsets) if applied else checkpoint


def _where(partition: TopicIdPartition, place: Place) -> str:
    return f"topic {partition.topic}, partition {partition.number}, offset {place.offset}"
