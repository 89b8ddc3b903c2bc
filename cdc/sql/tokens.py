"""Splits a statement into tokens according to MySQL's lexical rules (manual, "Language Structure", and sql_lex.cc), and
reads them in order.

Comments are left out, except the content of executable comments (``/*! … */``). A server that did not execute such a
comment has logged it as a plain comment. MariaDB's ``/*M! … */`` is a plain comment to MySQL.

``excerpt`` shortens a statement for logs and errors to one line that contains no secret.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from cdc.model.client_text import NO_BLANKS, Blanks

__all__ = ["Span", "SqlReader", "Token", "excerpt", "spans", "tokens"]

# The excerpt ends at the first quote, because the following text may be inside a string, depending on the sql_mode. It
# also ends at 0x…, because password hashes may be written in that form.
_LITERAL = re.compile(r"""['"]|\b0x[0-9a-f]""", re.IGNORECASE)


def excerpt(statement: str, *, length: int = 120) -> str:
    """Returns the beginning of a statement, up to its first string or hexadecimal literal, and at most ``length``
    characters.
    """
    text = _LITERAL.split(" ".join(statement[: 4 * length].split()), maxsplit=1)[0][:length]
    return text if text == " ".join(statement.split()) else text.rstrip() + " …"


class Token(NamedTuple):
    """A token. Its ``kind`` is word, quoted (an identifier), string, host (after an @) or mark; ``text``
    has no quotes.
    """

    kind: str
    text: str

    def word(self) -> str:
        """Returns the token in capitals, for comparison with keywords; empty if the token is not an unquoted ASCII
        word.
        """
        # Only ASCII words are keywords. ``upper`` turns some other letters into ASCII letters, but the server does not
        # read such words as keywords.
        return self.text.upper() if self.kind == "word" and self.text.isascii() else ""


class Span(NamedTuple):
    """A token, with its start and end in the statement's text. The span includes quotes."""

    token: Token
    start: int
    end: int


@cache
def _pattern(*, ansi_quotes: bool, backslash_escapes: bool, blanks: Blanks) -> re.Pattern[str]:
    # A backslash is an escape only in strings, and never under NO_BACKSLASH_ESCAPES.
    single = r"(?:[^'\\]|''|\\.)*" if backslash_escapes else "(?:[^']|'')*"
    double = r'(?:[^"\\]|""|\\.)*' if backslash_escapes and not ansi_quotes else '(?:[^"]|"")*'
    spaces, dashes = map(re.escape, blanks)
    no_space = rf"(?![{spaces}])" if spaces else ""
    return re.compile(
        rf"""(?P<space>[\s{spaces}]+|--(?=[\s\x00-\x1f\x7f{spaces}{dashes}]|$)[^\n]*|\#[^\n]*|/\*(?!!).*?\*/|/\*!(?:\d{{6}}(?=\s)|\d{{5}})?|\*/)
        |`(?P<backtick>(?:[^`]|``)*)`
        |"(?P<double>{double})"
        |'(?P<single>{single})'
        |@(?P<host>[0-9A-Za-z_.$]*)
        |(?P<word>(?:{no_space}[0-9A-Za-z_$\u0080-\U0010ffff])+)
        |(?P<mark>.)""",
        # With re.ASCII, ``\s`` matches only ASCII spaces. For the server, only these and the characters in ``blanks``
        # are spaces; a word may contain any other character beyond ASCII.
        re.VERBOSE | re.DOTALL | re.ASCII,
    )


def tokens(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> Iterator[Token]:
    """Yields the statement's tokens. A character that begins no other kind of token is a mark, for example a quote
    without its end.
    """
    for span in spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks):
        yield span.token


def spans(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> Iterator[Span]:
    """Yields the statement's tokens with their positions in the text. ``blanks`` are the characters that the parser
    treats like a blank in the text's character set.
    """
    pattern = _pattern(ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    for match in pattern.finditer(text):
        kind = match.lastgroup or "mark"
        if kind != "space":
            yield Span(_token(kind, match[kind], ansi_quotes=ansi_quotes), match.start(), match.end())


def _token(kind: str, content: str, *, ansi_quotes: bool) -> Token:
    if kind == "backtick":
        return Token("quoted", content.replace("``", "`"))
    if kind == "double":
        return Token("quoted" if ansi_quotes else "string", content.replace('""', '"'))
    if kind == "single":
        return Token("string", content.replace("''", "'"))
    return Token(kind, content)


# Reads the tokens of a statement in order: keywords, punctuation marks, names and accounts.


@dataclass(slots=True)
class SqlReader:
    """The tokens of one statement, the database of its unqualified names, and the index of the next token.

    The methods raise ValueError if a required token does not come next.
    """

    items: list[Token]
    database: str
    at: int = 0

    def peek(self) -> str:
        """Returns the next keyword, in capitals; empty at the end, or if the next token is not a keyword."""
        return self.items[self.at].word() if self.at < len(self.items) else ""

    def comes(self, *words: str) -> bool:
        """Whether the next tokens are these keywords."""
        return [item.word() for item in self.items[self.at : self.at + len(words)]] == list(words)

    def take(self, *words: str) -> bool:
        """Skips these keywords if they come next; returns whether they came."""
        found = self.comes(*words)
        if found:
            self.at += len(words)
        return found

    def require(self, word: str) -> None:
        """Skips a keyword that must come next."""
        if not self.take(word):
            raise ValueError(f"{word} is missing")

    def mark(self, text: str) -> bool:
        """Skips the punctuation mark ``text`` if it comes next; returns whether it came."""
        found = self.items[self.at : self.at + 1] == [Token("mark", text)]
        self.at += found
        return found

    def require_mark(self, text: str) -> None:
        """Skips a punctuation mark that must come next."""
        if not self.mark(text):
            raise ValueError(f"{text} is missing")

    def identifier(self) -> str:
        """Reads the identifier that must come next."""
        if self.at >= len(self.items) or self.items[self.at].kind not in ("word", "quoted"):
            raise ValueError("a name is missing")
        self.at += 1
        return self.items[self.at - 1].text

    def name(self) -> tuple[str, str]:
        """Reads ``[database.]name``; returns the reader's ``database`` if the text does not contain a database."""
        first = self.identifier()
        return (first, self.identifier()) if self.mark(".") else (self.database, first)

    def names(self) -> list[tuple[str, str]]:
        """Reads one or more names that are separated by commas."""
        found = [self.name()]
        while self.mark(","):
            found.append(self.name())
        return found

    def account(self) -> str:
        """Reads ``user[@host]`` or ``CURRENT_USER[()]``; user and host may be identifiers or strings."""
        user = self._account_part()
        if self.mark("("):
            self.require_mark(")")
        if self.at < len(self.items) and self.items[self.at].kind == "host":
            self.at += 1
            return f"{user}@{self.items[self.at - 1].text or self._account_part()}"
        return user

    def _account_part(self) -> str:
        if self.at < len(self.items) and self.items[self.at].kind == "string":
            self.at += 1
            return self.items[self.at - 1].text
        return self.identifier()

    def skip_to(self, word: str) -> None:
        """Skips all tokens up to and including this keyword. The keyword must occur."""
        while self.at < len(self.items) and self.peek() != word:
            self.at += 1
        self.require(word)

    def clauses(self) -> Iterator["SqlReader"]:
        """Splits the remaining tokens at the commas that are outside of brackets."""
        depth, start = 0, self.at
        for at in range(self.at, len(self.items)):
            mark = self.items[at].text if self.items[at].kind == "mark" else ""
            depth += (mark == "(") - (mark == ")")
            if mark == "," and depth == 0:
                yield SqlReader(self.items[start:at], self.database)
                start = at + 1
        yield SqlReader(self.items[start:], self.database)
        self.at = len(self.items)
