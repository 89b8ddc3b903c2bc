"""Reads the rows of an event on disk: a large BLOB or text stays there, all other values are read as usual."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.spool import Spool
from cdc.producer.large_rows.large_text import LargeText, StoredValue, stored_base64, stored_text

__all__ = ["BLOB", "TEXT", "LargeColumn", "large_rows"]

BLOB, TEXT = "Blob", "String"  # the tags of values that may stay on disk
_LARGE = 1_000_000  # bytes; shorter values are read into memory
_WINDOW = 66_000  # bytes; larger than any value whose length is stored in at most two bytes
_SHORT_PREFIX = 2


class LargeColumn(NamedTuple):
    """The reader of a column. ``read(data, offset)`` returns the JSON text of the value at ``offset``, and the offset
    after the value. ``prefix`` is the number of bytes of the length in front of the value, 0 if there is no length.
    Large values stay on disk if ``tag`` is not empty, as for BLOB and for TEXT in UTF-8; ``quote`` writes such values
    as JSON.
    """

    read: Callable[[bytes, int], tuple[str, int]]
    prefix: int = 0
    tag: str = ""
    quote: Callable[[bytes], str] = repr


def large_rows(event: RawEvent, columns: Sequence[LargeColumn], at: int) -> list[LargeText]:
    """Returns the JSON text of each row of the event, the same text that a ``RowDecoder`` returns. The event's first
    row begins at the offset ``at``.

    Raises ValueError, LookupError or struct.error on broken data.
    """
    spool = event.spool
    if spool is None:
        raise ValueError("the event is in memory")
    rows = []
    while at < spool.size:
        pieces: list[bytes | StoredValue] = []
        if event.type in et.UPDATES:
            pieces.append(b'{"before_cols":[')
            at = _image(spool, at, columns, pieces)
            pieces.append(b'],"after_cols":[')
        else:
            pieces.append(b'{"cols":[')
        at = _image(spool, at, columns, pieces)
        rows.append(LargeText([*pieces, b"]}"]))
    if at != spool.size:
        raise ValueError(f"the last row ends {at - spool.size} bytes after the event")
    return rows


def _image(spool: Spool, at: int, columns: Sequence[LargeColumn], pieces: list[bytes | StoredValue]) -> int:
    """Appends the values of the image at ``at`` to ``pieces``; returns the offset after the image."""
    width = (len(columns) + 7) // 8
    nulls = int.from_bytes(spool.read(at, width), "little")
    at += width
    for index, column in enumerate(columns):
        if index:
            pieces.append(b",")
        if nulls >> index & 1:
            pieces.append(b'"Null"')
        else:
            at += _value(spool, at, column, pieces)
    return at


def _value(spool: Spool, at: int, column: LargeColumn, pieces: list[bytes | StoredValue]) -> int:
    """Appends the value at ``at`` to ``pieces``; returns the number of bytes of the value."""
    prefix, size = column.prefix, _WINDOW
    if prefix > _SHORT_PREFIX:
        length = int.from_bytes(spool.read(at, prefix), "little")
        size = prefix + length
        if at + size > spool.size:
            raise ValueError(f"a value ends {at + size - spool.size} bytes after the event")
        if length > _LARGE and column.tag:
            pieces += _stored(spool, at + prefix, length, column)
            return size
    text, read = column.read(spool.read(at, size), 0)
    encoded = text.encode("latin-1")
    encoded.decode()  # raises if a text is not in UTF-8
    pieces.append(encoded)
    return read


def _stored(spool: Spool, at: int, length: int, column: LargeColumn) -> Iterator[bytes | StoredValue]:
    yield b'{"%s":"' % column.tag.encode()
    yield stored_base64(spool, at, length) if column.tag == BLOB else stored_text(spool, at, length, column.quote)
    yield b'"}'
