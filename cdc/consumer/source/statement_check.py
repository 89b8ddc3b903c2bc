"""What a record says of its statement, held against what the statement's own text says. Pure.

The consumer may do on the follower what the leader's users do on the leader, and whoever can write to the topic writes
its statements. So none runs but one of the kinds that are replicated, on the objects that the record names: by those
it passed the filters, and no filter lets the server's own databases through. The text is read by the producer's reader
and by the server by the same rules: what would make these two differ is refused too.
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

__all__ = ["check_claims", "quoting"]

# Text that is not ASCII is sent as it is in these; the bytes of others would be other words to the server.
_SENT = frozenset({"utf8mb4", "utf8mb3", "utf8", "latin1", "binary"})
_SPACE = "\u00a0"
_VERSIONED = re.compile(r"/\*!(\d{6}(?=\s)|\d{5})", re.ASCII)
_HINT = (
    "something else writes to the topic, or producer and consumer are of different versions; if the leader did run it, "
    "run it on the follower by hand"
)


def quoting(context: dict[str, Any] | None) -> dict[str, bool]:
    """What the statement's sql_mode says of quotes. Raises ValueError where the server may read the mode otherwise."""
    modes = (context or {}).get("sql_mode", "")
    if not isinstance(modes, str) or not modes.isascii():
        raise ValueError(f"the sql_mode is {modes!r}")
    # The server takes the names in any case, and ANSI for four of them.
    named = {mode.strip().upper() for mode in modes.split(",")}
    return {
        "ansi_quotes": not named.isdisjoint({"ANSI_QUOTES", "ANSI"}),
        "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in named,
    }


def check_claims(record: Record, *, version: int) -> None:
    """Raises Unapplicable where the statement is none that is replicated, or does other things than its record says.

    ``version`` is the follower's, as executable comments have it (90704 for 9.7.4).
    """
    try:
        problem = _problem(record, version)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"its context or what it affects cannot be read ({type(error).__name__}: {error})"
    if problem:
        raise Unapplicable(f"a statement is not run: {problem}: {excerpt(record.query)}", record=record, hint=_HINT)


def _problem(record: Record, version: int) -> str:
    context = record.context or {}
    charset = context.get("charset", "utf8mb4")
    if not record.query.isascii() and charset not in _SENT:
        return f"its text in {charset} may mean something else"
    modes = quoting(context)
    if charset == "latin1":
        latin1_encode(record.query)  # raises ValueError for a text that is none
        if any(token.kind == "word" and _SPACE in token.text for token in tokens(record.query, **modes)):
            return "it has a no-break space, which ends a word in latin1 alone"
    if any(int(number) > version for text in _between(record.query, modes) for number in _VERSIONED.findall(text)):
        return "it has a comment that only a newer server than the follower executes"
    kind, effects = classify(record.query, database=context.get("database", ""), **modes)
    if kind != "ddl":
        return f"it is none that is replicated ({kind})"
    doubt = next((effect.unfaithful for effect in effects if effect.unfaithful), "")
    if doubt:
        return f"it is none that is replicated ({doubt})"
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
    """What stands between the tokens: comments, and the marks around those that the server executes."""
    at = 0
    for span in spans(text, **modes):
        yield text[at : span.start]
        at = span.end
    yield text[at:]


def _names(database: str, name: str | None) -> tuple[str, ...]:
    return (database,) if name is None else (database, name)
