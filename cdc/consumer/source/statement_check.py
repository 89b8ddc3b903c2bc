"""Checks that a record's statement does what the record says: a replicated kind of statement, on the objects it names.

The consumer may run on the follower whatever the leader's users may run on the leader, and any client that can write to
the topic could put a statement there. So a statement runs only if it is of a replicated kind and changes only the
objects that its record names: the filters decide by those, and never let the server's own databases through. The text
is parsed by the producer's parser; whatever the server might read differently is refused, too.
"""

import re
from collections.abc import Iterator
from typing import Any

from cdc.consumer.errors import Unapplicable
from cdc.model.charset import latin1_encode
from cdc.model.record import Record, Uri
from cdc.sql.ddl import classify
from cdc.sql.redaction import excerpt
from cdc.sql.tokens import spans, tokens

__all__ = ["check_claims", "numbered_table", "quoting"]

# The character sets in which text that is not ASCII can be sent; in others its bytes might mean other words.
_SENT = frozenset({"utf8mb4", "utf8mb3", "utf8", "latin1", "binary"})
_SPACE = "\u00a0"
_VERSIONED = re.compile(r"/\*!(\d{6}(?=\s)|\d{5})", re.ASCII)
_HINT = (
    "another client writes to the topic, or producer and consumer are of different versions; if the leader did run it, "
    "run it on the follower by hand"
)


def quoting(context: dict[str, Any] | None) -> dict[str, bool]:
    """The parser's options for the statement's sql_mode. Raises ValueError if the server may read it differently."""
    modes = (context or {}).get("sql_mode", "")
    if not isinstance(modes, str) or not modes.isascii():
        raise ValueError(f"the sql_mode is {modes!r}")
    # The server accepts the names in any case, and ANSI for four of them.
    named = {mode.strip().upper() for mode in modes.split(",")}
    return {
        "ansi_quotes": not named.isdisjoint({"ANSI_QUOTES", "ANSI"}),
        "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in named,
    }


def check_claims(record: Record, *, version: int) -> None:
    """Raises Unapplicable if the statement is not of a replicated kind, or does not do what its record says.

    ``version`` is the follower's, in the form of executable comments (90704 for 9.7.4).
    """
    try:
        problem = _problem(record, version)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"its context or what it affects cannot be read ({type(error).__name__}: {error})"
    if problem:
        raise Unapplicable(f"a statement is not run: {problem}: {excerpt(record.query)}", record=record, hint=_HINT)


def numbered_table(record: Record) -> tuple[str, str] | None:
    """The database and name of the table whose rows the statement numbers in the order of their key, if it does."""
    database = (record.context or {}).get("database", "")
    _, effects = classify(record.query, database=database, **quoting(record.context))
    return next(((effect.database, effect.name or "") for effect in effects if effect.numbered), None)


def _problem(record: Record, version: int) -> str:
    context = record.context or {}
    charset = context.get("charset", "utf8mb4")
    if not record.query.isascii() and charset not in _SENT:
        return f"its text in {charset} may mean something else"
    modes = quoting(context)
    if charset == "latin1":
        latin1_encode(record.query)  # raises ValueError for text that is not latin1
        if any(token.kind == "word" and _SPACE in token.text for token in tokens(record.query, **modes)):
            return "it has a no-break space, which ends a word only in latin1"
    if any(int(number) > version for text in _between(record.query, modes) for number in _VERSIONED.findall(text)):
        return "it has a comment that only a server newer than the follower executes"
    kind, effects = classify(record.query, database=context.get("database", ""), **modes)
    if kind != "ddl":
        return f"it is not of a kind that is replicated ({kind})"
    doubt = next((effect.unfaithful for effect in effects if effect.unfaithful), "")
    if doubt:
        return f"it is not of a kind that is replicated ({doubt})"
    resource = record.uri.resource
    said = {
        (effect.action, str(Uri(resource, *_names(effect.database, effect.name))),
         str(Uri(resource, *effect.to)) if effect.to else None)
        for effect in effects
    }  # fmt: skip
    claimed = {
        (affect["action"], str(Uri.parse(affect["uri"])), str(Uri.parse(affect["to"])) if "to" in affect else None)
        for affect in record.affects
    }
    if said != claimed or all(effect.database != record.uri.database for effect in effects):
        return "its text affects other objects than its record says"
    return ""


def _between(text: str, modes: dict[str, bool]) -> Iterator[str]:
    """The text between the tokens: comments, and the marks around comments that the server executes."""
    at = 0
    for span in spans(text, **modes):
        yield text[at : span.start]
        at = span.end
    yield text[at:]


def _names(database: str, name: str | None) -> tuple[str, ...]:
    return (database,) if name is None else (database, name)
