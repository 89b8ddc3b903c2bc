"""The type of an ENUM or SET column as the server shows it in, its members out. Pure."""

import re

__all__ = ["member_texts"]

_QUOTED = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def member_texts(column_type: str) -> tuple[str, ...]:
    """The members in a column's type as the server shows it."""
    texts = _QUOTED.findall(column_type)
    return tuple(
        re.sub(r"\\(.)|''", lambda at: _ESCAPES.get(at[1], at[1]) if at[1] else "'", text, flags=re.DOTALL)
        for text in texts
    )
