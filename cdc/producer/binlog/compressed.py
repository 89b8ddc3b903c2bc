"""Decompresses a Transaction_payload event (binlog_transaction_compression) into the events inside it.

Layout: MySQL source, libs/mysql/binlog/event, class Transaction_payload_event: the event contains fields of type,
length and value, an end mark, and one zstd stream of events without checksums.
"""

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import BinaryIO

import zstandard

from cdc.errors import PromiseError
from cdc.producer.binlog import event_types as et
from cdc.producer.binlog import events as ev
from cdc.producer.binlog.events import HEADER_BYTES, LARGEST_PAYLOAD, LENGTH_AT, TYPE_AT, Inner, RawEvent
from cdc.producer.binlog.packets import SimpleTransaction
from cdc.producer.binlog.spool import Spool

__all__ = ["is_small", "payload", "unpacked"]

_END, _COMPRESSION, _UNCOMPRESSED_SIZE = 0, 2, 3
_SMALL = 1_000_000  # bytes, uncompressed
_ZSTD, _NONE = 0, 255
_SPOOL_HEAD_BYTES, _PART_BYTES = 4000, 1 << 20


def payload(event: RawEvent) -> Iterator[RawEvent]:
    """Yields the events of a compressed transaction, each with the position of the event that contains it. The events
    can be read only once.

    The events are decompressed one by one, from disk if ``event`` has a spool: a transaction of any size takes only the
    memory of its largest event, and rows of more than 16 MB are written to disk, too. Raises PromiseError for an
    unknown compression or broken data.
    """
    at, fields = _fields(event)
    compression = fields.get(_COMPRESSION, _ZSTD)
    with event.spool.open() if event.spool else io.BytesIO(event.data) as source:
        source.seek(at)
        if compression == _NONE:
            yield from _events(source, event)
        elif compression == _ZSTD:
            with zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True) as stream:
                yield from _events(stream, event)
        else:
            raise PromiseError(
                f"a transaction has the unknown compression {compression}",
                code="CDC-EVENT-UNKNOWN",
                where=str(event.position),
            )


def is_small(event: RawEvent) -> bool:
    """Whether a compressed transaction is so small that all its events may be in memory at the same time."""
    _, fields = _fields(event)
    return event.spool is None and fields.get(_UNCOMPRESSED_SIZE, _SMALL) < _SMALL


def unpacked(
    events: Sequence[RawEvent | SimpleTransaction], *, broken: tuple[type[Exception], ...]
) -> Iterator[RawEvent | SimpleTransaction]:
    """Replaces each small compressed transaction in ``events`` by the events inside it, so that they are decoded
    together with their neighbors.

    ``broken`` are the errors that readers raise for broken bytes.
    """
    for event in events:
        inner: Iterable[RawEvent | SimpleTransaction] = (event,)
        if isinstance(event, RawEvent) and event[0] == et.TRANSACTION_PAYLOAD:
            # A payload that can't be read is yielded unchanged: the decoder then raises the error at the payload's
            # position.
            with suppress(PromiseError, *broken):
                inner = list(payload(event)) if is_small(event) else inner
        yield from inner


def _fields(event: RawEvent) -> tuple[int, dict[int, int]]:
    """Parses the fields before the compressed events; returns the offset of these events, and the values of the fields
    by type.
    """
    data, at = event.data, HEADER_BYTES
    fields: dict[int, int] = {}
    while True:
        field, at = ev.packed_integer(data, at)
        if field == _END:
            return at, fields
        length, at = ev.packed_integer(data, at)
        fields[field], _ = ev.packed_integer(data, at)
        at += length


def _events(stream: BinaryIO, whole: RawEvent) -> Iterator[RawEvent]:
    number = 0
    try:
        while head := _read(stream, HEADER_BYTES):
            length = int.from_bytes(head[LENGTH_AT : LENGTH_AT + 4], "little")
            kind, spool = head[TYPE_AT], None
            if length > LARGEST_PAYLOAD and kind in et.SPOOLED:
                data = head + _read(stream, _SPOOL_HEAD_BYTES - HEADER_BYTES)
                spool = _spooled(stream, data, length)
            else:
                data = head + _read(stream, length - HEADER_BYTES)
            if (spool.size if spool else len(data)) != length:
                raise ValueError("it ends within an event")
            event = Inner(kind, data, whole.file, whole.offset, whole.end, spool)
            event.number = number = number + 1
            yield event
        if not number:
            raise ValueError("it has no events")
    except (zstandard.ZstdError, ValueError) as error:
        raise PromiseError(
            f"a compressed transaction cannot be read: {error}", code="CDC-EVENT-DAMAGED", where=str(whole.position)
        ) from None


def _spooled(stream: BinaryIO, head: bytes, length: int) -> Spool:
    """Writes the event of ``length`` bytes that begins with ``head`` to disk."""
    spool = Spool(head)
    spool.write(head)
    while spool.size < length and (part := stream.read(min(_PART_BYTES, length - spool.size))):
        spool.write(part)
    return spool


def _read(stream: BinaryIO, size: int) -> bytes:
    """Reads ``size`` bytes, or fewer at the end of the stream: a single call of ``stream.read`` may return fewer bytes
    even before the end.
    """
    parts = b""
    while len(parts) < size and (part := stream.read(size - len(parts))):
        parts += part
    return parts
