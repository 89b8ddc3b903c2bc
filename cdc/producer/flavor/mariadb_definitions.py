"""Converts the definitions that a MariaDB leader shows into definitions for a MySQL follower. Pure.

Syntax that MySQL does not know stays unchanged: the follower then refuses the statement, and its error names the
unknown syntax.
"""

import re

from cdc.producer.decode.changes import Creation

__all__ = ["creation_for_mysql", "refusal_of_column", "sql_mode_for_mysql"]

# A JSON column of MariaDB is a LONGTEXT column with this check. This check is removed, since MySQL's JSON_VALID may
# refuse a text that MariaDB's JSON_VALID accepts.
_JSON_CHECK = re.compile(
    r"^(  (`(?:[^`]|``)+`) longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin\b.*?) CHECK \(json_valid\(\2\)\)(?=,?$)",
    re.MULTILINE,
)
# The name that MariaDB makes up for a check is unique in its table; MySQL needs a name that is unique in the database.
_CHECK_NAME = re.compile(r"^  CONSTRAINT `CONSTRAINT_\d+` (?=CHECK )", re.MULTILINE)
_DROPPED_MODES = frozenset({"NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "NO_AUTO_CREATE_USER"})
_ROUND, _TRUNCATE = "TIME_ROUND_FRACTIONAL", "TIME_TRUNCATE_FRACTIONAL"
_UTF8MB4 = {"default_collation_for_utf8mb4": "utf8mb4_general_ci"}
_OWN_TYPES = frozenset({"uuid", "inet4", "inet6", "vector", "xmltype"})


def refusal_of_column(name: str, kind: str, column_type: str) -> str | None:
    """Returns the reason why rows with this column can't be replicated, None if they can. ``kind`` and ``column_type``
    are the DATA_TYPE and COLUMN_TYPE in information_schema."""
    if kind in _OWN_TYPES:
        return f"column {name} has the type {kind} of MariaDB, which is not replicated"
    if "/*" in column_type and kind not in ("enum", "set"):
        return f"column {name} has the type {column_type}, whose rows are not replicated"
    return None


def creation_for_mysql(creation: Creation) -> Creation:
    """Returns the statement that creates the same object on a MySQL follower."""
    context = _UTF8MB4 | creation.context
    context["sql_mode"] = sql_mode_for_mysql(context["sql_mode"])
    if context["collation"].startswith("utf8mb4_0900"):
        context["collation"] = _UTF8MB4["default_collation_for_utf8mb4"]
    if creation.exact is not None:
        return creation._replace(context=context)
    text = _CHECK_NAME.sub("  ", _JSON_CHECK.sub(r"\1", creation.text))
    return creation._replace(text=text, context=context)


def sql_mode_for_mysql(modes: str) -> str:
    """Converts the names of an sql_mode of MariaDB. A mode that only MariaDB has stays: the follower refuses it.

    MariaDB truncates fractions of a second by default, and MySQL rounds them by default.
    """
    kept = [mode for mode in modes.split(",") if mode and mode not in _DROPPED_MODES | {_ROUND}]
    return ",".join(kept if _ROUND in modes.split(",") else [*kept, _TRUNCATE])
