"""Rewrites MariaDB's statements and definitions for a MySQL follower if the result is certain; else adds the reason why
a statement can't be executed.

MySQL refuses most statements that only MariaDB has, which stops the consumer. This module handles the statements that
MySQL would accept and understand differently:

- JSON is another name of LONGTEXT in MariaDB; a JSON column of MySQL would not keep the leader's text.
- UUID, INET4 and INET6 become text columns in new columns and tables. A column that an ALTER changes to one of these
  types, or an added column that has a value in the existing rows, would have other texts on the follower.
- COMPRESSED in the definition of a column changes no value.
- MariaDB executes the text in ``/*M! … */``; for MySQL it is a comment.
- REFERENCES in the definition of a column creates a foreign key in MariaDB; MySQL before 9.0 ignores it.
- CREATE OR REPLACE drops an existing table or database, and readers of the topic would not notice that.
- A function in the DEFAULT of an added column may return another value for the existing rows.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from itertools import pairwise
from typing import NamedTuple

from cdc.producer.decode.changes import Creation
from cdc.producer.decode.mariadb_values import inet4_text, inet6_text
from cdc.producer.decode.query_event import LoggedStatement
from cdc.sql.tokens import Span, spans

__all__ = [
    "COMPRESSED",
    "OWN_TYPES",
    "created_types",
    "creation_for_mysql",
    "ordered_otherwise",
    "refusal_of_column",
    "rewritten",
    "sql_mode_for_mysql",
]

OWN_TYPES = {"uuid": "char(36)", "inet4": "varchar(15)", "inet6": "varchar(39)"}
"""Types of MariaDB, and the types of ascii text that a follower has in their place, with room for each value."""
COMPRESSED = "/*M!100301 COMPRESSED*/"  # as SHOW CREATE TABLE and dumps of MariaDB contain it

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
_ASCII = "CHARACTER SET ascii COLLATE ascii_general_ci"
_OWN_WORDS = {kind.upper(): f"{text.upper()} {_ASCII}" for kind, text in OWN_TYPES.items()}
_MAY_HAVE_OWN = re.compile("UUID|INET[46]|COMPRESSED", re.IGNORECASE)
_CHANGING = frozenset({"CHANGE", "MODIFY"})
_BEFORE_KEYS = frozenset({"FULLTEXT", "SPATIAL", "UNIQUE"})  # the name of a key may follow these words
# The words between the clause of ALTER TABLE and the name of the column.
_IN_CLAUSE = frozenset({"COLUMN", "EXISTS", "IF", "NOT"})
_COMPRESSIBLE = frozenset({
    "BLOB", "JSON", "LONGBLOB", "LONGTEXT", "MEDIUMBLOB", "MEDIUMTEXT", "TEXT", "TINYBLOB", "TINYTEXT", "VARBINARY",
    "VARCHAR",
})  # fmt: skip
# The first words of the lines of a definition that define no column.
_NO_COLUMN = frozenset({
    "CHECK", "CONSTRAINT", "FOREIGN", "FULLTEXT", "INDEX", "KEY", "PERIOD", "PRIMARY", "SPATIAL", "UNIQUE",
})  # fmt: skip
_COMPRESSED_COMMENT = re.compile(r"/\*M!100301 COMPRESSED\*/")
_ORDERED = re.compile(r"\bPARTITION\s+BY\s+(?:RANGE|LIST)\b", re.IGNORECASE)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


class _Doubt(Exception):
    """The reason why a statement can't be rewritten."""


def rewritten(statement: LoggedStatement) -> LoggedStatement:
    """Returns ``statement`` in a form that a follower may execute. If there is no such form, the effects of the result
    contain the reason.
    """
    if not any(effect.action in _OF_COLUMNS | _REPLACED for effect in statement.effects):
        return _doubted(statement, _COMMENT) if _has_own(statement) else statement
    found = _spans(statement)
    words = [span.token.word() for span in found]
    comments = list(_compressed_comments(statement.text, found))
    if statement.text.count("/*M!") > len(comments) or (comments and statement.exact is not None):
        return _doubted(statement, _COMMENT)
    if reason := _other_meaning(statement, found, words):
        return _doubted(statement, reason)
    try:
        edits = [*comments, *_plain_columns(statement, found, words)]
    except _Doubt as doubt:
        return _doubted(statement, str(doubt))
    types = [at for at, word in enumerate(words) if word == "JSON" and not _is_name(found, at)]
    ambiguous = any(_may_be_column(found, at) for at in range(len(found)))
    if not types and not ambiguous:
        return _edited(statement, edits)
    certain = not ambiguous and all(_is_type(found, at) for at in types)
    if statement.exact is not None or "CHANGE" in words or not certain:
        return _doubted(statement, "JSON is another name of LONGTEXT in MariaDB, and a type of its own in MySQL")
    return _edited(statement, [*edits, *(_Edit(found[at].start, found[at].end, _TEXT) for at in types)])


def created_types(statement: LoggedStatement) -> dict[str, str]:
    """Maps the columns of a table that the statement certainly creates to the first words of their types; contains only
    columns that are defined in its text."""
    if (
        [each.action for each in statement.effects] != ["CreateTable"]
        or statement.exact is not None
        or _has_own(statement)
    ):
        return {}
    found = _spans(statement)
    words = [span.token.word() for span in found]
    start = next((at for at in (3, 5) if _is_mark(found, at, "(")), 0)
    # With IF NOT EXISTS, there may be a table with other columns.
    if words[:2] != ["CREATE", "TABLE"] or not start or statement.effects[0].like:
        return {}
    types, depth, begins = {}, 0, False
    for at in range(start, len(found) - 2):
        if begins and found[at].token.kind in ("word", "quoted") and words[at] not in _NO_COLUMN:
            types[found[at].token.text] = words[at + 1].lower()
        depth += _is_mark(found, at, "(") - _is_mark(found, at, ")")
        begins = at == start or (depth == 1 and _is_mark(found, at, ","))
        if not depth:
            break
    return types


def _spans(statement: LoggedStatement) -> list[Span]:
    modes = str(statement.context.get("sql_mode", "")).split(",")
    ansi_quotes, backslash_escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    return list(spans(statement.text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes))


_COMMENT = "it has a comment that only MariaDB executes"


def _edited(statement: LoggedStatement, edits: list[_Edit]) -> LoggedStatement:
    text = statement.text
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return replace(statement, text=text) if edits else statement


def _compressed_comments(text: str, found: list[Span]) -> Iterator[_Edit]:
    """Yields the edits that remove the comments with COMPRESSED in a dump of MariaDB."""
    for comment in _COMPRESSED_COMMENT.finditer(text):
        # Inside of a string or a name, this text is no comment.
        if not any(span.start < comment.end() and comment.start() < span.end for span in found):
            yield _Edit(comment.start(), comment.end(), "")


def _plain_columns(statement: LoggedStatement, found: list[Span], words: list[str]) -> Iterator[_Edit]:
    """Yields the edits that replace MariaDB's own types, and remove COMPRESSED. MySQL refuses the statement if some of
    them remain.

    Raises _Doubt for a statement that MySQL would execute after the edits, but with other values.
    """
    # If the statement has exact bytes, an edit of its text would have no effect.
    if statement.exact is not None or not _MAY_HAVE_OWN.search(statement.text):
        return
    alters = any(effect.action == "AlterTable" for effect in statement.effects)
    for at, word in enumerate(words):
        if word in _OWN_WORDS and (kind := _own_type(found, words, at)):
            if kind in _CHANGING:
                raise _Doubt(f"a column becomes {word}, and MySQL would keep its values in their old form")
            if ordered_otherwise(statement.text):
                raise _Doubt(f"its partitions are in MariaDB's order of {word}, which MySQL does not have")
            if alters and not _fills_alike(found, words, at):
                raise _Doubt(f"the rows that are there get a value of {word} that MySQL would not give them")
            yield _Edit(found[at].start, found[at].end, _OWN_WORDS[word])
        elif word == "COMPRESSED" and _compresses(found, words, at):
            yield _Edit(found[at].start, found[at + 2 if _is_mark(found, at + 1, "=") else at].end, "")
        elif word == "UUID" and words[at - 1] == "DEFAULT" and _calls(found, at) and not alters:
            # MySQL wants brackets around a function.
            yield _Edit(found[at].start, found[at + 2].end, "(UUID())")


def _own_type(found: list[Span], words: list[str], at: int) -> str:
    """Returns the clause that gives a column the type at ``at``: CHANGE, MODIFY, or another text for a new column.
    Returns an empty text unless the word at ``at`` is certainly a type.
    """
    if at < 3 or found[at - 1].token.kind not in ("word", "quoted"):
        return ""
    if (
        found[at - 2].token.kind in ("word", "quoted")
        and words[at - 2] not in _IN_CLAUSE
        and _clause(words, at - 3) == "CHANGE"
    ):
        return "CHANGE"
    if _is_name(found, at) or not _is_type(found, at) or words[at - 1] in _BEFORE_KEYS:
        return ""
    if found[at - 2].token.kind == "mark":
        return "ADD"
    clause = _clause(words, at - 2)
    # After CHANGE COLUMN and the column's old name, the word is the new name and no type.
    return "" if clause == "CHANGE" else clause


def _clause(words: list[str], at: int) -> str:
    while at > 0 and words[at] in _IN_CLAUSE:
        at -= 1
    return words[at]


def _calls(found: list[Span], at: int) -> bool:
    return _is_mark(found, at + 1, "(") and _is_mark(found, at + 2, ")")


def _is_mark(found: list[Span], at: int, text: str) -> bool:
    return 0 <= at < len(found) and found[at].token == ("mark", text)


def _compresses(found: list[Span], words: list[str], at: int) -> bool:
    """Whether the word COMPRESSED at ``at`` follows the type of a column."""
    has_size = _is_mark(found, at - 1, ")") and _is_mark(found, at - 3, "(")
    return at > 4 and words[at - 4 if has_size else at - 1] in _COMPRESSIBLE


def _fills_alike(found: list[Span], words: list[str], at: int) -> bool:
    """Whether an ALTER TABLE gives a new column, whose type is at ``at``, the same value in the existing rows of both
    servers: NULL, or a default in the form in which MariaDB shows it.
    """
    if "PRIMARY" in words:
        return False
    end, depth = at + 1, 0
    while end < len(found) and depth >= 0 and not (depth == 0 and _is_mark(found, end, ",")):
        depth += _is_mark(found, end, "(") - _is_mark(found, end, ")")
        end += 1
    definition = words[at + 1 : end]
    if "DEFAULT" in definition:
        default = at + 2 + definition.index("DEFAULT")
        value = found[default].token if default < len(found) else None
        is_null = value is not None and value.word() == "NULL"
        return is_null or (value is not None and value.kind == "string" and _IN_ITS_FORM[words[at]](value.text))
    is_key = any(word == "KEY" and before != "UNIQUE" for before, word in pairwise(["", *definition]))
    return ("NOT", "NULL") not in pairwise(definition) and not is_key


def _is_shown(parse: Callable[[str], IPv4Address | IPv6Address], show: Callable[[bytes], str], text: str) -> bool:
    try:
        return show(parse(text).packed) == text
    except AddressValueError:
        return False


_IN_ITS_FORM: dict[str, Callable[[str], bool]] = {
    "UUID": lambda text: _UUID.fullmatch(text) is not None,
    "INET4": lambda text: _is_shown(IPv4Address, inet4_text, text),
    "INET6": lambda text: _is_shown(IPv6Address, inet6_text, text),
}


def ordered_otherwise(text: str) -> bool:
    """Whether the definition of a table has partitions by the order of a column's values."""
    return _ORDERED.search(text) is not None


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
    """Whether the token at ``at`` is JSON and the word before it, AFTER or MODIFY, may be the name of a column. JSON
    would then be the column's type.
    """
    if at < 2 or found[at].token.word() != "JSON" or found[at - 1].token.word() not in _NAMES_OF_COLUMNS:
        return False
    before = found[at - 2].token
    return before.word() in _BEFORE_COLUMNS or (before.kind == "mark" and before.text in ("(", ","))


def _has_own(statement: LoggedStatement) -> bool:
    return bool(statement.effects) and "/*M!" in statement.text


def _is_name(found: list[Span], at: int) -> bool:
    """Whether the word at ``at``, which may be a type, is certainly a name or a function."""
    before = found[at - 1].token if at else None
    after = found[at + 1].token if at + 1 < len(found) else None
    if after is not None and after.kind == "mark" and after.text in ("(", "."):
        return True
    return before is None or before.kind == "mark" or before.word() in _BEFORE_NAMES


def _is_type(found: list[Span], at: int) -> bool:
    """Whether the word at ``at`` is certainly the type of the column whose name precedes it."""
    if at < 2 or found[at - 1].token.kind not in ("word", "quoted"):
        return False
    before = found[at - 2].token
    return before.word() in _BEFORE_COLUMNS or (before.kind == "mark" and before.text in ("(", ","))


def _doubted(statement: LoggedStatement, reason: str) -> LoggedStatement:
    return replace(statement, effects=tuple(effect._replace(unfaithful=reason) for effect in statement.effects))


# Converts the definitions that a MariaDB leader shows into definitions for a MySQL follower.
#
# Other syntax that MySQL does not know stays unchanged: the follower then refuses the statement, and its error names
# the unknown syntax.

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
_NOT_REPLICATED = frozenset({"vector", "xmltype"})
# These expressions match the beginning of a column's line, through the text that is replaced. The line contains no
# string before that text.
_OWN_COLUMN = re.compile(r"^(  `(?:[^`]|``)+` )(uuid|inet4|inet6)\b", re.MULTILINE)
_COMPRESSED_COLUMN = re.compile(
    r"^(  `(?:[^`]|``)+` (?:var(?:char|binary)\(\d+\)|(?:tiny|medium|long)?(?:text|blob))) /\*M!100301 COMPRESSED\*/",
    re.MULTILINE,
)
_UUID_DEFAULT = re.compile(r"^(  `(?:[^`]|``)+` [^'\n]*? DEFAULT )uuid\(\)", re.MULTILINE)


def refusal_of_column(name: str, kind: str, column_type: str) -> str | None:
    """Returns the reason why rows with this column can't be replicated; None if they can be replicated. ``kind`` and
    ``column_type`` are the DATA_TYPE and COLUMN_TYPE in information_schema."""
    if kind in _NOT_REPLICATED:
        return f"column {name} has the type {kind} of MariaDB, which is not replicated"
    if "/*" in column_type.replace(COMPRESSED, "") and kind not in ("enum", "set"):
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
    text = _COMPRESSED_COLUMN.sub(r"\1", creation.text)
    text = _OWN_COLUMN.sub(lambda column: f"{column[1]}{OWN_TYPES[column[2]]} {_ASCII}", text)
    text = _CHECK_NAME.sub("  ", _JSON_CHECK.sub(r"\1", _UUID_DEFAULT.sub(r"\1(uuid())", text)))
    return creation._replace(text=text, context=context)


def sql_mode_for_mysql(modes: str) -> str:
    """Converts the names of an sql_mode of MariaDB. A mode that only MariaDB has stays: the follower refuses it.

    MariaDB truncates fractions of a second by default, and MySQL rounds them by default.
    """
    kept = [mode for mode in modes.split(",") if mode and mode not in _DROPPED_MODES | {_ROUND}]
    return ",".join(kept if _ROUND in modes.split(",") else [*kept, _TRUNCATE])
