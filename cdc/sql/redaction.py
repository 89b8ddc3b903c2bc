"""Shortens a statement for logs and errors: one line, without anything that may be a secret."""

import re

__all__ = ["excerpt"]

# After the first quote, text may be inside a string, whatever the session's sql_mode; password hashes may be 0x….
_LITERAL = re.compile(r"""['"]|\b0x[0-9a-f]""", re.IGNORECASE)


def excerpt(statement: str, *, length: int = 120) -> str:
    """The beginning of a statement, up to its first string or hexadecimal literal and at most ``length`` characters."""
    text = _LITERAL.split(" ".join(statement[: 4 * length].split()), maxsplit=1)[0][:length]
    return text if text == " ".join(statement.split()) else text.rstrip() + " …"
