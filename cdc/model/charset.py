"""Decodes text of those MySQL character sets for which decoding and encoding lose no byte."""

import codecs
from collections.abc import Callable, Sequence

__all__ = ["TextDecoder", "bytes_of_character", "latin1_decode", "latin1_encode", "member_texts", "text_decoder"]

TextDecoder = Callable[[bytes], str]

# MySQL's latin1 is cp1252, with the five bytes that cp1252 does not define as the C1 controls of the same number
# (MySQL manual, "West European Character Sets"), so each of the 256 bytes has a character of its own.
_LATIN1_TABLE = "".join(
    bytes([byte]).decode("latin-1" if byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else "cp1252") for byte in range(256)
)
_LATIN1_ENCODING = codecs.charmap_build(_LATIN1_TABLE)


def latin1_decode(data: bytes) -> str:
    """The text of ``data`` in MySQL's latin1. Never fails: every byte has a character."""
    return codecs.charmap_decode(data, "strict", _LATIN1_TABLE)[0]


def latin1_encode(text: str) -> bytes:
    """The bytes of ``text`` in MySQL's latin1. Raises UnicodeEncodeError for a character outside of it."""
    return codecs.charmap_encode(text, "strict", _LATIN1_ENCODING)[0]


def _utf8_decode(data: bytes) -> str:
    return codecs.utf_8_decode(data, "strict", True)[0]


def _ascii_decode(data: bytes) -> str:
    return codecs.ascii_decode(data, "strict")[0]


_DECODERS: dict[str, TextDecoder] = {
    "utf8mb4": _utf8_decode,
    "utf8mb3": _utf8_decode,
    "utf8": _utf8_decode,
    "ascii": _ascii_decode,
    "latin1": latin1_decode,
}


_WIDEST = {
    "big5": 2, "cp932": 2, "eucjpms": 3, "euckr": 2, "gb18030": 4, "gb2312": 2, "gbk": 2, "sjis": 2, "ucs2": 2,
    "ujis": 3, "utf16": 4, "utf16le": 4, "utf32": 4, "utf8": 3, "utf8mb3": 3, "utf8mb4": 4,
}  # fmt: skip


def bytes_of_character(charset: str) -> int:
    """The most bytes that a character has in a MySQL character set (MAXLEN in information_schema.CHARACTER_SETS)."""
    return _WIDEST.get(charset, 1)


def text_decoder(charset: str) -> TextDecoder | None:
    """The decoder of a MySQL character set, or None where its text must be kept as raw bytes."""
    return _DECODERS.get(charset)


def member_texts(members: Sequence[bytes], charset: str) -> list[str] | None:
    """The members of an ENUM or SET as text; None where some are no exact text, so that only their numbers tell them.

    ``ALTER TABLE … CONVERT TO CHARACTER SET`` leaves the bytes of members as they are (MySQL 9.7), whatever they are in
    the new character set.
    """
    decode = text_decoder(charset)
    if decode is None:
        return None
    try:
        return [decode(member) for member in members]
    except UnicodeDecodeError:
        return None
