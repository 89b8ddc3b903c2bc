"""The text of a record's statement as the server parses it, and the bytes that are sent. Pure."""

from dataclasses import replace
from typing import Any

from cdc.model.client_text import NO_BLANKS, UTF8, blanks, client_decode, sent, units
from cdc.model.record import Record
from cdc.sql.text import readable

__all__ = ["charset_of", "parsed", "quoting", "spliced", "to_send"]

# The character sets of statements that are sent as their text; in others its bytes might mean other words.
_SENT = UTF8 | {"latin1"}


def charset_of(record: Record) -> str:
    """The character set of the session that ran the statement."""
    charset = (record.context or {}).get("charset", "utf8mb4")
    if not isinstance(charset, str):
        raise ValueError(f"the character set is {charset!r}")
    return charset


def quoting(record: Record) -> dict[str, Any]:
    """The parser's options for the statement. Raises ValueError if the server may read it differently."""
    modes = (record.context or {}).get("sql_mode", "")
    if not isinstance(modes, str) or not modes.isascii():
        raise ValueError(f"the sql_mode is {modes!r}")
    # The server accepts the names in any case, and ANSI for four of them.
    named = {mode.strip().upper() for mode in modes.split(",")}
    return {
        "ansi_quotes": not named.isdisjoint({"ANSI_QUOTES", "ANSI"}),
        "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in named,
        "blanks": NO_BLANKS if record.query.isascii() and record.exact is None else blanks(charset_of(record)),
    }


def parsed(record: Record) -> str:
    """The text, with lone surrogates for bytes that are no letters.

    Raises ValueError where the server would read another text than the record shows.
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
    sent(record.query, charset)  # raises ValueError for text that latin1 does not have
    return record.query


def spliced(record: Record, start: int, end: int, new: str) -> Record:
    """The record with ``new``, which is ASCII, in place of these characters of its statement.

    Raises ValueError where the statement's character set has other letters in place of some of these.
    """
    exact = record.exact
    if exact is not None:
        cut = units(exact, charset_of(record))
        exact = b"".join([*cut[:start], new.encode("ascii"), *cut[end:]])
    changed = replace(record, query=record.query[:start] + new + record.query[end:], exact=exact)
    parsed(changed)
    return changed


def to_send(record: Record) -> bytes:
    """The statement's bytes, in the character set of its context."""
    return sent(record.query, charset_of(record)) if record.exact is None else record.exact
