"""Reads the tokens of a statement in order: keywords, punctuation marks, names and accounts."""

from collections.abc import Iterator
from dataclasses import dataclass

from cdc.sql.tokens import Token

__all__ = ["SqlReader"]


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
