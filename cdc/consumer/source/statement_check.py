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
from cdc.consumer.source.statement_text import charset_of, parsed, quoting
from cdc.model.record import Record, Uri
from cdc.sql.ddl import Effect, classify
from cdc.sql.redaction import excerpt
from cdc.sql.text import as_stored
from cdc.sql.tokens import spans

__all__ = ["check_claims", "numbering"]

_VERSIONED = re.compile(r"/\*!(\d{6}(?=\s)|\d{5})", re.ASCII)
_HINT = (
    "another client writes to the topic, or producer and consumer are of different versions; if the leader did run it, "
    "run it on the follower by hand"
)


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


def numbering(record: Record) -> Effect | None:
    """The effect that numbers rows of a table, if the statement has one."""
    database = (record.context or {}).get("database", "")
    _, found = classify(parsed(record), database=database, **quoting(record))
    effects = as_stored(found, charset_of(record))
    return next((effect for effect in effects if effect.numbered or effect.any_order or effect.filled), None)


def _problem(record: Record, version: int) -> str:
    text, modes = parsed(record), quoting(record)
    if any(int(number) > version for part in _between(text, modes) for number in _VERSIONED.findall(part)):
        return "it has a comment that only a server newer than the follower executes"
    kind, found = classify(text, database=(record.context or {}).get("database", ""), **modes)
    effects = as_stored(found, charset_of(record))
    if kind != "ddl":
        return f"it is not of a kind that is replicated ({kind})"
    doubt = next((effect.unfaithful for effect in effects if effect.unfaithful), "")
    if doubt:
        return f"it is not of a kind that is replicated ({doubt})"
    claimed = {
        (affect["action"], str(Uri.parse(affect["uri"])), str(Uri.parse(affect["to"])) if "to" in affect else None)
        for affect in record.affects
    }
    # Older records have names as they are in the text.
    if not any(_said(each, record) == claimed for each in (effects, found)):
        return "its text affects other objects than its record says"
    return ""


def _said(effects: tuple[Effect, ...], record: Record) -> set[tuple[str, str, str | None]] | None:
    """What the effects are in a record's ``affects``; None where none is in the record's database."""
    if all(effect.database != record.uri.database for effect in effects):
        return None
    resource = record.uri.resource
    return {
        (effect.action, str(Uri(resource, *_names(effect.database, effect.name))),
         str(Uri(resource, *effect.to)) if effect.to else None)
        for effect in effects
    }  # fmt: skip


def _between(text: str, modes: dict[str, Any]) -> Iterator[str]:
    """The text between the tokens: comments, and the marks around comments that the server executes."""
    at = 0
    for span in spans(text, **modes):
        yield text[at : span.start]
        at = span.end
    yield text[at:]


def _names(database: str, name: str | None) -> tuple[str, ...]:
    return (database,) if name is None else (database, name)
