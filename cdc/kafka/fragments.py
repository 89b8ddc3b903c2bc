"""Cuts a record that is too large for one message into fragments, each a message, and joins them for readers; decides
which messages count as written (epochs).

Each fragment has the header ``cdc_fragment``: the record's sequence, the fragment's number from 0 on, the number of
fragments, and the CRC-32 of the whole record, separated by blanks. All fragments of a record follow one another in one
partition, and are committed in one Kafka transaction. So a reader of committed messages receives all of them or none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from io import BytesIO
from typing import Any, NamedTuple, Self
from zlib import crc32

from confluent_kafka import Message

from cdc.errors import CdcError, PromiseError
from cdc.large_rows import LargeRecord, LargeRecordWriter
from cdc.model.commit_entry import Mark
from cdc.model.position import Partition
from cdc.model.record import Record

__all__ = [
    "EPOCH_HEADER",
    "FRAGMENT_HEADER",
    "Begun",
    "Epochs",
    "Fragment",
    "Fragments",
    "Stamp",
    "cut",
    "cut_blocks",
    "epoch_at",
    "first_whole_sequence",
    "rest",
    "stamp_of",
]

# Decides which messages of a partition count as written if a producer writes records without Kafka transactions.
#
# Kafka fences a transactional producer when the next producer starts. A producer without transactions may still write
# after the next producer has started: it may have been paused, or one of its requests may arrive late over an old
# connection. So each start of such a producer has a number, the epoch. All messages of this producer have the epoch in
# the header ``cdc_epoch``. The first of these messages in each partition is a mark, which has this header but no value.
# A message that follows a mark and has a lower epoch is void: readers treat it as if it had never been written.
# Messages without the header have epoch 0. They were written in Kafka transactions, whose producers Kafka fences. The
# commit log contains the marks of a topic, with their offsets. The commit log itself is always written in Kafka
# transactions, so that only one producer at a time can write to it.

EPOCH_HEADER = "cdc_epoch"


class Stamp(NamedTuple):
    """The epoch of a message, and whether the message is the mark with which that epoch begins."""

    epoch: int
    is_mark: bool


def stamp_of(message: Message, headers: Mapping[str, object] | None = None) -> Stamp:
    """Reads the stamp of ``message``, which must not contain an error. ``headers`` are the message's headers, if the
    caller has already read them.

    Raises PromiseError for a header that can't be read.
    """
    value: Any = (dict(message.headers() or ()) if headers is None else headers).get(EPOCH_HEADER)
    if value is None:
        return Stamp(0, False)
    try:
        return Stamp(int(value), message.value() is None)
    except (ValueError, TypeError):
        raise PromiseError(
            f"not an epoch of a producer: header {EPOCH_HEADER} is {value!r}",
            code="CDC-TOPIC-NOT-A-RECORD",
            where=f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}",
            hint="something else writes to this topic; start over with a new one",
        ) from None


def epoch_at(marks: Iterable[Mark], offset: int) -> int:
    """Returns the newest epoch that begins before ``offset`` in a partition with these ``marks``; 0 if no epoch does.

    An epoch is the number of a start of a producer that writes without Kafka transactions. It begins with a mark, the
    first message of that producer in the partition.
    """
    return max((mark.epoch for mark in marks if 0 <= mark.offset < offset), default=0)


class Epochs:
    """Tracks the current epoch of each partition that one connection reads, to find the messages that a former producer
    wrote too late (void messages). An epoch is the number of a start of a producer that writes without Kafka
    transactions. The messages of a partition must be passed in the order of their offsets.

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


FRAGMENT_HEADER = "cdc_fragment"
# In UTF-8, each byte of a character except the first begins with the bits 10.
_CONTINUES, _IS_CONTINUED = 0xC0, 0x80
_MANY = 4
_HINT = "something else has written to this topic or deleted from it; start over with a new topic and a fresh copy"


class Fragment(NamedTuple):
    """The header of a fragment. The fragment has this ``number`` among the ``total`` fragments of the record
    ``sequence``. ``checksum`` is the checksum of the record's whole text.
    """

    sequence: int
    number: int
    total: int
    checksum: int

    @classmethod
    def of(cls, message: Message, headers: Mapping[str, Any] | None = None) -> Self | None:
        """Reads the fragment header of a message; None if the message is not a fragment. Raises PromiseError for a
        header that can't be read.

        ``headers`` are the message's headers, if the caller has already read them.
        """
        value = (dict(message.headers() or ()) if headers is None else headers).get(FRAGMENT_HEADER)
        if value is None:
            return None
        try:
            return cls(*map(int, value.split()))
        except (ValueError, TypeError):
            raise PromiseError(
                f"not a fragment of a record: header {FRAGMENT_HEADER} is {value!r}",
                code="CDC-RECORD-FRAGMENTS",
                where=_place(message),
                hint=_HINT,
            ) from None


def cut(value: bytes, size: int, *, sequence: int) -> Iterator[tuple[bytes, bytes]]:
    """Cuts the record ``value`` into fragments of at most ``size`` bytes (4 or more); yields the header and the bytes
    of each.

    A fragment ends at the end of a character, so that each fragment can be read as text.
    """
    ends = [0]
    while len(value) - ends[-1] > size:
        end = ends[-1] + size
        while value[end] & _CONTINUES == _IS_CONTINUED:
            end -= 1
        ends.append(end)
    checksum = crc32(value)
    for number, (begin, end) in enumerate(zip(ends, [*ends[1:], len(value)], strict=True)):
        yield b"%d %d %d %d" % (sequence, number, len(ends), checksum), value[begin:end]


def cut_blocks(blocks: Callable[[], Iterable[bytes]], size: int, *, sequence: int) -> Iterator[tuple[bytes, bytes]]:
    """Cuts a record that is too large for memory into fragments, like ``cut``. ``blocks()`` returns the bytes of the
    record block by block; it is called more than once, and must return the same bytes each time.
    """
    total, checksum = 0, 0
    for fragment in _fragments(blocks(), size):
        total, checksum = total + 1, crc32(fragment, checksum)
    for number, fragment in enumerate(_fragments(blocks(), size)):
        yield b"%d %d %d %d" % (sequence, number, total, checksum), fragment


def _fragments(blocks: Iterable[bytes], size: int) -> Iterator[bytes]:
    rest = bytearray()
    for block in blocks:
        rest += block
        while len(rest) > size:
            end = size
            while rest[end] & _CONTINUES == _IS_CONTINUED:
                end -= 1
            yield bytes(rest[:end])
            del rest[:end]
    yield bytes(rest)


class _Begun:
    """A record whose fragments are arriving, with the text so far. ``first`` is the header of its first fragment."""

    __slots__ = ("_on_disk", "_text", "checksum", "count", "first")

    def __init__(self, first: Fragment, *, on_disk: bool) -> None:
        self.first = first
        self._text = BytesIO()
        self._on_disk = LargeRecordWriter() if on_disk else None
        self.count = self.checksum = 0

    def value(self) -> bytes | LargeRecord:
        return self._on_disk.record() if self._on_disk else self._text.getvalue()

    def add(self, value: bytes) -> None:
        if self._on_disk:
            self._on_disk.add(value)
        else:
            self._text.write(value)
        self.checksum = crc32(value, self.checksum)
        self.count += 1


class Fragments:
    """Joins the fragments that one connection reads, and keeps the fragments of the incomplete record of each
    partition.

    If ``on_disk`` is true, a record of many fragments becomes a LargeRecord. Void messages, which a former producer
    wrote too late (see ``Epochs``), and epoch marks are left out. ``marks(partition)`` returns the epoch marks of the
    partition.
    """

    def __init__(self, marks: Callable[[Partition], Iterable[Mark]] = lambda _: (), *, on_disk: bool = False) -> None:
        self._on_disk = on_disk
        self._epochs = Epochs(marks)
        self._begun: dict[Partition, _Begun] = {}
        self._read: set[Partition] = set()
        self._broken: CdcError | None = None

    def forget(self, partitions: Iterable[Partition]) -> None:
        """Drops the fragments of these partitions. Must be called before the partitions are read from another offset
        on."""
        self._broken = None
        for partition in partitions:
            self._begun.pop(partition, None)
            self._read.discard(partition)
            self._epochs.forget(partition)

    def is_begun(self, partition: Partition) -> bool:
        """Whether only the first fragments of a record in this partition have been read."""
        return partition in self._begun

    def all_whole(self, messages: Iterable[Message]) -> list[Message]:
        """Calls ``whole`` for each message, and returns the complete messages. If an error occurs after complete
        messages, the next call raises it.
        """
        if self._broken:
            raise self._broken
        found: list[Message] = []
        try:
            for message in messages:
                whole = self.whole(message)
                if whole is not None:
                    found.append(whole)
        except CdcError as error:
            self._broken = error
            if not found:
                raise
        return found

    def whole(self, message: Message) -> Message | None:
        """Joins fragments. Returns a message unchanged if it is not a fragment. For the last fragment of a record,
        returns that message with the value of the whole record; for other fragments, returns None.

        A record is left out if its beginning was not read since the partition was assigned, because retention has
        deleted the beginning, or because reading began after it. Raises PromiseError if a fragment is missing,
        UserError if the disk is full.
        """
        if message.error() is not None:
            return message
        headers = dict(message.headers() or ())
        if not self._epochs.counts(message, headers):
            return None
        fragment, partition = Fragment.of(message, headers), (message.topic() or "", message.partition() or 0)
        begun = self._begun.pop(partition, None)
        if begun is None:
            if fragment is not None and fragment.number and partition not in self._read:
                return None
            self._read.add(partition)
            if fragment is None:
                return message
            begun = _Begun(fragment, on_disk=self._on_disk and fragment.total >= _MANY)
        first = begun.first
        if fragment != first._replace(number=begun.count):
            raise _damaged(message, f"the fragments of record {first.sequence} are not complete")
        begun.add(message.value() or b"")
        if begun.count < first.total:
            self._begun[partition] = begun
            return None
        if begun.checksum != first.checksum:
            raise _damaged(message, f"the fragments of record {first.sequence} are not what was written")
        message.set_value(begun.value())
        return message


def first_whole_sequence(message: Message) -> int:
    """Returns the sequence of the first complete record of a partition; ``message`` must be the oldest message in the
    partition.

    Raises PromiseError if the message is not a record.
    """
    fragment = Fragment.of(message)
    if fragment is not None:
        return fragment.sequence + (fragment.number > 0)
    return Record.parse(message.value() or b"", where=_place(message)).sequence


def _damaged(message: Message, what: str) -> PromiseError:
    return PromiseError(what, code="CDC-RECORD-FRAGMENTS", where=_place(message), hint=_HINT)


def _place(message: Message) -> str:
    return f"topic {message.topic()}, partition {message.partition()}, offset {message.offset()}"


class Begun(NamedTuple):
    """An incomplete record: ``newest`` is the newest of its fragments that readers can see, and ``value`` contains the
    bytes of that fragment.
    """

    newest: Fragment
    value: bytes


def rest(fragments: Iterable[tuple[bytes, bytes]], after: Begun, *, where: str) -> Iterator[tuple[bytes, bytes]]:
    """Yields the ``fragments`` of a record that follow ``after``, the newest fragment that readers can see.

    Raises PromiseError if ``fragments`` do not continue the fragments that were written, because the record was cut in
    another way then.
    """
    for mark, fragment in fragments:
        made = Fragment(*map(int, mark.split()))
        is_same = made == after.newest._replace(number=made.number)
        # Even if the number of fragments is the same, this fragment may end at another place in the record than the
        # written fragment does.
        if not is_same or (made.number == after.newest.number and fragment != after.value):
            raise PromiseError(
                f"the first fragments of record {made.sequence} are committed already, but it is cut differently now",
                code="CDC-TOPIC-RECORDS-DIFFER",
                where=where,
                hint="run with the version and producer.message_bytes that wrote them until that record is complete",
            )
        if made.number > after.newest.number:
            yield mark, fragment
