"""Leaves the columns with the mask "gone" (``filters.mask_columns``) out of the statements of a stream."""

import re
from collections.abc import Iterable
from typing import Any

from cdc.config.filters import Filters
from cdc.sql.effects import MAINTAIN, Effect
from cdc.sql.without_columns import identifiers, without_columns

__all__ = ["names_removed", "shown", "without_removed"]

_WORD = re.compile(r"[\w$]+")
_REWRITTEN = ("CreateTable", "AlterTable", "CreateIndex")


def without_removed(text: str, effects: Iterable[Effect], context: dict[str, Any], filters: Filters) -> str | None:
    """Returns the statement ``text`` without the columns that are left out of its tables; None if it then changes
    nothing. ``context`` is the session in which it ran.

    Raises ValueError if it names such a column in a place from which it can't be cut out.
    """
    effects = tuple(effects)
    tables = [
        (each.database, each.name) for each in effects
        if each.action in (*_REWRITTEN, MAINTAIN) and each.name and filters.removes_any(each.database, each.name)
    ]  # fmt: skip

    def is_removed(column: str) -> bool:
        return any(filters.removes(*table, column) for table in tables)

    if tables:
        if effects[0].action == MAINTAIN:
            # Such a statement changes no row, as ANALYZE TABLE … UPDATE HISTOGRAM ON column.
            return None if any(map(is_removed, identifiers(text, **_rules(context)))) else text
        rewritten = without_columns(text, is_removed, **_rules(context))
        if rewritten is None:
            return None
        text = rewritten
    # Other statements about tables and databases name no column, but a table may be called like one.
    is_of_table = all(each.action.endswith(("Table", "Database")) or each.action == "CreateIndex" for each in effects)
    if (not is_of_table or "REFERENCES" in text.upper()) and names_removed(text, effects, context, filters):
        raise ValueError("it names a table with such a column, and the column")
    return text


def names_removed(text: str, effects: Iterable[Effect], context: dict[str, Any], filters: Filters) -> bool:
    """Whether a text may name a column that is left out, together with the column's table."""
    names = identifiers(text, **_rules(context))
    databases = {*names, *(each.database for each in effects), context.get("database") or ""}
    return filters.masks.may_name_removed(names, databases)


def shown(text: str, otherwise: str, filters: Filters) -> str:
    """Returns a part of a statement or message for a record; ``otherwise`` if a column that is left out may be named
    in it.
    """
    names = {*_WORD.findall(text), *identifiers(text, ansi_quotes=True, backslash_escapes=True)}
    return otherwise if filters.masks.may_name_removed(names) else text


def _rules(context: dict[str, Any]) -> dict[str, Any]:
    modes = str(context.get("sql_mode", "")).upper().split(",")
    return {"ansi_quotes": "ANSI_QUOTES" in modes, "backslash_escapes": "NO_BACKSLASH_ESCAPES" not in modes}
