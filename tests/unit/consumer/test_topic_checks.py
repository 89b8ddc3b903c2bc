"""The topic continues the checkpoint: also one that lost records, which were written again at other offsets."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.consumer.preflight import continued
from cdc.consumer.source.reader import Topic
from cdc.consumer.state.checkpoint import Checkpoint, TopicIdPartition
from cdc.errors import CdcError, PromiseError, UserError
from cdc.kafka.places import Place
from cdc.model.position import Position

PARTITION = TopicIdPartition("toys", 0, "id")


@dataclass
class Log:
    """A partition from offset ``low`` to ``high``."""

    places: list[Place]
    low: int
    high: int

    def read(self, topic: Topic, *, before: int) -> Iterator[Place]:
        assert topic.ranges == {0: (self.low, self.high)}
        return (place for place in reversed(self.places) if self.low <= place.offset < before)

    def continued(self, checkpoint: Checkpoint) -> Checkpoint:
        return continued(checkpoint, Topic("toys", "id", {0: (self.low, self.high)}), self.read)


def position(number: int) -> Position:
    return Position("binlog.000001", 100 * number)


def written(log: list[Place], strides: list[int], *, shift: int = 0) -> Log:
    """``log`` with a record for each of the ``strides``: the offsets that it and the markers behind it take."""
    places, end = [*log], log[-1].offset + 2 if log else 0
    for stride in strides:
        sequence = len(places)
        places.append(Place(end, sequence, position(sequence + shift)))
        end += stride
    return Log(places, 0, end)


def after(place: Place) -> Checkpoint:
    offsets = {PARTITION: place.offset + 1}
    return Checkpoint("srv", "toys", "id", place.sequence, offsets, position=place.position)


STRIDES = st.lists(st.integers(1, 3), min_size=1, max_size=12)


@given(STRIDES, st.data())
def test_a_topic_that_lost_nothing_continues_where_the_follower_is(strides: list[int], data: st.DataObject) -> None:
    log = written([], strides)
    checkpoint = after(data.draw(st.sampled_from(log.places)))
    assert log.continued(checkpoint) == checkpoint
    # Retention has deleted the record, or more.
    log.low = data.draw(st.integers(checkpoint.offsets[PARTITION], log.high))
    assert log.continued(checkpoint) == checkpoint


@given(STRIDES, st.integers(0, 12), st.lists(st.integers(1, 3), max_size=15), st.integers(0, 1), st.data())
def test_no_record_is_left_out_or_taken_for_another(
    strides: list[int], kept: int, again: list[int], shift: int, data: st.DataObject
) -> None:
    """What was lost is written again under the same numbers, or ``shift``ed: under those of other records."""
    log = written([], strides)
    checkpoint = after(applied := data.draw(st.sampled_from(log.places)))
    lost = written(log.places[:kept], again, shift=shift)
    is_there = lost.places[applied.sequence : applied.sequence + 1]
    try:
        found = lost.continued(checkpoint)
    except UserError:
        assert lost.places and not is_there
    except PromiseError:
        assert is_there and is_there[0].position != applied.position
    else:
        assert bool(is_there) == bool(lost.places)
        read = [place.sequence for place in lost.places if place.offset >= found.offsets[PARTITION]]
        following = [place.sequence for place in lost.places if place.sequence > applied.sequence]
        assert not is_there or (
            is_there[0].position == applied.position and read[len(read) - len(following) :] == following
        )


def test_newer_records_before_the_offset_are_read_where_the_applied_one_has_expired() -> None:
    """They were written again with less room between them."""
    log = Log([Place(offset, 4 + offset, position(4 + offset)) for offset in (3, 4, 5)], 3, 6)
    checkpoint = Checkpoint("srv", "toys", "id", 6, {PARTITION: 6}, position=position(6))
    assert log.continued(checkpoint).offsets == {PARTITION: 3}
    assert log.continued(replace(checkpoint, sequence=5)) == replace(checkpoint, sequence=5)  # a gap, found on reading


def test_a_follower_without_a_record_begins_anywhere() -> None:
    checkpoint = Checkpoint("srv", "toys", "id")
    assert written([], [1]).continued(checkpoint) == checkpoint


@pytest.mark.parametrize(
    ("position_of_the_applied", "code"), [(position(9), "CDC-TOPIC-OTHER-RECORDS"), (position(1), ""), (None, "")]
)
def test_another_record(position_of_the_applied: Position | None, code: str) -> None:
    """A checkpoint whose position is not known is compared by its number alone."""
    log = written([], [2, 2, 2])
    checkpoint = Checkpoint("srv", "toys", "id", 1, {PARTITION: 3}, position=position_of_the_applied)
    if not code:
        assert log.continued(checkpoint) == checkpoint
        return
    with pytest.raises(CdcError) as raised:
        log.continued(checkpoint)
    assert raised.value.code == code and "binlog.000001:100" in str(raised.value)


def test_a_follower_ahead() -> None:
    with pytest.raises(UserError, match=r"it has applied record 4, the topic ends with record 1; .*cdc-producer"):
        written([], [2, 2]).continued(Checkpoint("srv", "toys", "id", 4, {PARTITION: 9}))
