"""Text of every character set that a client can have: character by character, and back to the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.model.client_text import blanks, client_decode, client_encode, units

CHARSETS = [
    "armscii8", "ascii", "big5", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "cp932",
    "dec8", "eucjpms", "euckr", "gb18030", "gb2312", "gbk", "geostd8", "greek", "hebrew", "hp8", "keybcs2", "koi8r",
    "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman", "sjis", "tis620", "ujis", "utf8mb3",
    "utf8mb4",
]  # fmt: skip


@given(st.binary(), st.sampled_from(CHARSETS))
def test_one_character_for_each_unit(data: bytes, charset: str) -> None:
    text, cut = client_decode(data, charset), units(data, charset)
    assert b"".join(cut) == data
    assert len(cut) == len(text)
    for unit, char in zip(cut, text, strict=True):
        # A mark is one byte of ASCII, and such a byte is nothing else.
        assert char.isascii() == (len(unit) == 1 and unit.isascii())


@given(st.binary(max_size=20), st.sampled_from(CHARSETS))
def test_what_was_decoded_is_encoded_to_the_same_text(data: bytes, charset: str) -> None:
    text = client_decode(data, charset)
    lost = any("\udc00" <= char <= "\udcff" for char in text)
    if lost and charset not in ("utf8mb3", "utf8mb4", "binary"):
        with pytest.raises(ValueError, match="letters that"):
            client_encode(text, charset)
    else:
        assert client_decode(client_encode(text, charset), charset) == text


@given(st.text(), st.sampled_from(CHARSETS))
def test_nothing_is_encoded_to_another_text(text: str, charset: str) -> None:
    try:
        data = client_encode(text, charset)
    except ValueError:
        return
    assert client_decode(data, charset) == text


def test_letters_of_several_bytes() -> None:
    assert client_decode(b"\x95\x5c`\x81\x60`\x81", "sjis") == "表`〜`\udc81"
    assert client_decode(b"\x81\x30\x81\x30\x95\x60\x81\x35\xf4\x37", "gb18030") == "\x80昤\ue7c7"
    assert client_decode(b"\x8f\xf4\xfe\xad\xa1\xf5\xa1\x8e\xb1\x8f\xf5\xa1", "eucjpms") == "黑①\ue000ｱ\ue3ac"


@pytest.mark.parametrize("charset", ["utf16", "ucs2", "utf32", "klingon", ""])
def test_what_no_client_has(charset: str) -> None:
    with pytest.raises(ValueError, match="no client has"):
        client_decode(b"a\xe4", charset)


def test_swe7_has_letters_instead_of_marks() -> None:
    assert client_decode(b"DROP TABLE `a`", "swe7") == "DROP TABLE `a`"
    for data in (b"[", b"a\\b", b"``", b"u@h", b"~", b"\xe4"):
        with pytest.raises(ValueError, match=r"marks|characters"):
            client_decode(data, "swe7")


def test_what_the_parser_takes_for_blank() -> None:
    assert blanks("latin1") == ("\xa0", "")
    assert blanks("cp866") == ("\xa0", "")
    assert blanks("macroman").dashes == "ÄÀÂ"
    assert blanks("utf8mb4") == blanks("gbk") == ("", "")
