"""Finds the changes to a statement that remove the DEFINER of a view or routine and set SQL SECURITY INVOKER. The
object then runs with the rights of the user who calls it (manual, "Stored Object Access Control")."""

from collections.abc import Sequence

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.tokens import Span, spans

__all__ = ["as_invoker"]

Change = tuple[int, int, str]
"""A part of the text, from a start to an end, and the text in place of it."""

_INVOKER = "SQL SECURITY INVOKER "
_ROUTINES = ("PROCEDURE", "FUNCTION")
_OTHERS = ("TABLE", "DATABASE", "SCHEMA", "INDEX", "TRIGGER", "EVENT")
# The words that may follow a type's name in RETURNS (_OF_TYPES), and the words that the name of a character set or
# collation follows (_NAMED).
_OF_TYPES = {
    "UNSIGNED", "SIGNED", "ZEROFILL", "BINARY", "ASCII", "UNICODE", "BYTE", "PRECISION", "VARYING", "VARCHAR",
    "VARBINARY", "CHARACTER", "CHAR",
}  # fmt: skip
_NAMED = {"CHARSET", "COLLATE", "SET"}


def as_invoker(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> list[Change] | None:
    """Returns the changes, in the order of the text. Returns an empty list for a statement that is not about a view or
    routine, and None if the places of the changes are not certain.
    """
    found = list(spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    words = [span.token.word() for span in found]
    kind = next((at for at, word in enumerate(words) if word in ("VIEW", *_ROUTINES, *_OTHERS)), None)
    if not words or words[0] not in ("CREATE", "ALTER") or kind is None or words[kind] in _OTHERS:
        return []
    changes = _without_definer(found, words, kind)
    if words[kind] == "VIEW":
        security = _security(found, words, kind)
        return [*changes, *(security or [(found[kind].start, found[kind].start, _INVOKER)])]
    if words[0] == "ALTER":
        return _security(found, words, len(words))
    begin = _characteristics(found, words, kind)
    if begin is None:
        return None
    body = _body(found, words, begin)
    security = _security(found, words, body)
    return [*changes, *(security or [(found[body].start, found[body].start, _INVOKER)])]


def _without_definer(found: Sequence[Span], words: Sequence[str], kind: int) -> list[Change]:
    """Finds the clause ``DEFINER = account`` before the kind of the object."""
    if "DEFINER" not in words[:kind]:
        return []
    at = words.index("DEFINER")
    if at and words[at - 1] == "SECURITY":
        return []
    end = next((at for at in range(at, kind + 1) if words[at] in ("SQL", "VIEW", *_ROUTINES)), kind)
    return [(found[at].start, found[end].start, "")]


def _security(found: Sequence[Span], words: Sequence[str], end: int) -> list[Change]:
    for at in range(2, end):
        if words[at - 2 : at] == ["SQL", "SECURITY"]:
            return [(found[at].start, found[at].end, "INVOKER")]
    return []


def _characteristics(found: Sequence[Span], words: Sequence[str], kind: int) -> int | None:
    """Returns the index of the token before which a characteristic, such as SQL SECURITY, can be inserted into CREATE
    PROCEDURE or CREATE FUNCTION. Returns None if this place is not certain.
    """
    marks = [span.token.text if span.token.kind == "mark" else "" for span in found]
    at = _closed(marks, kind)
    if at is None or words[kind] == "PROCEDURE":
        return at if at is not None and at < len(found) else None
    if words[at : at + 1] != ["RETURNS"]:
        return None
    at += 2
    if marks[at : at + 1] == ["("]:
        closed = _closed(marks, at)
        if closed is None:
            return None
        at = closed
    while at < len(found) and (words[at] in _OF_TYPES or words[at] in _NAMED):
        at += 2 if words[at] in _NAMED else 1
        if marks[at : at + 1] == ["("]:
            closed = _closed(marks, at)
            if closed is None:
                return None
            at = closed
    return at if at < len(found) else None


def _closed(marks: Sequence[str], start: int) -> int | None:
    """Returns the index after the bracket that closes the first bracket from ``start`` on; None if no bracket closes
    it.
    """
    depth = 0
    for at in range(start, len(marks)):
        depth += (marks[at] == "(") - (marks[at] == ")")
        if marks[at] == ")" and depth == 0:
            return at + 1
    return None


_CHARACTERISTICS = (
    ("LANGUAGE", "SQL"), ("NOT", "DETERMINISTIC"), ("DETERMINISTIC",), ("CONTAINS", "SQL"), ("NO", "SQL"),
    ("READS", "SQL", "DATA"), ("MODIFIES", "SQL", "DATA"), ("SQL", "SECURITY", "DEFINER"),
    ("SQL", "SECURITY", "INVOKER"),
)  # fmt: skip


def _body(found: Sequence[Span], words: Sequence[str], at: int) -> int:
    """Returns the index of the first token of a routine's body, after the characteristics that begin at ``at``."""
    while at < len(found) - 1:
        if words[at] == "COMMENT" and found[at + 1].token.kind == "string":
            at += 2
            continue
        known = next((each for each in _CHARACTERISTICS if tuple(words[at : at + len(each)]) == each), None)
        if known is None:
            break
        at += len(known)
    return at
