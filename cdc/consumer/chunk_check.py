"""Checks that the topics still contain the last chunk of a table copy of each partition that the follower has applied.

If brokers lose a chunk together with the entries of the commit log that count it, the producer reads the chunk again.
It then covers other keys if rows were inserted or deleted meanwhile: where the new chunk ends later than the applied
one, the keys between the two ends are in no chunk that the follower applies. Records behind a chunk that was read again
are the same as before, so that the last applied record alone does not show this. Nor does the last chunk of all: of
several topics, brokers may have lost one whose chunk was applied before that.
"""

from collections.abc import Mapping

from cdc.consumer.literals.values import quoted
from cdc.consumer.source.reader import KafkaReader, Topic
from cdc.consumer.state.checkpoint import CHUNKS, Checkpoint, LastChunk
from cdc.errors import PromiseError
from cdc.kafka.places import Place

__all__ = ["require_same_chunks"]


def require_same_chunks(checkpoint: Checkpoint, topics: Mapping[str, Topic], reader: KafkaReader) -> None:
    """Raises PromiseError if another record has the sequence of a partition's last applied chunk, and Unreachable.

    It is no error if retention has deleted the chunk. If the topic itself is missing, or is another one, the caller
    raises an error.
    """
    ranges = {chunk: _range(chunk, topics) for chunk in checkpoint.chunks.values()}
    # If the checkpoint was moved back by hand, the chunk is to be applied once more.
    known = {
        chunk: (low, high)
        for chunk, (low, high) in ranges.items()
        if low < chunk.next_offset and chunk.sequence <= checkpoint.sequence
    }
    asked = {
        (chunk.partition.topic, chunk.partition.number): (low, chunk.next_offset)
        for chunk, (low, high) in known.items()
        if chunk.next_offset <= high
    }
    # Partitions may be many, so all are asked at once: nearly always the chunks are where they were.
    newest = reader.newest_places(asked)
    for chunk, (low, high) in known.items():
        place = newest.get((chunk.partition.topic, chunk.partition.number))
        if place is None or place.epoch or not _is_at(chunk, place):
            _require_same(checkpoint, chunk, topics[chunk.partition.topic], reader, (low, high))


def _range(chunk: LastChunk, topics: Mapping[str, Topic]) -> tuple[int, int]:
    """Returns the first and the last offset of the chunk's partition; of one that is gone a range without records."""
    topic, nothing = topics.get(chunk.partition.topic), (chunk.next_offset, chunk.next_offset)
    is_there = topic is not None and topic.id == chunk.partition.topic_id
    return topic.ranges.get(chunk.partition.number, nothing) if topic is not None and is_there else nothing


def _require_same(
    checkpoint: Checkpoint, chunk: LastChunk, topic: Topic, reader: KafkaReader, offsets: tuple[int, int]
) -> None:
    low, high = offsets
    place = _find(chunk, topic, reader, before=chunk.next_offset)
    if place is None or place.sequence < chunk.sequence:
        place = _find(chunk, topic, reader, before=high)  # the record may have another offset now
    if place is None and low > 0:
        return
    if place is None or not _is_at(chunk, place):
        raise _replaced(checkpoint, chunk)


def _is_at(chunk: LastChunk, place: Place) -> bool:
    return place.sequence == chunk.sequence and place.ts_us in (chunk.ts_us, None)


def _find(chunk: LastChunk, topic: Topic, reader: KafkaReader, *, before: int) -> Place | None:
    """Returns the newest place before an offset whose sequence is at most that of the chunk; None if there is none."""
    found = reader.places(topic, before=before, number=chunk.partition.number)
    return next((place for place in found if place.sequence <= chunk.sequence), None)


def _replaced(checkpoint: Checkpoint, chunk: LastChunk) -> PromiseError:
    (topic, number, _), resource = chunk.partition, checkpoint.resource
    return PromiseError(
        f"record {chunk.sequence}, a chunk of a table copy that the follower has applied, is another record now",
        code="CDC-TOPIC-OTHER-CHUNK",
        where=f"topic {topic}, partition {number}, formerly before offset {chunk.next_offset}",
        hint="the brokers lost records, and the producer has read the chunk again, so that rows may be missing on the "
        "follower: copy the tables again that were copied at that time (cdc-producer PROFILE --copy 'DATABASE.TABLE'), "
        f"then run on the follower: DELETE FROM {CHUNKS.within(checkpoint.schema)} WHERE resource={quoted(resource)}",
    )
