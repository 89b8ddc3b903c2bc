"""Records written without Kafka transactions: whatever producers that were replaced still write, and wherever reading
begins, the records that count are those of the producer of the time."""

from typing import NamedTuple

import pytest
from confluent_kafka import Message
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import PromiseError
from cdc.kafka.fragments import EPOCH_HEADER, Epochs, Fragments, epoch_at, stamp_of
from cdc.model.commit_entry import Mark


class Topic(NamedTuple):
    """Its messages, the offsets of those that count, and the marks that the commit log knows."""

    messages: list[Message]
    counting: list[int]
    marks: list[Mark]


def message(offset: int, epoch: int | None, value: bytes | None = b"{}") -> Message:
    headers = [("mysql_binlog_headers", b"{}"), *([(EPOCH_HEADER, str(epoch).encode())] if epoch is not None else [])]
    return Message(topic="t", partition=0, offset=offset, value=value, headers=headers)


@st.composite
def topics(draw: st.DrawFn) -> Topic:
    """Starts of producers, each with a mark, and between them records of any of those that have started."""
    found = Topic([], [], [])
    now = 0
    for writer in draw(st.lists(st.integers(-1, 4), max_size=30)):
        offset = len(found.messages) + draw(st.integers(0, 1))  # the end of a Kafka transaction takes an offset, too
        while len(found.messages) < offset:
            found.messages.append(message(len(found.messages), now or None))
            found.counting.append(len(found.messages) - 1)
        if writer < 0:
            now += 1
            found.messages.append(message(offset, now, None))
            found.marks.append(Mark(now, offset))
        else:
            epoch = max(min(writer, now), min(1, now))  # Kafka fences those before the first mark
            found.messages.append(message(offset, epoch or None))
            found.counting.extend([offset] if epoch == now else [])
    return found


@given(topics(), st.data())
def test_what_counts_is_known_from_wherever_reading_begins(topic: Topic, data: st.DataObject) -> None:
    begin = data.draw(st.integers(0, len(topic.messages)))
    # The commit log is read after reading began, so it may know marks that are still to come.
    epochs = Epochs(lambda _: topic.marks)
    read = [each.offset() for each in topic.messages[begin:] if epochs.counts(each)]
    assert read == [offset for offset in topic.counting if offset >= begin]


@given(topics())
def test_one_that_reads_all_needs_no_commit_log(topic: Topic) -> None:
    fragments = Fragments(lambda _: ())
    assert [each.offset() for each in fragments.all_whole(topic.messages)] == topic.counting


def test_after_reading_goes_elsewhere_the_marks_are_asked_for_again() -> None:
    marks = [Mark(1, 0), Mark(2, 5)]
    epochs = Epochs(lambda _: marks)
    assert epochs.counts(message(6, 2)) and not epochs.counts(message(7, 1))
    epochs.forget(("t", 0))
    assert epochs.counts(message(3, 1)) and not epochs.counts(message(5, 2, None)) and not epochs.counts(message(6, 1))


def test_a_mark_whose_offset_is_not_known_yet_says_nothing() -> None:
    assert epoch_at([Mark(1, 3), Mark(2, -1)], 9) == 1
    assert epoch_at([Mark(1, 3)], 3) == 0


def test_a_header_that_is_no_number_is_refused() -> None:
    with pytest.raises(PromiseError, match="not an epoch of a producer: header cdc_epoch is b'x'; at topic t"):
        stamp_of(Message(topic="t", partition=0, offset=7, value=b"", headers=[(EPOCH_HEADER, b"x")]))
