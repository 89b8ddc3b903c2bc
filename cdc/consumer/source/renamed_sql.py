"""Where a statement means a database: what its text alone proves. Pure.

A name in front of a dot may be a database, a table or an alias, and only the server knows. It is a database where

- it stands before the first bracket or query of a statement on tables or indexes: there are names of objects only;
- or each occurrence of it in the statement has a dot behind it and none before it: a table or an alias of that name
  would have to be brought in by its bare name, or at the end of a longer one.

Names without a database need nothing: the statement runs in the renamed one.
"""

from collections.abc import Iterator

from cdc.config.renames import Renames
from cdc.consumer.errors import Unapplicable
from cdc.consumer.literals.values import identifier
from cdc.consumer.source.statement_check import quoting
from cdc.model.record import Record
from cdc.sql.redaction import excerpt
from cdc.sql.tokens import Span, Token, spans

__all__ = ["means", "rewritten"]

_DOT, _BRACKET, _NOTHING = Token("mark", "."), Token("mark", "("), Token("mark", "")
# With these begins what may have columns: a query, and the order of an ALTER TABLE.
_COLUMNS = {"SELECT", "WITH", "AS", "ORDER"}
_BODIES = ("View", "Procedure", "Function", "Library")


def rewritten(record: Record, renames: Renames) -> str:
    """The statement with the follower's names. Raises Unapplicable where it can't be told what is a database."""
    found = _spans(record)
    places = [span for name in renames.databases for span in _places(record, found, name)]
    parts, end = [], 0
    for span in sorted(places, key=lambda each: each.start):
        parts += [record.query[end : span.start], identifier(renames.new(span.token.text))]
        end = span.end
    return "".join([*parts, record.query[end:]])


def means(record: Record, name: str) -> bool:
    """Whether the statement has to do with the database ``name``. Raises Unapplicable where that can't be told."""
    return bool(_places(record, _spans(record), name))


def _spans(record: Record) -> list[Span]:
    return list(spans(record.query, **quoting(record.context)))


def _places(record: Record, found: list[Span], name: str) -> list[Span]:
    """Where the statement means the database ``name``. Raises Unapplicable where that can't be told."""
    qualifiers: list[int] = []
    others: list[int] = []
    for at, (before, token, after) in enumerate(_neighbours(found)):
        if token.kind in ("word", "quoted") and token.text == name and after.kind != "host":
            (qualifiers if after == _DOT and before != _DOT else others).append(at)
    actions = [affect["action"] for affect in record.affects]
    if actions and all(action.endswith("Database") for action in actions):
        # Only the statement's object is a name there, and ALTER DATABASE may leave it out.
        if qualifiers or len(others) > 1:
            raise _ambiguous(record, name)
        return [found[at] for at in others]
    has_body = any(action.endswith(_BODIES) and not action.startswith("Drop") for action in actions)
    head = 0 if has_body else _head(found)
    if (others and any(at >= head for at in qualifiers)) or (has_body and _may_be_built(found, name)):
        raise _ambiguous(record, name)
    return [found[at] for at in qualifiers]


def _neighbours(found: list[Span]) -> Iterator[tuple[Token, Token, Token]]:
    items = [_NOTHING, *[span.token for span in found], _NOTHING]
    return zip(items, items[1:], items[2:], strict=False)


def _head(found: list[Span]) -> int:
    """How many tokens stand before the first bracket or anything else that may have columns."""
    for at, span in enumerate(found):
        if span.token == _BRACKET or span.token.word() in _COLUMNS:
            return at
    return len(found)


def _may_be_built(found: list[Span], name: str) -> bool:
    """Whether the name stands in a string of a view or routine, which may ask for it or build statements of it."""
    return any(
        (span.token.kind == "string" and name in span.token.text) or span.token.word() == "PREPARE" for span in found
    )


def _ambiguous(record: Record, name: str) -> Unapplicable:
    return Unapplicable(
        f"it can't be told where a statement means the database {name}, which is renamed: {excerpt(record.query)}",
        record=record,
        hint="run the statement on the follower by hand with the new name, then go on without the leader's",
    )
