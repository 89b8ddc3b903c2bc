"""A compressed transaction (binlog_transaction_compression): the events inside of a Transaction_payload event.

Layout: MySQL source, libs/mysql/binlog/event, class Transaction_payload_event: fields of type, length and value, an end
mark, then one zstd stream of events without checksums.
"""

import io
from collections.abc import Iterator
from typing import BinaryIO

import zstandard

from cdc.errors import PromiseError
from cdc.producer import events as ev
from cdc.producer.events import RawEvent

__all__ = ["payload"]

_END, _COMPRESSION = 0, 2
_ZSTD, _NONE = 0, 255
_LENGTH_AT = 9  # of the event's length in its header


def payload(event: RawEvent) -> Iterator[RawEvent]:
    """The events of a compressed transaction, each with the position of the event that holds them.

    They are decompressed one after the other: beyond its compressed bytes, which are not copied, a large transaction
    takes no more memory than its largest event. Raises PromiseError for an unknown compression or broken data.
    """
    data, at, compression = event.data, ev.HEADER_BYTES, _ZSTD
    while True:
        field, at = ev.packed_integer(data, at)
        if field == _END:
            break
        length, at = ev.packed_integer(data, at)
        if field == _COMPRESSION:
            compression, _ = ev.packed_integer(data, at)
        at += length
    if compression == _NONE:
        plain = io.BytesIO(data)
        plain.seek(at)
        yield from _events(plain, event)
    elif compression == _ZSTD:
        with zstandard.ZstdDecompressor().stream_reader(memoryview(data)[at:], read_across_frames=True) as stream:
            yield from _events(stream, event)
    else:
        raise PromiseError(f"a transaction is compressed in an unknown way, {compression}", where=str(event.position))


def _events(stream: BinaryIO, whole: RawEvent) -> Iterator[RawEvent]:
    try:
        while head := _read(stream, ev.HEADER_BYTES):
            length = int.from_bytes(head[_LENGTH_AT : _LENGTH_AT + 4], "little")
            rest = _read(stream, length - ev.HEADER_BYTES)
            if len(head) + len(rest) != length:
                raise ValueError("it ends within an event")
            yield RawEvent(head[4], head + rest, whole.file, whole.offset, whole.end)
    except (zstandard.ZstdError, ValueError) as error:
        raise PromiseError(f"a compressed transaction cannot be read: {error}", where=str(whole.position)) from None


def _read(stream: BinaryIO, size: int) -> bytes:
    """``size`` bytes, or as many as there are: a reader may give less than is asked for."""
    parts = b""
    while len(parts) < size and (part := stream.read(size - len(parts))):
        parts += part
    return parts
