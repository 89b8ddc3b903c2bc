"""Decodes the text of a logged statement; where that is impossible, enough of it to find the objects it names.

MySQL accepts bytes that are invalid in the session's character set, in comments and strings. Marks and keywords are
ASCII in every character set, so the affected objects can be read all the same. A byte that cannot be decoded becomes a
lone surrogate (U+DC00 plus the byte), which valid text never has.
"""

import re

from cdc.model.charset import text_decoder
from cdc.sql.tokens import spans

__all__ = ["is_lost", "only_comments_lost", "readable", "statement_text"]

_LOST = re.compile("[\udc00-\udcff]")
_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
# Where the second byte of a character may look like ASCII, a backslash or a backtick among it (MySQL source,
# strings/ctype-*.cc, ismbchar of each).
_CHARACTERS = {
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
    "gb18030": rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "sjis": rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]",
}


def statement_text(data: bytes, charset: str) -> tuple[str, str]:
    """The text, and why some of its bytes are lost; empty where all could be decoded."""
    if data.isascii() and charset not in _WIDE:
        return data.decode("ascii"), ""
    charset = "utf8mb4" if charset == "binary" else charset
    decode = text_decoder(charset)
    try:
        if decode is None:
            raise ValueError(f"no exact codec for {charset}")
        return decode(data), ""
    except ValueError as error:
        problem = f"a statement's text in {charset} cannot be read: {error}"
    if charset.startswith("utf8"):
        return data.decode("utf-8", "surrogateescape"), problem
    if charset in _CHARACTERS:
        data = re.sub(_CHARACTERS[charset], lambda character: b"\xff" * len(character[0]), data)
    return data.decode("ascii", "surrogateescape"), problem


def is_lost(name: str) -> bool:
    """Whether bytes of ``name`` are lost, so that it may be any name."""
    return _LOST.search(name) is not None


def only_comments_lost(text: str, *, ansi_quotes: bool, backslash_escapes: bool) -> bool:
    """Whether bytes are lost in comments only, which have no effect (unlike optimizer hints)."""
    found = spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes)
    return "/*+" not in text and not any(is_lost(text[span.start : span.end]) for span in found)


def readable(text: str) -> str:
    """The text with a question mark for each lost byte."""
    return _LOST.sub("?", text)
