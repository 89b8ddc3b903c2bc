"""Finds the columns that ALTER TABLE renames. Pure."""

from dataclasses import replace

from cdc.sql.parser import SqlReader
from cdc.sql.tokens import tokens

__all__ = ["renamed_columns"]


def renamed_columns(text: str, *, sql_mode: str) -> list[tuple[str, str]]:
    """Returns the old and the new names of the columns that the statement ``text`` renames."""
    modes = sql_mode.upper().split(",")
    ansi_quotes, backslash_escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    reader = SqlReader(list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes)), "")
    if not reader.take("ALTER", "TABLE"):
        return []
    reader.name()
    found = []
    for clause in reader.clauses():
        ahead = replace(clause)
        if ahead.take("CHANGE"):
            ahead.take("COLUMN")
            found.append((ahead.identifier(), ahead.identifier()))
        elif ahead.take("RENAME", "COLUMN"):
            old = ahead.identifier()
            ahead.require("TO")
            found.append((old, ahead.identifier()))
    return [(old, new) for old, new in found if old.casefold() != new.casefold()]
