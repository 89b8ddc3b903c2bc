"""Checks that a statement changes only the objects that its record lists, and returns its text and the bytes to send.
Pure.

On the follower the consumer has all privileges that the leader's users have on the leader, and any client that can
write to the topic could add a statement to it. So a statement is executed only if its kind is replicated and it
changes only the objects that its record lists. The filters are applied to these objects, and never let the server's own
databases pass. The producer's parser parses the text. If the server might read the text differently, the statement is
refused, too.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from cdc.consumer.errors import Unapplicable
from cdc.model.client_text import NO_BLANKS, UTF8, blanks, client_decode, sent, units
from cdc.model.record import Record, Uri
from cdc.sql.effects import COPIED_AGAIN, folded_effect
from cdc.sql.statement import Effect, classify
from cdc.sql.text import as_stored, readable
from cdc.sql.tokens import excerpt, spans

__all__ = ["charset_of", "check_claims", "names_in", "numbering", "parsed", "quoting", "rereads", "spliced", "to_send"]

# The character sets in which a statement may be sent as the text in its record. In other character sets the same bytes
# might mean other words.
_SENT = UTF8 | {"latin1"}


def charset_of(record: Record) -> str:
    """Returns the character set of the leader's session that executed the statement."""
    charset = (record.context or {}).get("charset", "utf8mb4")
    if not isinstance(charset, str):
        raise ValueError(f"the character set is {charset!r}")
    return charset


def quoting(record: Record) -> dict[str, Any]:
    """Returns the options with which our parser reads the statement as the server does. Raises ValueError if the server
    might read it differently."""
    modes = (record.context or {}).get("sql_mode", "")
    if not isinstance(modes, str) or not modes.isascii():
        raise ValueError(f"the sql_mode is {modes!r}")
    # The server accepts the names of modes in upper and lower case, and ANSI as a name for four modes together.
    named = {mode.strip().upper() for mode in modes.split(",")}
    return {
        "ansi_quotes": not named.isdisjoint({"ANSI_QUOTES", "ANSI"}),
        "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in named,
        "blanks": NO_BLANKS if record.query.isascii() and record.exact is None else blanks(charset_of(record)),
    }


def parsed(record: Record) -> str:
    """Returns the text of the statement, with lone surrogates for bytes that encode no character.

    Raises ValueError if the server would read another text than the text in the record.
    """
    charset = charset_of(record)
    if record.exact is not None:
        text = client_decode(record.exact, charset)
        if readable(text) != record.query:
            raise ValueError("its bytes are of another text")
        return text
    if charset == "swe7":
        return client_decode(record.query.encode("ascii"), charset)
    if not record.query.isascii() and charset not in _SENT:
        raise ValueError(f"its text in {charset} may mean something else")
    sent(record.query, charset)  # raises ValueError for characters that latin1 lacks
    return record.query


def spliced(record: Record, start: int, end: int, new: str) -> Record:
    """Replaces the characters from ``start`` to ``end`` of the record's statement by ``new``, which is ASCII.

    Raises ValueError if the bytes of ``new`` mean other characters in the statement's character set.
    """
    exact = record.exact
    if exact is not None:
        cut = units(exact, charset_of(record))
        exact = b"".join([*cut[:start], new.encode("ascii"), *cut[end:]])
    changed = replace(record, query=record.query[:start] + new + record.query[end:], exact=exact)
    parsed(changed)
    return changed


def to_send(record: Record) -> bytes:
    """Returns the bytes of the statement, in the character set of its context."""
    return sent(record.query, charset_of(record)) if record.exact is None else record.exact


_VERSIONED = re.compile(r"/\*!(\d{6}(?=\s)|\d{5})", re.ASCII)
_HINT = (
    "another client writes to the topic, or producer and consumer are of different versions; if the leader did run it, "
    "run it on the follower by hand"
)


def check_claims(record: Record, *, version: int, folds_names: bool = False) -> None:
    """Raises Unapplicable if the kind of the statement is not replicated, or if the statement affects objects that its
    record does not list.

    ``version`` is the follower's version, in the form of executable comments (90704 for 9.7.4). ``folds_names`` is true
    if the names in the record are in lower case, although the statement may contain them in any case.
    """
    try:
        problem = _problem(record, version, folded_effect if folds_names else Effect._replace)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"its context or what it affects cannot be read ({type(error).__name__}: {error})"
    if problem:
        raise Unapplicable(
            f"a statement is not run: {problem}: {excerpt(record.query)}",
            code="CDC-STATEMENT-NOT-RUN",
            record=record,
            hint=_HINT,
        )


def numbering(record: Record) -> Effect | None:
    """Returns the effect of a statement that numbers the rows of a table; None if the statement numbers no rows."""
    database = (record.context or {}).get("database", "")
    _, found = classify(parsed(record), database=database, **quoting(record))
    effects = as_stored(found, charset_of(record))
    return next((effect for effect in effects if effect.numbered or effect.any_order or effect.filled), None)


_OF_MARIADB = re.compile(r"\d+-\d+-\d+")  # the GTID of a transaction of MariaDB
_TO_BYTES = re.compile(r"\b(?:MODIFY|CHANGE)\b.*(?:BINARY|BLOB|BYTE)", re.IGNORECASE | re.DOTALL)
_ORDERS = re.compile(r"\bPARTITION\s+BY\s+(?:RANGE|LIST)\b", re.IGNORECASE)


def rereads(record: Record) -> Effect | None:
    """Returns the effect of a MariaDB leader's ALTER TABLE that changes a column to a type of bytes, or partitions the
    table by the order of a column; None for any other statement. The result would differ on the follower if the column
    is UUID or INET on the leader, and text on the follower.
    """
    if not _OF_MARIADB.fullmatch(record.transaction) or not (
        _TO_BYTES.search(record.query) or _ORDERS.search(record.query)
    ):
        return None
    database = (record.context or {}).get("database", "")
    _, found = classify(parsed(record), database=database, **quoting(record))
    return next((each for each in as_stored(found, charset_of(record)) if each.action == "AlterTable"), None)


def names_in(record: Record) -> set[str]:
    """Returns the words and quoted names in the statement, in lower case."""
    named = ("word", "quoted")
    found = spans(parsed(record), **quoting(record))
    return {span.token.text.casefold() for span in found if span.token.kind in named}


def _problem(record: Record, version: int, here: Callable[[Effect], Effect]) -> str:
    """Returns the reason not to execute the statement; empty if there is no reason. ``here`` converts the names in an
    effect to the follower's names.
    """
    text, modes = parsed(record), quoting(record)
    if any(int(number) > version for part in _between(text, modes) for number in _VERSIONED.findall(part)):
        return "it has a comment that only a server newer than the follower executes"
    kind, found = classify(text, database=(record.context or {}).get("database", ""), **modes)
    effects = as_stored(found, charset_of(record))
    if kind != "ddl":
        return f"it is not of a kind that is replicated ({kind})"
    doubt = next((effect.unfaithful for effect in effects if effect.unfaithful), "")
    # The rows may differ until the table is copied again. The record shows that the producer will copy the table.
    if doubt and not (record.copying and doubt in COPIED_AGAIN):
        return f"it is not of a kind that is replicated ({doubt})"
    claimed = {
        (affect["action"], str(Uri.parse(affect["uri"])), str(Uri.parse(affect["to"])) if "to" in affect else None)
        for affect in record.affects
    }
    # Older records contain the names as they are in the text, so the effects are also compared without applying
    # ``as_stored``.
    if not any(_said(tuple(map(here, each)), record) == claimed for each in (effects, found)):
        return "its text affects other objects than its record says"
    return ""


def _said(effects: tuple[Effect, ...], record: Record) -> set[tuple[str, str, str | None]] | None:
    """Returns the effects in the form of a record's ``affects``; None if no effect is in the record's database."""
    if all(effect.database != record.uri.database for effect in effects):
        return None
    resource = record.uri.resource
    return {
        (effect.action, str(Uri(resource, *_names(effect.database, effect.name))),
         str(Uri(resource, *effect.to)) if effect.to else None)
        for effect in effects
    }  # fmt: skip


def _between(text: str, modes: dict[str, Any]) -> Iterator[str]:
    """Yields the text between the tokens: comments, and the marks at both ends of comments that the server executes."""
    at = 0
    for span in spans(text, **modes):
        yield text[at : span.start]
        at = span.end
    yield text[at:]


def _names(database: str, name: str | None) -> tuple[str, ...]:
    return (database,) if name is None else (database, name)
