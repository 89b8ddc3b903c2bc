"""Decodes the text of a logged statement, and decides in which form a record contains the text. Some bytes of the text
may encode no character.

In comments and strings, MySQL accepts bytes that are invalid in the session's character set. A follower receives the
same bytes, so invalid bytes matter only in names. If it is not known how the server reads a statement, every character
outside of ASCII counts as lost. The objects that the statement may affect can still be found, because punctuation marks
and keywords are ASCII in every character set.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cdc.model.client_text import UTF8, Blanks, blanks, client_decode, sent, stored_name, units
from cdc.sql.effects import Effect
from cdc.sql.server_rewritten_sql import in_one_charset

__all__ = ["StatementText", "as_stored", "is_lost", "readable", "statement_text"]

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
