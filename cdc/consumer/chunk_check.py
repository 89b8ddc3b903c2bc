"""Checks that the topics still contain the last chunk of a table copy that the follower has applied.

If brokers lose a chunk together with the entries of the commit log that count it, the producer reads the chunk again.
It then covers other keys if rows were inserted or deleted meanwhile: where the new chunk ends later than the applied
one, the keys between the two ends are in no chunk that the follower applies. Records behind a chunk that was read again
are the same as before, so that the last applied record alone does not show this.
"""

from collections.abc import Mapping

from cdc.consumer.literals.values import quoted
from cdc.consumer.preflight import Places
from cdc.consumer.source.reader import Place, Topic
from cdc.consumer.state.checkpoint import CHUNKS, Checkpoint, LastChunk
from cdc.errors import PromiseError

__all__ = ["require_same_chunk"]


def require_same_chunk(checkpoint: Checkpoint, topics: Mapping[str, Topic], places: Places) -> None:
    """Raises PromiseError if another record has the sequence of the last applied chunk.

    ``places`` reads the places of a partition's records, newest first. It is no error if retention has deleted the
    chunk. If the topic itself is missing, or is another one, the caller raises an error.
    """
    chunk = checkpoint.chunk
    # If the checkpoint was moved back by hand, the chunk is to be applied once more.
    if chunk is None or chunk.sequence > checkpoint.sequence:
        return
    topic = topics.get(chunk.partition.topic)
    if topic is None or topic.id != chunk.partition.topic_id or chunk.partition.number not in topic.ranges:
        return
    low, high = topic.ranges[chunk.partition.number]
    if chunk.next_offset <= low:
        return
    place = _find(chunk, topic, places, before=chunk.next_offset)
    if place is None or place.sequence < chunk.sequence:
        place = _find(chunk, topic, places, before=high)  # the record may have another offset now
    if place is None and low > 0:
        return
    if place is None or place.sequence != chunk.sequence or place.ts_us not in (chunk.ts_us, None):
        raise _replaced(checkpoint, chunk)


def _find(chunk: LastChunk, topic: Topic, places: Places, *, before: int) -> Place | None:
    """Returns the newest place before an offset whose sequence is at most that of the chunk; None if there is none."""
    found = places(topic, before=before, number=chunk.partition.number)
    return next((place for place in found if place.sequence <= chunk.sequence), None)


def _replaced(checkpoint: Checkpoint, chunk: LastChunk) -> PromiseError:
    (topic, number, _), resource = chunk.partition, checkpoint.resource
    return PromiseError(
        f"record {chunk.sequence}, the last chunk of a table copy that the follower has applied, is another record now",
        code="CDC-TOPIC-OTHER-CHUNK",
        where=f"topic {topic}, partition {number}, formerly before offset {chunk.next_offset}",
        hint="the brokers lost records, and the producer has read the chunk again, so that rows may be missing on the "
        "follower: copy the tables again that were copied at that time (cdc-producer PROFILE --copy 'DATABASE.TABLE'), "
        f"then run on the follower: DELETE FROM {CHUNKS.within(checkpoint.schema)} WHERE resource={quoted(resource)}",
    )
