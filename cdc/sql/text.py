"""Decodes the text of a logged statement, and decides in which form a record contains the text. It is possible that
some bytes of the text encode no character.

In comments and strings, MySQL accepts bytes that are invalid in the session's character set. A follower receives the
same bytes, so invalid bytes matter only in names. If it is not known how the server reads a statement, every character
outside of ASCII counts as lost. The objects that the statement may affect can still be found, because punctuation marks
and keywords are ASCII in every character set.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cdc.model.client_text import UTF8, Blanks, blanks, client_decode, client_encode, sent, stored_name, units
from cdc.sql.effects import Effect
from cdc.sql.tokens import Span, spans

__all__ = ["StatementText", "as_stored", "in_one_charset", "is_lost", "readable", "statement_text"]

_LOST = re.compile("[\udc00-\udcff]")
_BEYOND = re.compile("[\U00010000-\U0010ffff]")
_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})
_LIKE_ASCII = "swe7"


@dataclass(frozen=True, slots=True)
class StatementText:
    """A statement in one character set. ``known`` is its text, with lone surrogates for lost bytes (bytes that could
    not be decoded).

    ``problem`` describes why the server's reading of the statement is uncertain; it is empty if it is certain.
    """

    known: str
    data: bytes
    charset: str
    problem: str = ""

    @property
    def blanks(self) -> Blanks:
        return blanks(self.charset)

    @property
    def exact(self) -> bytes | None:
        """The bytes to send to a follower; None if they can be restored from the text and the character set in the
        record."""
        return None if _sent(readable(self.known), self.charset) == self.data else self.data

    @property
    def misreads_marks(self) -> bool:
        """Whether even ASCII characters may have another meaning, so that no name in the text is certain."""
        return bool(self.problem) and self.charset == _LIKE_ASCII

    def unreadable(self, effects: Iterable[Effect]) -> str:
        """Returns the reason why the statement can't be sent to followers; empty if it can be sent. ``effects`` are the
        effects of the text ``known``.
        """
        if self.problem:
            return f"a statement's text in {self.charset} cannot be read: {self.problem}"
        names = [name for each in effects for name in (each.database, each.name or "", *(each.to or ()))]
        if any(is_lost(name) or (self.charset not in UTF8 and _BEYOND.search(name)) for name in names):
            return f"a statement's text in {self.charset} cannot be read: a name in it has bytes that are no letters"
        return ""


def statement_text(
    data: bytes, charset: str, *, session_bound: bool, ansi_quotes: bool, backslash_escapes: bool
) -> StatementText:
    """Decodes a statement that was logged from a session with this character set.

    ``session_bound`` is true if the leader marked the statement as depending on its session.
    """
    if data.isascii() and charset != _LIKE_ASCII and charset not in _WIDE:
        return StatementText(data.decode("ascii"), data, charset)
    try:
        whole, spoken = in_one_charset(
            data, charset,
            session_bound=session_bound, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes,
        )  # fmt: skip
        return StatementText(client_decode(whole, spoken), whole, spoken)
    except ValueError as error:
        return StatementText(_ascii_only(data, charset), data, charset, str(error))


def as_stored(effects: Iterable[Effect], charset: str) -> tuple[Effect, ...]:
    """Returns the ``effects`` of a statement in this character set. All names in them are as the server stores them."""

    def stored(names: tuple[str, str] | None) -> tuple[str, str] | None:
        return names and (stored_name(names[0], charset), stored_name(names[1], charset))

    return tuple(
        effect._replace(
            database=stored_name(effect.database, charset),
            name=effect.name and stored_name(effect.name, charset),
            to=stored(effect.to),
            like=stored(effect.like),
            filled=stored_name(effect.filled, charset),
            dropped=tuple(stored_name(column, charset) for column in effect.dropped),
        )
        for effect in effects
    )


def _ascii_only(data: bytes, charset: str) -> str:
    """Decodes the text. Each character outside of ASCII becomes a lone surrogate, which stands for bytes that could not
    be decoded.
    """
    try:
        cut = units(data, charset)
    except ValueError:
        cut = [bytes([byte]) for byte in data]
    return "".join(unit.decode("ascii") if unit.isascii() else chr(0xDC00 + unit[0]) for unit in cut)


def _sent(text: str, charset: str) -> bytes | None:
    """Returns the result of ``sent``; None if the character set lacks a character of the text."""
    try:
        return sent(text, charset)
    except ValueError:
        return None


def is_lost(name: str) -> bool:
    """Whether bytes of ``name`` are lost, so that ``name`` may stand for any name."""
    return _LOST.search(name) is not None


def readable(text: str) -> str:
    """Replaces each lost byte in the text by a question mark."""
    return _LOST.sub("?", text)


# Converts a logged statement to one character set. The server writes parts of some statements in UTF-8, even if the
# session has another character set.
#
# These parts were found in the binlogs of MySQL 9.7, in statements of a session in another character set:
#
# - the definition of a table that is created from a query, from a temporary table, or with a generated invisible key;
# - the head of a view, up to its query; the definer of a trigger or event;
# - the definer and the name of a routine, and, after the routine's parameters, the type that it returns, its comment,
#   and its body in another language than SQL;
# - the definition of a library.
#
# MySQL's own replicas read these parts in the session's character set, so the names of such objects differ there. In a
# DROP TABLE that the server itself generates, it doubles the second byte of a gb18030 character if that byte is the
# code of a backtick.

_NAME = r"""(?:`(?:[^`]|``)*`|"(?:[^"]|"")*"|[^\s`"'(),.@]+)"""
_FULL_NAME = rf"(?:{_NAME}\.)?{_NAME}"
_DEFINER = rf"DEFINER={_NAME}(?:@{_NAME})?"


def _pattern(text: str) -> re.Pattern[bytes]:
    return re.compile(text.encode(), re.DOTALL)


_VIEW = _pattern(
    rf"(?:CREATE(?: OR REPLACE)?|ALTER) ALGORITHM=\w+ {_DEFINER} SQL SECURITY \w+ (?:JSON RELATIONAL DUALITY )?"
    rf"VIEW (?:IF NOT EXISTS )?{_FULL_NAME}(?:\({_NAME}(?:, ?{_NAME})*\))? AS "
)
_ROUTINE = _pattern(rf"CREATE {_DEFINER} (?:PROCEDURE|FUNCTION) (?:IF NOT EXISTS )?{_FULL_NAME}(?=\()")
_AFTER_PARAMETERS = _pattern(
    r"(?: RETURNS (?:'(?:[^']|'')*'|[^'\n])*)?\n(?:    (?:(?:LANGUAGE|USING) [^\n]*|NO SQL|CONTAINS SQL|READS SQL DATA|"
    r"MODIFIES SQL DATA|DETERMINISTIC|SQL SECURITY INVOKER|COMMENT '(?:[^'\\]|\\.|'')*')\n)*"
)
_OTHER_LANGUAGE = b"\n    LANGUAGE "
_WITH_DEFINER = _pattern(rf"CREATE {_DEFINER} ")
_TABLE = _pattern(rf"CREATE TABLE (?:IF NOT EXISTS )?{_FULL_NAME} \(\n  {_NAME} ")
_DROP = _pattern(r"DROP (?:TEMPORARY )?TABLE .* /\* generated by server \*/$")
_LIBRARY = b"CREATE LIBRARY "
_GENERATED_KEY = _pattern(
    r"[^\n]* \(\n  [`\"]?my_row_id[`\"]? bigint unsigned NOT NULL AUTO_INCREMENT /\*!80023 INVISIBLE \*/,\n"
)
# In these character sets the second byte of a character may be a backslash. The server does not double it in the
# literals that it prints.
_UNSAFE = frozenset({"big5", "cp932", "gb18030", "gbk", "sjis"})
_UNCERTAIN = "it is not certain whether the server itself wrote the text, in UTF-8"


def in_one_charset(
    data: bytes, charset: str, *, session_bound: bool, ansi_quotes: bool, backslash_escapes: bool
) -> tuple[bytes, str]:
    """Returns the statement with all of its text in one character set, and that character set: ``charset`` or utf8mb4.

    ``session_bound`` is true if the leader marked the statement as depending on its session; it marks, for example,
    CREATE TABLE … LIKE a temporary table. Raises ValueError if it is not certain which parts the server wrote.
    """
    if charset in UTF8 or data.isascii():
        return data, charset
    quoting: dict[str, Any] = {"ansi_quotes": ansi_quotes, "backslash_escapes": backslash_escapes}
    if data.startswith(_LIBRARY):
        return data, "utf8mb4"
    if charset == "gb18030" and _DROP.match(data):
        return _with_single_backticks(data), charset
    if _TABLE.match(data) and _is_generated(data, charset, quoting, session_bound=session_bound):
        return data, "utf8mb4"
    if routine := _ROUTINE.match(data):
        return _routine(data, routine.end(), charset, quoting), charset
    head = _VIEW.match(data) or _WITH_DEFINER.match(data)
    end = head.end() if head else 0
    return _recoded(data[:end], charset) + data[end:], charset


def _recoded(data: bytes, charset: str) -> bytes:
    """Converts text from UTF-8 to ``charset``."""
    return data if data.isascii() else client_encode(data.decode("utf-8"), charset)


def _with_single_backticks(data: bytes) -> bytes:
    kept, at = [], 0
    while at < len(data):
        unit = units(data[at : at + 4], "gb18030")[0]
        kept.append(unit)
        at += len(unit) + (len(unit) > 1 and unit.endswith(b"`"))
    return b"".join(kept)


def _routine(data: bytes, end: int, charset: str, quoting: dict[str, Any]) -> bytes:
    """Converts a CREATE statement of a routine. Its first ``end`` bytes, up to the bracket that opens the parameters,
    are in UTF-8.
    """
    rest = data[end:]
    depth = length = 0
    for span in spans(client_decode(rest, charset), blanks=blanks(charset), **quoting):
        depth += _bracket(span)
        if depth == 0:
            length = sum(map(len, units(rest, charset)[: span.end]))
            break
    parameters, tail = rest[:length], rest[length:]
    made = _AFTER_PARAMETERS.match(tail)
    if made is None or not length:
        raise ValueError(_UNCERTAIN)
    at = len(tail) if _OTHER_LANGUAGE in made[0] else made.end()
    return _recoded(data[:end], charset) + parameters + _recoded(tail[:at], charset) + tail[at:]


def _is_generated(data: bytes, charset: str, quoting: dict[str, Any], *, session_bound: bool) -> bool:
    """Whether the server wrote this CREATE TABLE. It looks like the output of SHOW CREATE TABLE, but may also be a
    statement from a dump.
    """
    text = data.decode("utf-8", "surrogateescape")
    found = list(spans(text, **quoting))
    if not all(_is_readable(span, before) for before, span in zip([None, *found], found, strict=False)):
        return False
    inside: set[str] = set()
    options: set[str] = set()
    depth = 0
    for span in found:
        depth += _bracket(span)
        (inside if depth else options).add(span.token.word())
    key = _GENERATED_KEY.match(data) is not None
    if key and {"ENGINE", "CHARSET"} <= options:
        # The statement may come from the server or from a dump: a dump contains ENGINE and CHARSET, too, and the server
        # leaves parts of the text as they were typed.
        raise ValueError(_UNCERTAIN)
    if not ("START" in options or session_bound or key):
        if "ENGINE" in options and "INNODB" not in options and "CHARSET" not in options:
            raise ValueError(_UNCERTAIN)  # for some engines the server omits START TRANSACTION
        return False
    if session_bound and "CONNECTION_ID" in inside:
        raise ValueError(_UNCERTAIN)  # the leader also marks a statement that calls CONNECTION_ID()
    if charset in _UNSAFE and not _is_utf8(data):
        raise ValueError("it has literals whose backslashes may be parts of characters")
    return True


def _is_readable(span: Span, before: Span | None) -> bool:
    """Whether a token is valid UTF-8, or is a string after an introducer. An introducer names the string's character
    set.
    """
    introduced = before is not None and span.token.kind == "string" and before.token.text.startswith("_")
    return introduced or _is_utf8(span.token.text.encode("utf-8", "surrogateescape"))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _bracket(span: Span) -> int:
    return {"(": 1, ")": -1}.get(span.token.text, 0) if span.token.kind == "mark" else 0
