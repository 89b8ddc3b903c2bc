"""Rewrites statements that define a table, so that some columns do not exist in them. Pure.

The columns are cut out of CREATE TABLE, ALTER TABLE and CREATE INDEX, with their parts of keys. A statement that names
such a column in any other way is refused, because no part of it can be left out safely.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.tokens import Span, SqlReader, Token, spans

__all__ = ["identifiers", "without_columns"]

IsRemoved = Callable[[str], bool]
Cut = tuple[int, int]  # the start and the end of a part of the text

_NAMES = ("word", "quoted")
_KEYS = ("INDEX", "KEY", "FULLTEXT", "SPATIAL")
_NO_COLUMN = {*_KEYS, "CHECK", "CONSTRAINT", "FOREIGN", "PARTITION", "PRIMARY", "UNIQUE"}
_OPTIONS = {"", "ALGORITHM", "LOCK", "WITH", "WITHOUT"}  # clauses of ALTER TABLE that change nothing themselves
_COMMENT = re.compile(r"/\*|\*/")
_NUMBERED = re.compile(r"_\d+\Z")  # a server adds it to the column's name where a key has no name


def identifiers(text: str, *, ansi_quotes: bool, backslash_escapes: bool, blanks: Blanks = NO_BLANKS) -> set[str]:
    """Returns the words and quoted names of a statement, keywords included."""
    found = spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    return {span.token.text for span in found if span.token.kind in _NAMES}


def without_columns(
    text: str, is_removed: IsRemoved, *, ansi_quotes: bool, backslash_escapes: bool, blanks: Blanks = NO_BLANKS
) -> str | None:
    """Returns the statement without the columns for which ``is_removed`` is true; None if it then changes nothing.

    Raises ValueError if the statement names such a column in a place from which it can't be cut out.
    """

    def read(part: str) -> "_Statement":
        found = spans(part, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
        return _Statement(part, list(found), is_removed)

    statement = read(text)
    if not statement.names_any(0, len(statement.found)):
        return text
    head, cuts = statement.cuts()
    if cuts is None:
        return None
    for start, end in sorted(cuts, reverse=True):
        marks = _COMMENT.findall(text[start:end])
        if marks.count("/*") != marks.count("*/"):
            raise ValueError("a comment is around a part of it")
        text = text[:start] + text[end:]
    rest = read(text)
    if rest.names_any(head, len(rest.found)):
        raise ValueError("it names the column where it can't be left out")
    return text


class _Statement:
    """A statement and its tokens ``found``. Its methods identify parts by the indexes of tokens, without the end."""

    def __init__(self, text: str, found: Sequence[Span], is_removed: IsRemoved) -> None:
        self._text = text
        self.found = found
        self._is_removed = is_removed

    def names_any(self, begin: int, end: int) -> bool:
        return any(self._is_named(at) for at in range(begin, end))

    def cuts(self) -> tuple[int, list[Cut] | None]:
        """Returns the number of tokens up to the table's name, and the parts to cut out; None if nothing remains."""
        reader = SqlReader([span.token for span in self.found], "")
        if reader.take("ALTER", "TABLE"):
            reader.name()
            return reader.at, self._altered(reader.at)
        if reader.take("CREATE", "TABLE"):
            reader.take("IF", "NOT", "EXISTS")
            reader.name()
            cuts = self._bracketed(reader.at, len(self.found), self._definition)
            if cuts is None:
                raise ValueError("the table has no other column")
            return reader.at, cuts
        reader.require("CREATE")
        if not reader.take("FULLTEXT"):
            reader.take("SPATIAL")
        reader.require("INDEX")
        at, name = reader.at, reader.identifier()
        reader.skip_to("ON")
        reader.name()
        cuts = self._key(reader.at, len(self.found), name)
        if cuts is not None and self._is_named(at):
            raise ValueError("the index is called like the column")
        return reader.at, cuts

    def _altered(self, begin: int) -> list[Cut] | None:
        cuts = self._listed(begin, len(self.found), self._clause)
        if cuts is None:
            return None
        kept = [first for first, end in self._pieces(begin, len(self.found)) if self._clause(first, end) is not None]
        return cuts if any(self._word(first) not in _OPTIONS for first in kept) else None

    def _clause(self, begin: int, end: int) -> list[Cut] | None:
        """Returns what to cut out of a clause of ALTER TABLE; None if it is only about the columns."""
        reader = SqlReader([span.token for span in self.found[:end]], "", begin)
        if not self.names_any(begin, end):
            return []
        if reader.take("RENAME", "COLUMN"):
            names = [reader.identifier()]
            reader.require("TO")
            names.append(reader.identifier())
            return None if all(map(self._is_removed, names)) else []
        verb = next((word for word in ("ADD", "ALTER", "CHANGE", "DROP", "MODIFY") if reader.take(word)), "")
        if not verb or (not reader.take("COLUMN") and reader.peek() in _NO_COLUMN):
            return self._definition(reader.at, end) if verb == "ADD" else []
        if reader.mark("("):
            return self._bracketed(reader.at - 1, end, self._definition)
        names = [reader.identifier(), *([reader.identifier()] if verb == "CHANGE" else [])]
        if not all(map(self._is_removed, names)):
            # The column becomes the last one: followers find columns by their names.
            places = (at for at in range(begin, end - 1) if self._word(at) == "AFTER" and self._is_named(at + 1))
            return [(self.found[at].start, self.found[at + 1].end) for at in places]
        if any(self._word(at).startswith("PARTITION") for at in range(begin, end)):
            raise ValueError("it changes partitions in the same clause")
        return None

    def _definition(self, begin: int, end: int) -> list[Cut] | None:
        """Returns what to cut out of the definition of a column or key; None for all of it."""
        if self._word(begin) in _KEYS:
            at = begin + 1 + (self._word(begin + 1) in ("INDEX", "KEY"))
            has_name = self._token(at).kind in _NAMES and self._word(at) != "USING"
            return self._key(begin, end, self._token(at).text if has_name else "")
        return None if self._word(begin) not in _NO_COLUMN and self._is_named(begin) else []

    def _key(self, begin: int, end: int, name: str) -> list[Cut] | None:
        """Returns what to cut out of a key; None for all of it, also where the key is called like a column that is
        left out, or would get the name of another column than on the leader.
        """
        cuts = self._bracketed(begin, end, self._key_part)
        opening = next((at for at in range(begin, end) if self._mark(at) == "("), end)
        if cuts and not name and opening + 1 < end and self._is_named(opening + 1):
            return None
        return None if cuts and name and self._is_removed(_NUMBERED.sub("", name)) else cuts

    def _key_part(self, begin: int, end: int) -> list[Cut] | None:
        return None if self._is_named(begin) else []

    def _bracketed(self, begin: int, end: int, item: Callable[[int, int], list[Cut] | None]) -> list[Cut] | None:
        """Returns what to cut out of the list in the first brackets of a part; None for all of the list."""
        opening = next((at for at in range(begin, end) if self._mark(at) == "("), None)
        if opening is None:
            return []
        depth = 0
        for at in range(opening, end):
            depth += (self._mark(at) == "(") - (self._mark(at) == ")")
            if depth == 0:
                return self._listed(opening + 1, at, item)
        raise ValueError("a bracket is missing")

    def _listed(self, begin: int, end: int, item: Callable[[int, int], list[Cut] | None]) -> list[Cut] | None:
        cuts: list[Cut] = []
        keeps = False
        for first, stop in self._pieces(begin, end):
            inner = item(first, stop) if first < stop else []
            if inner is not None:
                cuts += inner
                keeps = True
            elif keeps:  # with the comma in front of it
                following = self.found[stop].start if stop < len(self.found) else len(self._text)
                cuts.append((self.found[first - 1].start, following))
            elif stop < end:  # with the comma behind it
                cuts.append((self.found[first - 1].end, self.found[stop].end))
        return cuts if keeps else None

    def _pieces(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yields the parts between the commas that are outside of brackets."""
        depth, first = 0, begin
        for at in range(begin, end):
            depth += (self._mark(at) == "(") - (self._mark(at) == ")")
            if self._mark(at) == "," and depth == 0:
                yield first, at
                first = at + 1
        yield first, end

    def _token(self, at: int) -> Token:
        return self.found[at].token

    def _is_named(self, at: int) -> bool:
        return self._token(at).kind in _NAMES and self._is_removed(self._token(at).text)

    def _word(self, at: int) -> str:
        return self._token(at).word() if at < len(self.found) else ""

    def _mark(self, at: int) -> str:
        return self._token(at).text if self._token(at).kind == "mark" else ""
