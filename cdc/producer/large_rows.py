"""Reads rows that are too large for memory from the event on disk, and writes them as JSON text block by block."""

from binascii import b2a_base64
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from json.encoder import encode_basestring
from typing import NamedTuple, Self
from zlib import crc32

import orjson

from cdc.producer.binlog import event_types as et
from cdc.producer.binlog.events import RawEvent
from cdc.producer.binlog.spool import Spool

__all__ = [
    "BLOB",
    "TEXT",
    "LargeColumn",
    "LargeText",
    "StoredValue",
    "checksum",
    "large_rows",
    "quote_long",
    "require_utf8",
    "stored_base64",
    "stored_text",
]

_BLOCK = 3 << 18  # bytes; a multiple of three, so that base64 needs no padding between two blocks
_INSIDE_A_CHARACTER = bytes(range(0x80, 0xC0))  # bytes in UTF-8 that are not the first byte of a character


class StoredValue(NamedTuple):
    """A value of ``length`` bytes at ``offset`` of ``spool``. ``render`` converts the value block by block to JSON
    text, which has ``size`` bytes and ``characters`` characters.
    """

    spool: Spool
    offset: int
    length: int
    render: Callable[[bytes], bytes]
    size: int
    characters: int

    def blocks(self) -> Iterator[bytes]:
        for part in _read(self.spool, self.offset, self.length):
            yield self.render(part)


def stored_base64(spool: Spool, offset: int, length: int) -> StoredValue:
    """Returns the value at ``offset`` of ``spool``, to be written as base64 without quotes."""
    size = 4 * ((length + 2) // 3)
    return StoredValue(spool, offset, length, _base64, size, size)


def stored_text(spool: Spool, offset: int, length: int, quote: Callable[[bytes], str]) -> StoredValue:
    """Returns the text in UTF-8 at ``offset`` of ``spool``, to be written with the escapes of a JSON string, but
    without its quotes.

    ``quote`` writes any bytes as a JSON string with its quotes, and writes one character for each byte that needs no
    escape. Raises UnicodeDecodeError if the text is not in UTF-8.
    """

    def render(part: bytes) -> bytes:
        return quote(part)[1:-1].encode("latin-1")

    decoder, size, characters = getincrementaldecoder("utf-8")(), 0, 0
    for part in _read(spool, offset, length):
        decoder.decode(part)
        rendered = render(part)
        size += len(rendered)
        characters += _characters(rendered)
    decoder.decode(b"", final=True)
    return StoredValue(spool, offset, length, render, size, characters)


def _base64(part: bytes) -> bytes:
    return b2a_base64(part, newline=False)


def _read(spool: Spool, offset: int, length: int) -> Iterator[bytes]:
    for at in range(0, length, _BLOCK):
        yield spool.read(offset + at, min(_BLOCK, length - at))


def _characters(text: bytes) -> int:
    return len(text.translate(None, _INSIDE_A_CHARACTER))


class LargeText:
    """A text in UTF-8 that consists of pieces: ``len(text)`` is its number of bytes, ``bytes(text)`` returns all of
    them.

    The text can be read repeatedly: the event on disk is deleted with the last text that refers to it.
    """

    __slots__ = ("_size", "pieces")

    def __init__(self, pieces: Iterable[bytes | StoredValue]) -> None:
        self.pieces = tuple(pieces)
        self._size = sum(len(piece) if isinstance(piece, bytes) else piece.size for piece in self.pieces)

    @classmethod
    def joined(cls, parts: "Iterable[str | bytes | LargeText]") -> Self:
        """Joins the ``parts`` in their order."""
        pieces: list[bytes | StoredValue] = []
        for part in parts:
            if isinstance(part, LargeText):
                pieces += part.pieces
            else:
                pieces.append(part.encode() if isinstance(part, str) else part)
        return cls(pieces)

    def __len__(self) -> int:
        return self._size

    def __bytes__(self) -> bytes:
        return b"".join(self.blocks())

    def blocks(self) -> Iterator[bytes]:
        """Yields the text in blocks of about 1 MB; a piece that is in memory is a single block of any size."""
        for piece in self.pieces:
            if isinstance(piece, bytes):
                yield piece
            else:
                yield from piece.blocks()

    @property
    def characters(self) -> int:
        """The number of characters in the text."""
        return sum(_characters(piece) if isinstance(piece, bytes) else piece.characters for piece in self.pieces)

    def head(self, size: int) -> bytes:
        """Returns at least the first ``size`` bytes of the text, or the whole text if it is shorter."""
        return _enough(self.blocks(), size)

    def tail(self, size: int) -> bytes:
        """Returns at least the last ``size`` bytes of the text, or the whole text if it is shorter."""
        found: list[bytes] = []
        for piece in reversed(self.pieces):
            if isinstance(piece, bytes):
                found.append(piece)
            else:
                # The JSON text of a value is at least as long as the value, so the last ``size`` bytes of the value are
                # enough.
                skipped = max(0, piece.length - size) // _BLOCK * _BLOCK
                rest = piece._replace(offset=piece.offset + skipped, length=piece.length - skipped)
                found.append(b"".join(rest.blocks()))
            if sum(map(len, found)) >= size:
                break
        return b"".join(reversed(found))


def _enough(blocks: Iterator[bytes], size: int) -> bytes:
    found = b""
    for block in blocks:
        found += block
        if len(found) >= size:
            break
    return found


def checksum(text: bytes | LargeText) -> int:
    """Computes the CRC-32 of a record."""
    if isinstance(text, bytes):
        return crc32(text)
    found = 0
    for block in text.blocks():
        found = crc32(block, found)
    return found


# encode_basestring inspects one character after the other, which takes ten times as long as these searches in the whole
# text.
_ESCAPES = [(b"\\", rb"\\"), (b'"', rb"\""), (b"\n", rb"\n"), (b"\r", rb"\r"), (b"\t", rb"\t")]
_CONTROLS = bytes(range(32))
_SLICE = 1 << 20


def quote_long(text: bytes) -> str:
    """Returns ``text`` as a JSON string: the same as ``encode_basestring``, in less time."""
    if text.isascii():
        return orjson.dumps(text.decode("latin-1")).decode("latin-1")
    # orjson is not used here: it accepts only valid UTF-8, and would take twice the time.
    escaped = text
    for special, escape in _ESCAPES:
        escaped = escaped.replace(special, escape)
    if len(escaped.translate(None, _CONTROLS)) < len(escaped):
        return encode_basestring(text.decode("latin-1"))
    return f'"{escaped.decode("latin-1")}"'


def require_utf8(row: bytes) -> None:
    """Raises UnicodeDecodeError if a text in ``row`` is not in UTF-8.

    If the whole row is in UTF-8, so is each text: the bytes around a text are ASCII, and an ASCII byte is never in the
    middle of a character.
    """
    if len(row) <= _SLICE:
        row.decode()
        return
    # Decoding the row as a whole could take four times as much memory.
    decoder, view = getincrementaldecoder("utf-8")(), memoryview(row)
    for begin in range(0, len(row), _SLICE):
        decoder.decode(view[begin : begin + _SLICE], final=begin + _SLICE >= len(row))


# Reads the rows of an event on disk: a large BLOB or text stays there, all other values are read as usual.

BLOB, TEXT = "Blob", "String"  # the types, as named in records, of values that may stay on disk
_LARGE = 1_000_000  # bytes; shorter values are read into memory
_WINDOW = 66_000  # bytes; larger than any value whose length is stored in at most two bytes
_SHORT_PREFIX = 2


class LargeColumn(NamedTuple):
    """The reader of a column. ``read(data, offset)`` returns the JSON text of the value at ``offset``, and the offset
    after the value. ``prefix`` is the number of bytes of the length in front of the value, 0 if there is no length.
    Large values stay on disk if ``tag`` is not empty, as for BLOB and for TEXT in UTF-8; ``quote`` writes such values
    as JSON. The values of a column that ``is_gone`` are left out.
    """

    read: Callable[[bytes, int], tuple[str, int]]
    prefix: int = 0
    tag: str = ""
    quote: Callable[[bytes], str] = repr
    is_gone: bool = False


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
    separator = b""
    for index, column in enumerate(columns):
        is_null = nulls >> index & 1
        if column.is_gone:
            at += 0 if is_null else _value(spool, at, column, [])
            continue
        if separator:
            pieces.append(separator)
        separator = b","
        if is_null:
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
        if column.is_gone:
            return size
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
