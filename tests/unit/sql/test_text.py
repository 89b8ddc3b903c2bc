"""Statements of which bytes are no text: what they name is read all the same, and what is lost is known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.sql.ddl import Effect, classify
from cdc.sql.text import is_lost, only_comments_lost, readable, statement_text

QUOTING = {"ansi_quotes": False, "backslash_escapes": True}
DDL = st.sampled_from(["CREATE TABLE d.a (i INT) ", "DROP TABLE d.a ", "ALTER TABLE d.a ADD b INT "])


@given(st.binary(), st.sampled_from(["utf8mb4", "utf8mb3", "cp1251", "binary"]))
def test_no_ascii_is_lost_or_made_up(data: bytes, charset: str) -> None:
    text, problem = statement_text(data, charset)
    assert [character for character in text if character.isascii()] == [chr(byte) for byte in data if byte < 128]
    assert bool(problem) == is_lost(text)
    assert not is_lost(readable(text))


@given(DDL, st.binary(), st.sampled_from(["utf8mb4", "latin2", "gbk", "sjis"]))
def test_a_comment_hides_nothing_and_may_be_lost(ddl: str, data: bytes, charset: str) -> None:
    data = data.replace(b"*", b"")
    comment = b" /* " + data + b"*/"
    text, _ = statement_text(ddl.encode() + comment + b" -- " + data.replace(b"\n", b""), charset)
    assert classify(text, database="", **QUOTING) == classify(ddl, database="", **QUOTING)
    assert only_comments_lost(text, **QUOTING)


@pytest.mark.parametrize(
    "statement",
    [
        b"CREATE TABLE d.a (i INT COMMENT '\xfc')",
        b"CREATE TABLE d.a (i INT) /*!50000 COMMENT = '\xfc' */",
        b"CREATE TABLE d.a SELECT /*+ NO_MERGE(\xfc) */ 1",
        b"CREATE TABLE d.a (i INT, `\xfc` INT) -- \xfc",
        b"CREATE TABLE d.a (i INT COMMENT '/* \xfc */')",
    ],
)
def test_what_is_lost_outside_of_comments_matters(statement: bytes) -> None:
    text, problem = statement_text(statement, "utf8mb4")
    assert "in utf8mb4 cannot be read" in problem
    kind, effects = classify(text, database="", **QUOTING)
    assert (kind, [effect[:4] for effect in effects]) == ("ddl", [("CreateTable", "d", "a", None)])
    assert not only_comments_lost(text, **QUOTING)


@pytest.mark.parametrize("charset", ["gbk", "sjis", "cp932", "gb18030"])
def test_a_second_byte_that_looks_like_ascii_is_none(charset: str) -> None:
    """``\\x95\\x5c`` is one character in each of these, not a backslash that escapes the quote after it."""
    text, problem = statement_text(b"DROP TABLE d.a /* '\x95\x5c' */, d.b", charset)
    assert problem
    text, _ = statement_text(b"ALTER TABLE d.a COMMENT '\x95\x5c', RENAME b", charset)
    assert classify(text, database="d", **QUOTING)[1][-1] == Effect("RenameTable", "d", "a", to=("d", "b"))
