"""Decodes text from MySQL's character sets, but only from those in which encoding the decoded text returns the same
bytes.

``DIFFERENCES`` lists the characters that MySQL's character sets map in another way than Python's codecs. Each key is a
code in hexadecimal (one or more bytes). The value contains the character with this code, and the characters with the
following codes. A question mark means that MySQL assigns no character to the code, or assigns an ASCII character to it,
which would mean something else in a statement. A test compares every character with the server's answer.
"""

import codecs
from collections.abc import Callable, Sequence

__all__ = [
    "DIFFERENCES",
    "TextDecoder",
    "bytes_of_character",
    "latin1_decode",
    "latin1_encode",
    "member_texts",
    "text_decoder",
]

DIFFERENCES = {
    "armscii8": {
        "a1": ("❁§։??»«—?՝??՟…՜՛՞ԱաԲբԳգԴդԵեԶզԷէԸըԹթԺժԻիԼլԽխԾծԿկՀհՁձՂղՃճՄմՅյՆնՇշՈոՉչՊպՋջՌռՍսՎվՏտՐրՑցՒւՓփՔքՕօՖֆ’?"),
    },
    "big5": {
        "a15a": "\ufffd",
        "a1c3": "\ufffd",
        "a1c5": "\ufffd",
        "a1fe": "\ufffd",
        "a240": "\ufffd",
        "a2cc": "\ufffd",
        "a2ce": "\ufffd",
        "f9d6": "\u7881\u92b9\u88cf\u58bb\u6052\u7ca7\u5afa",
    },
    "cp1256": {
        "8a": "?",
        "8f": "?",
        "98": "?",
        "9a": "?",
        "9f": "?",
        "aa": "?",
        "c0": "?",
        "ff": "?",
    },
    "cp866": {
        "fc": "ⁿ²",
    },
    "cp932": {
        "80": "?",
        "a0": "?",
        "fd": "???",
    },
    "dec8": {
        "a4": "?",
        "a6": "?",
        "a8": "¤",
        "ac": "????",
        "b4": "?",
        "b8": "?",
        "be": "?",
        "d0": "?",
        "d7": "Œ",
        "dd": "Ÿ?",
        "f0": "?",
        "f7": "œ",
        "fd": "ÿ??",
    },
    "eucjpms": {
        "8fa2b7": "\uff5e",
        "8fa2c3": "\uffe4",
        "8ff3f3": "ⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅠⅡ",
        "8ff4a1": (
            "ⅢⅣⅤⅥⅦⅧⅨⅩ\uff07\uff02\u3231№℡\u70bb\u4efc\u50f4\u51ec\u5307\u5324\ufa0e\u548a\u5759\ufa0f"
            "\ufa10\u589e\u5bec\u5cf5\u5d53\ufa11\u5fb7\u6085\u6120\u654e\u663b\u6665\ufa12\uf929"
            "\u6801\ufa13\ufa14\u6a6b\u6ae2\u6df8\u6df2\u7028\ufa15\ufa16\u7501\u7682\u769e\ufa17"
            "\u7930\ufa18\ufa19\ufa1a\ufa1b\u7ae7\ufa1c\ufa1d\u7da0\u7dd6\ufa1e\u8362\ufa1f\u85b0"
            "\ufa20\ufa21\u8807\ufa22\u8b7f\u8cf4\u8d76\ufa23\ufa24\ufa25\u90de\ufa26\u9115\ufa27"
            "\ufa28\u9592\uf9dc\ufa29\u973b\u974d\u9751\ufa2a\ufa2b\ufa2c\u999e\u9ad9\u9b72\ufa2d"
            "\u9ed1"
        ),
    },
    "gb18030": {
        "a8bc": "ḿ",
        "8135f437": "\ue7c7",
    },
    "geostd8": {
        "80": "€?‚?„…†‡?‰?‹?????‘’“”•–—???›????",
        "c0": "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ???????????????????????№??",
    },
    "greek": {
        "a1": "ʽʼ",
        "a4": "??",
        "aa": "?",
    },
    "hebrew": {
        "af": "‾",
    },
    "keybcs2": {
        "80": "Č",
        "83": "ď",
        "85": "ĎŤčěĚĹÍľĺ",
        "8f": "Á",
        "91": "žŽ",
        "95": "ÓůÚý",
        "9b": "ŠĽÝŘť",
        "a4": "ňŇŮÔšřŕŔ¼¡",
        "b5": "╡╢╖╕",
        "bd": "╜╛",
        "c6": "╞╟",
        "cf": "╧╨╤╥╙╘╒╓╫╪",
        "dd": "▌▐",
        "e0": "α",
        "e2": "ΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡",
        "f7": "≈",
        "f9": "∙·√ⁿ²",
    },
    "koi8u": {
        "95": "•",
    },
    "sjis": {
        "815f": "?",
    },
    "tis620": {
        "a0": "\ufffd",
        "db": "\ufffd\ufffd\ufffd\ufffd",
        "fc": "\ufffd\ufffd\ufffd\ufffd",
    },
    "ujis": {
        "a1c0": "?",
    },
}


TextDecoder = Callable[[bytes], str]

# MySQL's latin1 is cp1252, except for the five bytes that cp1252 does not define. These bytes are the C1 controls with
# the same number (MySQL manual, "West European Character Sets"). So all 256 bytes are different characters.
_LATIN1_TABLE = "".join(
    bytes([byte]).decode("latin-1" if byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else "cp1252") for byte in range(256)
)
_LATIN1_ENCODING = codecs.charmap_build(_LATIN1_TABLE)


def latin1_decode(data: bytes) -> str:
    """Decodes ``data`` from MySQL's latin1. Never fails, since every byte is a character."""
    return codecs.charmap_decode(data, "strict", _LATIN1_TABLE)[0]


def latin1_encode(text: str) -> bytes:
    """Encodes ``text`` in MySQL's latin1. Raises UnicodeEncodeError for a character that latin1 lacks."""
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
    """Returns the maximum number of bytes of a character in a MySQL character set (MAXLEN in
    information_schema.CHARACTER_SETS).
    """
    return _WIDEST.get(charset, 1)


def text_decoder(charset: str) -> TextDecoder | None:
    """Returns the decoder for a MySQL character set; None if text in this character set must be kept as raw bytes."""
    return _DECODERS.get(charset)


def member_texts(members: Sequence[bytes], charset: str) -> list[str] | None:
    """Decodes the members of an ENUM or SET. Returns None if a member cannot be decoded exactly; only numbers can then
    identify the members.

    ``ALTER TABLE … CONVERT TO CHARACTER SET`` leaves the bytes of members as they are (MySQL 9.7), even if they are
    invalid in the new character set.
    """
    decode = text_decoder(charset)
    if decode is None:
        return None
    try:
        return [decode(member) for member in members]
    except UnicodeDecodeError:
        return None
