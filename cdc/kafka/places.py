"""Reads the places of records in topics; checks that topics still contain the records that a reader has read, and finds
the offsets behind them.

Brokers that lose records get them again from the producer, at other offsets, and perhaps others under the same
sequences: those of a table copy can't be read again as they were. A reader that goes on must neither pass over others
in place of those that it has read, nor read the same ones twice.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from confluent_kafka import Message

from cdc.errors import PromiseError, UserError
from cdc.kafka.fragments import Fragment, epoch_at, stamp_of
from cdc.kafka.partitions import backwards, newest_within
from cdc.model.commit_entry import Mark
from cdc.model.position import Partition, Position, partition_name
from cdc.model.read_record import ReadRecord
from cdc.model.record import Record, is_event, position_in_head, time_in_head

__all__ = ["Place", "Reader", "offsets_behind", "place_of"]


class Place(NamedTuple):
    """The place of a record in a topic and in the binlog: the ``offset`` of its first message, its ``sequence``, and
    its ``position`` in the leader's binlog. ``ts_us`` is the time of its commit, or at which a chunk was read; None if
    it is unknown. ``epoch`` is 0 if the record was written in a Kafka transaction. Otherwise
    it is the number of the producer's start, after which the record was written (module kafka.fragments).
    """

    offset: int
    sequence: int
    position: Position
    epoch: int = 0
    ts_us: int | None = None


def place_of(message: Message) -> Place | None:
    """Returns the place of the record that begins with ``message``, or None if ``message`` is a mark, a later fragment
    of a record, or about an event that belongs to no record. Raises PromiseError for a message that is not a record.
    """
    headers, value = dict(message.headers() or ()), message.value() or b""
    stamp, offset, fragment = stamp_of(message, headers), message.offset() or 0, Fragment.of(message, headers)
    if stamp.is_mark or (fragment is not None and fragment.number > 0) or is_event(value):
        return None
    where = f"{message.topic()}/{message.partition()}/{offset}"
    if fragment is not None:
        position = position_in_head(value, where=where)
        return Place(offset, fragment.sequence, position, stamp.epoch, time_in_head(value))
    record = Record.parse(value, where=where)
    return Place(offset, record.sequence, record.position, stamp.epoch, record.ts_us)


# Compares the records that a reader has read with those that the topics have now.

_FIRST_OFFSETS = 8  # offsets of a partition in which its oldest record is looked for


class Reader(NamedTuple):
    """A reader for an error: its ``name``, and how it starts ``over``."""

    name: str
    over: str


def offsets_behind(
    properties: Mapping[str, Any],
    read: Mapping[Partition, Sequence[ReadRecord]],
    offsets: Mapping[Partition, int],
    ranges: Mapping[Partition, tuple[int, int]],
    marks: Iterable[Mark],
    *,
    reader: Reader,
) -> dict[Partition, int]:
    """Returns the ``offsets`` at which the reader continues: in a partition in which the last record that it has read
    is at another offset now, or has others behind it, the offset behind the first message of that record.

    ``read`` are records that the reader has read in each partition, the last one first. ``ranges`` are the first and
    the last offsets of each partition, and ``marks`` the marks of the epochs. It is no error if retention has deleted
    the records. Raises UserError if a partition ends before one of them, PromiseError if another record has taken its
    place, Disconnected and KafkaException.
    """
    marks, found = tuple(marks), dict(offsets)
    read = {each: records for each, records in read.items() if each in ranges}  # the caller compares the topics
    there = _at_their_offsets(properties, read, ranges, marks)
    for partition, records in read.items():
        for number, record in enumerate(records):
            if (partition, record) not in there:
                place = _searched(properties, partition, record, ranges[partition], marks, reader)
                if place is not None and number == 0:
                    found[partition] = place.offset + 1  # readers pass over the other fragments of a record
    last = {each: records[0] for each, records in read.items() if records and (each, records[0]) in there}
    # The end of the last Kafka transaction may be missing at the end of the partition.
    found |= {each: at.offset + 1 for each, at in last.items() if found.get(each, 0) > ranges[each][1]}
    return found | _before_others(properties, last, found)


def _before_others(
    properties: Mapping[str, Any], last: Mapping[Partition, ReadRecord], offsets: Mapping[Partition, int]
) -> dict[Partition, int]:
    """Returns the partitions with messages between the ``last`` record that was read and the one of the ``offsets`` up
    to which the reader has read, with the offset behind that record. Ends of Kafka transactions, which take offsets,
    too, were there before; the other fragments of the record are no such messages.
    """
    upto = {each: offsets.get(each, 0) for each in last}
    between = {each: (at.offset + 1, upto[each]) for each, at in last.items() if upto[each] > at.offset + 1}
    found = {}
    for partition, message in _newest(properties, between).items():
        fragment = Fragment.of(message)
        if fragment is None or fragment.sequence != last[partition].sequence:
            found[partition] = last[partition].offset + 1
    return found


def _at_their_offsets(
    properties: Mapping[str, Any],
    read: Mapping[Partition, Sequence[ReadRecord]],
    ranges: Mapping[Partition, tuple[int, int]],
    marks: Sequence[Mark],
) -> set[tuple[Partition, ReadRecord]]:
    """Finds the records that are where they were read."""
    found = set()
    for number in range(max(map(len, read.values()), default=0)):
        asked = {each: records[number] for each, records in read.items() if len(records) > number}
        asked = {each: record for each, record in asked.items() if ranges[each][0] <= record.offset < ranges[each][1]}
        only = {each: (record.offset, record.offset + 1) for each, record in asked.items()}
        for partition, message in _newest(properties, only).items():
            place = place_of(message)
            if place is not None and _counts(place, marks) and _is_at(asked[partition], place):
                found.add((partition, asked[partition]))
    return found


def _newest(properties: Mapping[str, Any], ranges: Mapping[Partition, tuple[int, int]]) -> Mapping[Partition, Message]:
    return newest_within(properties, ranges) if ranges else {}  # which connects, even to ask nothing


def _searched(
    properties: Mapping[str, Any],
    partition: Partition,
    record: ReadRecord,
    offsets: tuple[int, int],
    marks: Sequence[Mark],
    reader: Reader,
) -> Place | None:
    """Finds the place of ``record`` in the partition; None if retention has deleted it."""
    if offsets[0] > 0 and _oldest(properties, partition, offsets) > record.sequence:
        return None
    newest, found = -1, None
    for place in backwards(properties, partition, end=offsets[1], pick=place_of):
        if place is not None and _counts(place, marks):
            newest = max(newest, place.sequence)
            if place.sequence <= record.sequence:
                found = place
                break
    if found is None and offsets[0] > 0:
        return None
    if found is None or not _is_at(record, found):
        _raise_other(partition, record, newest, reader)
    return found


def _oldest(properties: Mapping[str, Any], partition: Partition, offsets: tuple[int, int]) -> int:
    """Returns the sequence of the oldest record in the partition; -1 if none begins at its first offsets."""
    begin, end = offsets
    for upto in range(begin + 1, min(end, begin + _FIRST_OFFSETS) + 1):
        for message in newest_within(properties, {partition: (begin, upto)}).values():
            if (place := place_of(message)) is not None:
                return place.sequence
    return -1


def _is_at(record: ReadRecord, place: Place) -> bool:
    return record.is_same(place.sequence, place.position, place.ts_us)


def _counts(place: Place, marks: Sequence[Mark]) -> bool:
    return not place.epoch or place.epoch >= epoch_at(marks, place.offset)


def _raise_other(partition: Partition, record: ReadRecord, newest: int, reader: Reader) -> NoReturn:
    where = f"partition {partition_name(partition)}, formerly offset {record.offset}"
    if newest < record.sequence:
        raise UserError(
            f"{reader.name} is ahead of the topic: it has record {record.sequence}, the topic ends with {newest}",
            code="CDC-READ-RECORDS-LOST",
            where=where,
            hint="the brokers lost records: start cdc-producer, which writes them again if the leader still has them, "
            f"then this program; if it can't, {reader.over}",
        )
    raise PromiseError(
        f"record {record.sequence} is not the record that {reader.name} has: that one was from leader position "
        f"{Position(record.file, record.at)}",
        code="CDC-READ-RECORDS-REPLACED",
        where=where,
        hint=f"the brokers lost records, and others were written in their place: {reader.over}",
    )
