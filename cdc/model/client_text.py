"""Decodes the text of statements as the server does, character by character, for each character set of a client.

The server's parser reads the bytes of a multi-byte character together, even if its second byte looks like an ASCII
punctuation mark. The parser reads all other bytes one by one. The decoded text has one character for each multi-byte
character, and one for each other byte. Bytes to which MySQL assigns no character are lost: they become a lone surrogate
(U+DC00 plus the first byte), which valid text never contains.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import NamedTuple

from cdc.model.charset import DIFFERENCES, latin1_decode, latin1_encode

__all__ = [
    "NO_BLANKS",
    "UTF8",
    "Blanks",
    "blanks",
    "client_decode",
    "client_encode",
    "decoded",
    "sent",
    "stored_name",
    "units",
]

UTF8 = frozenset({"utf8mb4", "utf8mb3", "utf8", "binary"})
"""The character sets in which names are UTF-8. With ``binary`` the server reads the bytes of names unchanged."""


class Blanks(NamedTuple):
    """The characters outside of ASCII that the server's parser treats like a blank. ``spaces`` separate words.
    ``dashes`` begin a comment if they follow ``--``.
    """

    spaces: str = ""
    dashes: str = ""


NO_BLANKS = Blanks()
# Maps character sets to Python's codecs; DIFFERENCES corrects the codecs that differ from MySQL's character sets.
_CODECS = {
    "armscii8": "latin-1", "ascii": "ascii", "big5": "big5", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256",
    "cp1257": "cp1257", "cp850": "cp850", "cp852": "cp852", "cp866": "cp866", "cp932": "cp932", "dec8": "latin-1",
    "eucjpms": "euc_jp", "euckr": "cp949", "gb18030": "gb18030", "gb2312": "gb2312", "gbk": "gbk",
    "geostd8": "latin-1", "greek": "iso8859-7", "hebrew": "iso8859-8", "hp8": "hp-roman8", "keybcs2": "cp852",
    "koi8r": "koi8-r", "koi8u": "koi8-u", "latin2": "iso8859-2", "latin5": "iso8859-9", "latin7": "iso8859-13",
    "macce": "mac-latin2", "macroman": "mac-roman", "sjis": "shift_jis", "tis620": "tis-620", "ujis": "euc_jp",
}  # fmt: skip
_EUC = rb"[\xa1-\xfe][\xa1-\xfe]|\x8e[\xa1-\xdf]|\x8f[\xa1-\xfe][\xa1-\xfe]"
_SHIFTED = rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]"
# Regular expressions for the multi-byte characters of character sets (``ismbchar`` in MySQL's strings/ctype-*.cc).
_CHARACTERS = {
    "big5": rb"[\xa1-\xf9][\x40-\x7e\xa1-\xfe]",
    "cp932": _SHIFTED,
    "eucjpms": _EUC,
    "euckr": rb"[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe]",
    "gb18030": rb"[\x81-\xfe](?:[\x40-\x7e\x80-\xfe]|[\x30-\x39][\x81-\xfe][\x30-\x39])",
    "gb2312": rb"[\xa1-\xf7][\xa1-\xfe]",
    "gbk": rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]",
    "sjis": _SHIFTED,
    "ujis": _EUC,
}
# The bytes that the server's parser treats as spaces (_SPACES) and as control characters (_CONTROLS). A control
# character begins a comment after two dashes. Both tables were measured on servers.
_SPACES = {
    **dict.fromkeys(
        ("armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7"), b"\xa0"
    ),
    **dict.fromkeys(("cp852", "cp866", "keybcs2"), b"\xff"),
}
_CONTROLS = {
    "cp1250": b"\x80\x81\x83\x88\x90\x98",
    "cp850": b"\xff",
    "hebrew": b"\xfd\xfe",
    "hp8": bytes(range(0x80, 0xA1)) + b"\xb1\xb2\xf2\xf3\xf4\xf5\xff",
    "latin7": b"\x81\x83\x88\x8a\x8c\x90\x98\x9a\x9c\x9f\xa1\xa5",
    "macroman": b"\x80\xcb\xe5",
}
# In swe7 the codes of these punctuation marks are letters, but the server's parser reads some of them as marks.
_SWE7 = re.compile(rb"[@\[\\\]^{|}~\x7f]|``")
_NOT_IN_NAMES = re.compile("[\udc00-\udcff\U00010000-\U0010ffff]")
# The first byte of a UTF-8 character determines its length: two bytes if the first byte is at least the first of these
# values, three bytes from the second value on, and four bytes from the third value on.
_LEADS = (0xC2, 0xE0, 0xF0)
# In the euc character sets, characters whose first byte is at least this value are for private use. There are 94
# characters for each first byte.
_USER_DEFINED = 0xF5
_PRIVATE = {2: 0xE000, 3: 0xE3AC}


def client_decode(data: bytes, charset: str) -> str:
    """Decodes a statement. Raises ValueError if it is unknown how the server reads the statement."""
    if charset in UTF8:
        return data.decode("utf-8", "surrogateescape")
    if charset == "latin1":
        return latin1_decode(data)
    if charset == "swe7" and data.isascii():
        if _SWE7.search(data):
            raise ValueError("letters that look like marks")
        return data.decode("ascii")
    if charset not in _CODECS:
        raise ValueError("no client has this character set" if charset != "swe7" else "bytes that are no characters")
    return data.decode("ascii") if data.isascii() else "".join(map(_table(charset).__getitem__, units(data, charset)))


_WIDE = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
_SURROGATES = re.compile("[\ud800-\udfff]")


def decoded(data: bytes, charset: str) -> str:
    """Decodes a value of any character set for a reader: U+FFFD stands for bytes without a character."""
    if charset in _WIDE:
        return data.decode(_WIDE[charset], "replace")
    try:
        return _SURROGATES.sub("\ufffd", client_decode(data, charset))
    except ValueError:
        return data.decode("utf-8", "replace")


def client_encode(text: str, charset: str) -> bytes:
    """Encodes ``text`` so that the server reads the same text. Raises ValueError if no bytes decode to this text."""
    if charset in UTF8:
        return text.encode("utf-8", "surrogateescape")
    if charset == "latin1":
        return latin1_encode(text)
    if text.isascii():
        data = text.encode("ascii")
    else:
        data = b"".join(char.encode("ascii") if char.isascii() else _encoded(char, charset) for char in text)
    if client_decode(data, charset) != text:
        raise ValueError(f"letters that {charset} does not have")
    return data


def sent(text: str, charset: str) -> bytes:
    """Returns the bytes that a consumer sends to the follower for a statement whose record contains ``text`` but not
    the statement's original bytes: in latin1 if ``charset`` is latin1, otherwise in UTF-8. Raises ValueError for
    characters that latin1 lacks."""
    return latin1_encode(text) if charset == "latin1" else text.encode()


def stored_name(name: str, charset: str) -> str:
    """Returns ``name`` as the server stores it. Only names in a statement in utf8mb4 are changed.

    The server converts names from utf8mb4 to utf8mb3: it replaces each character beyond U+FFFF and each invalid byte by
    a question mark. If the first byte of a character announces more bytes than the name still has, the name ends before
    this byte.
    """
    data, stored = name.encode("utf-8", "surrogateescape"), ""
    if charset != "utf8mb4" or not _NOT_IN_NAMES.search(name):
        return name
    while data and len(data) >= (length := 1 + sum(data[0] >= least for least in _LEADS)):
        char = _decoded(data[:length], "utf-8", microsoft=False)
        stored += char if char and char <= "\uffff" else "?"
        data = data[length if char else 1 :]
    return stored


def units(data: bytes, charset: str) -> list[bytes]:
    """Splits ``data`` into parts; each part contains the bytes of one character that ``client_decode`` returns."""
    if charset in UTF8:
        return [char.encode("utf-8", "surrogateescape") for char in client_decode(data, charset)]
    return _units(charset)(data)


@cache
def blanks(charset: str) -> Blanks:
    """Returns the characters that the server's parser treats like a blank in a statement in this character set."""
    spaces, controls = _SPACES.get(charset, b""), _CONTROLS.get(charset, b"")
    return Blanks(client_decode(spaces, charset), client_decode(controls, charset)) if spaces or controls else NO_BLANKS


@cache
def _units(charset: str) -> Callable[[bytes], list[bytes]]:
    several = _CHARACTERS.get(charset)
    return re.compile((several + b"|." if several else b"."), re.DOTALL).findall


class _Table(dict[bytes, str]):
    """Maps the bytes of a character to the character; adds each entry when it is first needed."""

    def __init__(self, charset: str) -> None:
        self._charset = charset
        for first, text in DIFFERENCES.get(charset, {}).items():
            at = int(first, 16)
            for number, char in enumerate(text, start=at):
                unit = number.to_bytes(len(first) // 2, "big")
                self[unit] = _lost(unit) if char == "?" else char

    def __missing__(self, unit: bytes) -> str:
        char = _private(unit) if self._charset in ("ujis", "eucjpms") else ""
        char = char or _decoded(unit, _CODECS[self._charset], microsoft=self._charset == "eucjpms")
        # Python decodes some multi-byte characters to ASCII punctuation marks; the server's parser does not read them
        # as such.
        self[unit] = char if len(char) == 1 and char.isascii() == unit.isascii() else _lost(unit)
        return self[unit]


_table = cache(_Table)


def _lost(unit: bytes) -> str:
    return chr(0xDC00 + unit[0])


def _private(unit: bytes) -> str:
    """Returns the private use character for these bytes in an euc character set; empty if there is none."""
    if len(unit) == 1 or unit[-2] < _USER_DEFINED:
        return ""
    return chr(_PRIVATE[len(unit)] + (unit[-2] - _USER_DEFINED) * 94 + unit[-1] - 0xA1)


def _decoded(unit: bytes, codec: str, *, microsoft: bool) -> str:
    """Decodes a character with Python's codec; the result is empty if the codec fails.

    Python has no codec for eucjpms. With ``microsoft`` its bytes are first converted to cp932, which numbers the rows
    and cells of the same table of characters in another way.
    """
    if microsoft and len(unit) == 2 and unit[0] != 0x8E:
        row, cell = unit[0] - 0xA1, unit[1] - 0xA1
        lead = row // 2 + (0x81 if row < 62 else 0xC1)
        unit, codec = bytes([lead, cell + 0x9F if row % 2 else cell + 0x40 + (cell >= 63)]), "cp932"
    try:
        return unit.decode(codec)
    except UnicodeDecodeError:
        return ""


def _encoded(char: str, charset: str) -> bytes:
    unit = _reverse(charset).get(char)
    if unit is None:
        if charset != "gb18030":
            raise ValueError(f"letters that {charset} does not have")
        unit = char.encode("gb18030", "replace")  # the caller decodes the result again and compares it
    return unit


@cache
def _reverse(charset: str) -> dict[str, bytes]:
    """Maps characters to bytes. The map of gb18030 lacks most characters of four bytes, because there are too many of
    them.
    """
    high = range(0x80, 0x100)
    found = [bytes([byte]) for byte in high]
    found += [unit for unit in _table(charset) if len(unit) == 4]
    if charset in _CHARACTERS:
        found += [bytes(pair) for pair in product(high, range(0x40, 0x100))]
    if _CHARACTERS.get(charset) == _EUC:
        found += [b"\x8f" + bytes(pair) for pair in product(high, high)]
    whole = [unit for unit in found if units(unit, charset) == [unit]] if charset in _CODECS else []
    return {char: unit for unit in reversed(whole) if not "\udc00" <= (char := _table(charset)[unit]) <= "\udcff"}
