"""Statements as the server reads them, in any client's character set; what is lost in a name is known."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.model.client_text import stored_name
from cdc.sql.statement import Effect, classify
from cdc.sql.text import StatementText, as_stored, is_lost, readable, statement_text

QUOTING: dict[str, Any] = {"ansi_quotes": False, "backslash_escapes": True}
DDL = st.sampled_from(["CREATE TABLE d.a (i INT) ", "DROP TABLE d.a ", "ALTER TABLE d.a ADD b INT "])


def read(data: bytes, charset: str, *, session_bound: bool = False) -> StatementText:
    return statement_text(data, charset, session_bound=session_bound, **QUOTING)


def effects(text: StatementText) -> tuple[Effect, ...]:
    return as_stored(classify(text.known, database="d", blanks=text.blanks, **QUOTING)[1], text.charset)


@given(st.binary(), st.sampled_from(["utf8mb4", "utf8mb3", "cp1251", "binary"]))
def test_no_ascii_is_lost_or_made_up(data: bytes, charset: str) -> None:
    text = read(data, charset)
    assert not text.problem
    assert [character for character in text.known if character.isascii()] == [chr(byte) for byte in data if byte < 128]
    assert not is_lost(readable(text.known))


@given(DDL, st.binary(), st.sampled_from(["utf8mb4", "latin2", "gbk", "sjis", "gb18030", "eucjpms"]))
def test_a_comment_hides_nothing(ddl: str, data: bytes, charset: str) -> None:
    data = data.replace(b"*", b"")
    comment = b" /* " + data + b"*/"
    text = read(ddl.encode() + comment + b" -- " + data.replace(b"\n", b""), charset)
    assert effects(text) == classify(ddl, database="", **QUOTING)[1]
    assert not text.unreadable(effects(text))


@pytest.mark.parametrize(
    ("data", "charset", "has_bytes"),
    [
        (b"DROP TABLE a /* x */", "gbk", False),
        ("DROP TABLE a /* ж */".encode(), "utf8mb4", False),
        (b"DROP TABLE a /* \xe9\x81 */", "latin1", False),
        (b"DROP TABLE a /* \xe9 */", "utf8mb4", True),
        (b"DROP TABLE a /* \xe9 */", "cp1251", True),
        (b"DROP TABLE a /* \x95\x5c */", "sjis", True),
    ],
)
def test_the_bytes_go_along_where_the_text_does_not_give_them(data: bytes, charset: str, has_bytes: bool) -> None:
    assert read(data, charset).exact == (data if has_bytes else None)


@pytest.mark.parametrize(
    ("statement", "stops"),
    [
        (b"CREATE TABLE d.a (i INT COMMENT '\x98')", False),
        (b"CREATE TABLE d.a (i INT, `\x98` INT) -- \x98", False),
        (b"CREATE TABLE d.`\x98` (i INT)", True),
        (b"RENAME TABLE d.a TO `\x98`.a", True),
        (b"CREATE TABLE d.a LIKE `\x98`.a", False),  # which is no object that it affects
    ],
)
def test_what_is_lost_matters_in_names_only(statement: bytes, stops: bool) -> None:
    text = read(statement, "cp1251")
    assert text.exact == statement
    assert ("in cp1251 cannot be read" in text.unreadable(effects(text))) is stops
    # Of those in utf8mb4 it is known what the server makes.
    assert not read(statement, "utf8mb4").unreadable(effects(read(statement, "utf8mb4")))


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        (b"\xc3\xa9", "é"),
        (b"\xc1\xc3\xa9\x98a", "?é?a"),
        (b"\xf0\x9f\x90\xb9\xef\xbf\xbd", "?\ufffd"),  # a character beyond utf8mb3, and one within
        (b"\xe3\x81\xc3\xa9", "??é"),
        (b"a\xe3\x81", "a"),  # the server waits for more bytes, and takes what it has
        (b"a\xe3b", "a"),
        (b"a\xffbcd", "a?bcd"),
        (b"a\xffbc", "a"),
        (b"\x8e\xc6\x8e\xce\x8e\xdd\x8e\xba\x8e\xde", "?\u018e\u038e\u074e??"),
    ],
)
def test_what_a_server_makes_of_a_name(name: bytes, stored: str) -> None:
    text = read(b"RENAME TABLE d.a TO `" + name + b"`.`" + name + b"`", "utf8mb4")
    assert effects(text) == (Effect("RenameTable", "d", "a", to=(stored, stored)),)
    text = read(b"CREATE TABLE `" + name + b"` LIKE `" + name + b"`", "utf8mb4")
    assert effects(text) == (Effect("CreateTable", "d", stored, like=("d", stored)),)


@given(st.text(), st.sampled_from(["utf8mb3", "utf8mb4"]))
def test_a_name_that_the_server_can_store_stays(name: str, charset: str) -> None:
    kept = "".join(char for char in name if char <= "\uffff" and not is_lost(char))
    assert stored_name(kept, charset) == kept


@pytest.mark.parametrize("charset", ["gbk", "sjis", "cp932", "gb18030", "big5"])
def test_a_second_byte_that_looks_like_ascii_is_none(charset: str) -> None:
    """It is one character in each of these, not a backslash that escapes the quote after it."""
    first = b"\xb5" if charset == "big5" else b"\x95"
    text = read(b"ALTER TABLE d.a COMMENT '" + first + b"\x5c', RENAME b", charset)
    assert effects(text)[-1] == Effect("RenameTable", "d", "a", to=("d", "b"))


def test_no_byte_that_is_not_ascii_becomes_a_quote_or_backslash() -> None:
    for charset, quote in (
        ("armscii8", b"\xff"),
        ("sjis", b"\x81\x5f"),
        ("ujis", b"\xa1\xc0"),
        ("ujis", b"\x8f\xa2\xb7"),
    ):
        text = read(b"ALTER TABLE d.a COMMENT '" + quote + b"', RENAME b", charset)
        assert effects(text)[-1] == Effect("RenameTable", "d", "a", to=("d", "b"))
        named = read(b"DROP TABLE `" + quote + b"`", charset)
        assert "a name in it" in named.unreadable(effects(named))


def test_a_space_of_the_character_set_ends_a_name() -> None:
    for charset, space in (("latin1", b"\xa0"), ("cp866", b"\xff"), ("latin7", b"\xa0")):
        assert effects(read(b"DROP TABLE a" + space + b", b", charset))[0].name == "a"
    assert effects(read(b"DROP TABLE a\xff, b", "koi8r"))[0].name == "aЪ"
    # Where it is a control character, two dashes before it begin a comment.
    assert [each.name for each in effects(read(b"DROP TABLE a --\x80, b\n, c", "cp1250"))] == ["a", "c"]
    assert [each.name for each in effects(read(b"DROP TABLE a --\x80, b\n, c", "cp1251"))] == ["a"]


@pytest.mark.parametrize("charset", ["utf16", "ucs2", "klingon", "swe7"])
def test_what_is_not_known_stops(charset: str) -> None:
    text = read(b"DROP TABLE d.a[\xe4", charset)
    assert f"in {charset} cannot be read" in text.unreadable(())
    assert text.misreads_marks is (charset == "swe7")


def test_swe7_is_read_without_its_letters() -> None:
    assert not read(b"DROP TABLE `d`.a", "swe7").problem
    assert read(b"DROP TABLE `d`.`a[`", "swe7").problem


def test_a_word_is_a_keyword_in_ascii_only() -> None:
    """Capitals of ı and ſ are I and S; and a letter beyond the first 65536 is part of a word."""
    assert effects(read("ALTER TABLE d.a RENAME ındex".encode(), "utf8mb4"))[-1].to == ("d", "ındex")
    assert effects(read("DROP TABLE a🐹b, ſ".encode(), "utf8mb4"))[0].name == "a?b"
    # From other character sets the server gives such a letter another name, which is not known.
    text = read("DROP TABLE a🐹b".encode("gb18030"), "gb18030")
    assert "a name in it" in text.unreadable(effects(text))
