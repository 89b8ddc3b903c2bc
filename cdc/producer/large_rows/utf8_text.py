"""Quotes long texts in UTF-8 as JSON, a character for each byte, and checks whether bytes are UTF-8."""

from codecs import getincrementaldecoder
from json.encoder import encode_basestring

import orjson

__all__ = ["quote_long", "require_utf8"]

# encode_basestring inspects each character in turn, which takes ten times as long as these searches in the whole text.
_ESCAPES = [(b"\\", rb"\\"), (b'"', rb"\""), (b"\n", rb"\n"), (b"\r", rb"\r"), (b"\t", rb"\t")]
_CONTROLS = bytes(range(32))
_SLICE = 1 << 20


def quote_long(text: bytes) -> str:
    """The result of ``encode_basestring`` for the same text."""
    if text.isascii():
        return orjson.dumps(text.decode("latin-1")).decode("latin-1")
    # orjson would take valid UTF-8 only, and twice the time.
    escaped = text
    for special, escape in _ESCAPES:
        escaped = escaped.replace(special, escape)
    if len(escaped.translate(None, _CONTROLS)) < len(escaped):
        return encode_basestring(text.decode("latin-1"))
    return f'"{escaped.decode("latin-1")}"'


def require_utf8(row: bytes) -> None:
    """Raises UnicodeDecodeError if a text in ``row`` is not in UTF-8.

    If the row is, each text is: the bytes around it are ASCII, which is never in the middle of a character.
    """
    if len(row) <= _SLICE:
        row.decode()
        return
    # Decoding the row as a whole could take four times as much memory.
    decoder, view = getincrementaldecoder("utf-8")(), memoryview(row)
    for begin in range(0, len(row), _SLICE):
        decoder.decode(view[begin : begin + _SLICE], final=begin + _SLICE >= len(row))
