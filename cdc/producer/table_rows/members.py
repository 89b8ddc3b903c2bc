"""The type of a column as the server shows it in, its members and what records tell of it out. Pure."""

import re

from cdc.model.charset import text_decoder
from cdc.sql.column_types import character_type, members_type

__all__ = ["member_texts", "shown_type"]

_QUOTED = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def member_texts(column_type: str) -> tuple[str, ...]:
    """The members in a column's type as the server shows it."""
    texts = _QUOTED.findall(column_type)
    return tuple(
        re.sub(r"\\(.)|''", lambda at: _ESCAPES.get(at[1], at[1]) if at[1] else "'", text, flags=re.DOTALL)
        for text in texts
    )


def shown_type(kind: str, full: str, charset: str) -> str:
    """The type as records of rows tell it (``decode.table_map.column_type``) of a column that is shown as ``full``.

    ``kind`` is its data_type in information_schema.
    """
    if kind in ("enum", "set"):
        return members_type(kind, None if text_decoder(charset) is None else member_texts(full), charset)
    if kind.endswith(("char", "text")):
        return character_type(full, charset)
    if kind.endswith(("point", "linestring", "polygon", "geometry", "geomcollection", "geometrycollection")):
        return "geometry"
    if kind in ("vector", "year", "float", "double") or kind.endswith("int"):
        return f"{kind} unsigned" if "unsigned" in full.split() else kind
    return full.removesuffix(" zerofill")
