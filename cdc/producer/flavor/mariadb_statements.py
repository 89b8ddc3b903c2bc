"""Rewrites MariaDB's statements and definitions for a MySQL follower if the result is certain; else adds the reason why
a statement can't be executed.

MySQL refuses most statements that only MariaDB has, which stops the consumer. This module handles the statements that
MySQL would accept and understand differently:

- JSON is another name of LONGTEXT in MariaDB; a JSON column of MySQL would not keep the leader's text.
- MariaDB executes the text in ``/*M! … */``; for MySQL it is a comment.
- REFERENCES in the definition of a column creates a foreign key in MariaDB; MySQL before 9.0 ignores it.
- CREATE OR REPLACE of a table or a database drops the old one, which readers of the topic would not notice.
- A function in the DEFAULT of an added column may return another value for the existing rows.
"""

import re
from dataclasses import replace
from itertools import pairwise

from cdc.producer.decode.changes import Creation
from cdc.producer.decode.query_event import LoggedStatement
from cdc.sql.tokens import Span, spans

__all__ = ["creation_for_mysql", "refusal_of_column", "rewritten", "sql_mode_for_mysql"]

_TEXT = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
_OF_COLUMNS = frozenset({"CreateTable", "AlterTable"})
# A name follows each of these words, so JSON after such a word is a name.
_BEFORE_NAMES = frozenset({
    "ADD", "AFTER", "ALTER", "CHANGE", "COLUMN", "CONSTRAINT", "DROP", "EXISTS", "INDEX", "KEY", "MODIFY", "TABLE",
    "TO",
})  # fmt: skip
# The name of a column follows each of these words, and the column's type follows the name.
_BEFORE_COLUMNS = frozenset({"ADD", "COLUMN", "EXISTS", "MODIFY"})
_NAMES_OF_COLUMNS = frozenset({"AFTER", "MODIFY"})  # words of _BEFORE_NAMES that may be the name of a column, too
_SAME_FUNCTIONS = frozenset({"CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "NOW"})
_REPLACED = frozenset({"CreateTable", "CreateDatabase"})


def rewritten(statement: LoggedStatement) -> LoggedStatement:
    """Returns ``statement`` in a form that a follower may execute. If there is no such form, the effects of the result
    contain the reason.
    """
    if _has_own(statement):
        return _doubted(statement, "it has a comment that only MariaDB executes")
    if not any(effect.action in _OF_COLUMNS | _REPLACED for effect in statement.effects):
        return statement
    modes = str(statement.context.get("sql_mode", "")).split(",")
    found = list(
        spans(
            statement.text,
            ansi_quotes="ANSI_QUOTES" in modes,
            backslash_escapes="NO_BACKSLASH_ESCAPES" not in modes,
        )
    )
    words = [span.token.word() for span in found]
    if reason := _other_meaning(statement, found, words):
        return _doubted(statement, reason)
    types = [at for at, word in enumerate(words) if word == "JSON" and not _is_name(found, at)]
    ambiguous = any(_may_be_column(found, at) for at in range(len(found)))
    if not types and not ambiguous:
        return statement
    certain = not ambiguous and all(_is_type(found, at) for at in types)
    if statement.exact is not None or "CHANGE" in words or not certain:
        return _doubted(statement, "JSON is another name of LONGTEXT in MariaDB, and a type of its own in MySQL")
    text = statement.text
    for at in reversed(types):
        text = text[: found[at].start] + _TEXT + text[found[at].end :]
    return replace(statement, text=text)


def _other_meaning(statement: LoggedStatement, found: list[Span], words: list[str]) -> str:
    """Returns the reason why a follower must not execute the statement although MySQL would accept it; empty if there
    is none.
    """
    if words[:3] == ["CREATE", "OR", "REPLACE"] and any(each.action in _REPLACED for each in statement.effects):
        return "it replaces a table or a database, and readers of the topic would keep the rows of the old one"
    added = [pair == ("FOREIGN", "KEY") for pair in pairwise(words)]
    keys = sum(is_key and words[at - 1] != "DROP" for at, is_key in enumerate(added))
    if words.count("REFERENCES") > keys:
        return "a foreign key is in the definition of a column, where MySQL before 9.0 ignores it"
    if any(each.action == "AlterTable" for each in statement.effects) and _has_computed_default(found, words):
        return "MySQL may compute another value for the rows that are there"
    return ""


def _has_computed_default(found: list[Span], words: list[str]) -> bool:
    """Whether a DEFAULT calls a function that may return another value in MySQL than in MariaDB."""
    for at in (at + 1 for at, word in enumerate(words) if word == "DEFAULT"):
        depth = 0
        while at < len(found):
            text = found[at].token.text
            depth += (text == "(") - (text == ")")
            calls = at + 1 < len(found) and found[at + 1].token.text == "(" and found[at].token.kind != "mark"
            if calls and words[at] not in _SAME_FUNCTIONS:
                return True
            at += 1
            if depth <= 0 and not calls:
                break
    return False


def _may_be_column(found: list[Span], at: int) -> bool:
    """Whether the token at ``at`` is the word JSON after a column that may be named AFTER or MODIFY."""
    if at < 2 or found[at].token.word() != "JSON" or found[at - 1].token.word() not in _NAMES_OF_COLUMNS:
        return False
    before = found[at - 2].token
    return before.word() in _BEFORE_COLUMNS or (before.kind == "mark" and before.text in ("(", ","))


def _has_own(statement: LoggedStatement) -> bool:
    return bool(statement.effects) and "/*M!" in statement.text


def _is_name(found: list[Span], at: int) -> bool:
    """Whether the word JSON at ``at`` is certainly a name or a function."""
    before = found[at - 1].token if at else None
    after = found[at + 1].token if at + 1 < len(found) else None
    if after is not None and after.kind == "mark" and after.text in ("(", "."):
        return True
    return before is None or before.kind == "mark" or before.word() in _BEFORE_NAMES


def _is_type(found: list[Span], at: int) -> bool:
    """Whether the word JSON at ``at`` is certainly the type of the column whose name precedes it."""
    if at < 2 or found[at - 1].token.kind not in ("word", "quoted"):
        return False
    before = found[at - 2].token
    return before.word() in _BEFORE_COLUMNS or (before.kind == "mark" and before.text in ("(", ","))


def _doubted(statement: LoggedStatement, reason: str) -> LoggedStatement:
    return replace(statement, effects=tuple(effect._replace(unfaithful=reason) for effect in statement.effects))


# Converts the definitions that a MariaDB leader shows into definitions for a MySQL follower.
#
# Syntax that MySQL does not know stays unchanged: the follower then refuses the statement, and its error names the
# unknown syntax.

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
