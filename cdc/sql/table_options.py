"""Finds the options of CREATE TABLE and ALTER TABLE in a statement's text, including the options of partitions. Pure.

Words such as ENGINE and TABLESPACE are not reserved, so they may also be names of columns, keys and tables. So the
module searches for options only where MySQL's grammar allows them: after a table's columns, at the start of a clause of
ALTER TABLE, after another option, and in a partition's definition ("CREATE TABLE Statement", "ALTER TABLE Statement" in
the manual).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.sql.parser import SqlReader
from cdc.sql.tokens import Span, Token, spans

__all__ = ["Option", "table_options"]

_OPTIONS = [
    *(("DEFAULT", *words) for words in (("CHARACTER", "SET"), ("CHARSET",), ("COLLATE",))),
    ("CHARACTER", "SET"), ("DATA", "DIRECTORY"), ("INDEX", "DIRECTORY"), ("STORAGE", "ENGINE"),
    *((word,) for word in (
        "AUTOEXTEND_SIZE", "AUTO_INCREMENT", "AVG_ROW_LENGTH", "CHARSET", "CHECKSUM", "COLLATE", "COMMENT",
        "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE", "ENGINE_ATTRIBUTE", "INSERT_METHOD",
        "KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "NODEGROUP", "PACK_KEYS", "PASSWORD", "ROW_FORMAT",
        "SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "STATS_AUTO_RECALC", "STATS_PERSISTENT", "STATS_SAMPLE_PAGES",
        "STORAGE", "TABLESPACE", "TABLE_CHECKSUM", "UNION",
    )),
]  # fmt: skip
# These words may follow a name in a list of columns or partitions; that name is then not an option.
_AFTER_NAMES = {"ASC", "BY", "DESC", "INTO"}
_OPEN, _CLOSE, _COMMA = (Token("mark", text) for text in "(),")


class Option(NamedTuple):
    """An option. ``name`` is the last word of its name, ``value`` is the first token of its value, with the token's
    place in the text.
    """

    name: str
    value: Span


def table_options(text: str, *, ansi_quotes: bool, backslash_escapes: bool, blanks: Blanks = NO_BLANKS) -> list[Option]:
    """Returns the options of a table and of its partitions, in the order of the text; empty for a statement that is not
    CREATE TABLE or ALTER TABLE.
    """
    found = list(spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    reader = SqlReader([span.token for span in found], "")
    try:
        options = _of_create(reader) if reader.take("CREATE", "TABLE") else _of_alter(reader)
    except ValueError:
        return []  # a name is missing, so no server has executed this statement
    if not options and not reader.at:
        return []
    return [Option(name, found[at]) for at, name in sorted({*options, *_of_partitions(reader)})]


def _of_create(reader: SqlReader) -> list[tuple[int, str]]:
    reader.take("IF", "NOT", "EXISTS")
    reader.name()
    _skip_brackets(reader)
    return list(_options(reader, commas=True))


def _of_alter(reader: SqlReader) -> list[tuple[int, str]]:
    if not reader.take("ALTER", "TABLE"):
        return []
    reader.name()
    options: list[tuple[int, str]] = []
    while reader.at < len(reader.items) and not reader.comes("ORDER"):
        options += _options(reader, commas=False)
        while reader.at < len(reader.items) and not reader.mark(","):
            if not _skip_brackets(reader):
                reader.at += 1
    return options


def _of_partitions(reader: SqlReader) -> list[tuple[int, str]]:
    """Finds the options of all partitions and subpartitions.

    If the word PARTITION follows a bracket or comma, it begins a partition: it is a reserved word, so it can't be an
    unquoted name.
    """
    options: list[tuple[int, str]] = []
    for at, (before, item) in enumerate(pairwise(reader.items), 1):
        if before in (_OPEN, _COMMA) and item.word() in ("PARTITION", "SUBPARTITION"):
            reader.at = at + 2  # after the partition's name
            listed = reader.take("VALUES", "IN") or reader.take("VALUES", "LESS", "THAN")
            if listed and not _skip_brackets(reader):
                reader.take("MAXVALUE")
            options += _options(reader, commas=False)
    return options


def _options(reader: SqlReader, *, commas: bool) -> Iterator[tuple[int, str]]:
    """Reads the options that come next, and yields for each option the index of its value and the last word of its
    name. If ``commas`` is true, commas may separate the options.
    """
    while reader.at < len(reader.items):
        start = reader.at
        if reader.take("START", "TRANSACTION"):
            continue
        if commas and reader.mark(","):
            continue
        words = next((words for words in _OPTIONS if reader.take(*words)), None)
        if words is None:
            return
        reader.mark("=")
        value = reader.at
        if value >= len(reader.items) or reader.peek() in _AFTER_NAMES:
            reader.at = start
            return
        if not _skip_brackets(reader):
            if reader.items[value].kind == "mark":
                reader.at = start
                return
            reader.at += 1
        yield value, words[-1]


def _skip_brackets(reader: SqlReader) -> bool:
    """If a bracket comes next, skips it and everything up to its end. Returns whether a bracket came."""
    depth = int(reader.mark("("))
    found = depth > 0
    while depth and reader.at < len(reader.items):
        depth += (reader.items[reader.at] == _OPEN) - (reader.items[reader.at] == _CLOSE)
        reader.at += 1
    return found
