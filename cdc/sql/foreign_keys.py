"""Finds foreign keys that some servers ignore. Pure.

Before version 9.0, MySQL ignored those in the definitions of columns (``a INT REFERENCES t (id)``). Each server ignores
all foreign keys of a table in an engine that has none.
"""

from collections.abc import Sequence
from itertools import pairwise

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.table_options import table_options
from cdc.sql.tokens import Span, spans, tokens

__all__ = ["column_references", "follows_the_engine"]

_TWO_WORDS = ("SET", "NO")  # SET NULL, SET DEFAULT, NO ACTION


def column_references(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> list[tuple[int, int]]:
    """Returns the start and end of each such clause, in the order of the text; empty for a statement that is not CREATE
    TABLE or ALTER TABLE.
    """
    if "REFERENCES" not in text.upper():
        return []
    found = list(spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    words = [span.token.word() for span in found]
    if words[:2] not in (["CREATE", "TABLE"], ["ALTER", "TABLE"]):
        return []
    clauses = []
    begins = [0]  # for each open bracket, where the definition or clause inside of it begins
    for at, span in enumerate(found):
        mark = _mark(found, at)
        if mark == "(":
            begins.append(at + 1)
        elif mark == ")" and len(begins) > 1:
            begins.pop()
        elif mark == ",":
            begins[-1] = at + 1
        elif words[at] == "REFERENCES" and ("FOREIGN", "KEY") not in pairwise(words[begins[-1] : at]):
            clauses.append((span.start, found[_last(found, words, at)].end))
    return clauses


def follows_the_engine(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> bool:
    """Whether a CREATE TABLE or ALTER TABLE has foreign keys and names no engine. Also false for a CREATE TABLE IF NOT
    EXISTS, since the table may have been there.
    """
    if "REFERENCES" not in text.upper():
        return False
    read = tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    words = [token.word() for token in read]
    if words[:2] not in (["CREATE", "TABLE"], ["ALTER", "TABLE"]) or words[2:4] == ["IF", "NOT"]:
        return False
    options = table_options(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    return "REFERENCES" in words and not any(option.name == "ENGINE" for option in options)


def _mark(found: Sequence[Span], at: int) -> str:
    return found[at].token.text if at < len(found) and found[at].token.kind == "mark" else ""


def _last(found: Sequence[Span], words: Sequence[str], at: int) -> int:
    """Returns the index of the clause's last token; the clause begins at the index ``at``."""
    at += 3 if _mark(found, at + 2) == "." else 1
    if _mark(found, at + 1) == "(":
        while _mark(found, at) != ")" and at < len(found) - 1:
            at += 1
    while True:
        ahead = list(words[at + 1 : at + 4])
        if ahead[:1] == ["MATCH"]:
            at += 2
        elif ahead[:1] == ["ON"]:
            at += 4 if ahead[2:] and ahead[2] in _TWO_WORDS else 3
        else:
            return min(at, len(found) - 1)
