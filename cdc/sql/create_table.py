"""Reads CREATE TABLE and ALTER TABLE: the options, the foreign keys that some servers ignore, and the differences
between the definitions on two servers. Pure.

Words such as ENGINE and TABLESPACE are not reserved, so they may also be names of columns, keys and tables. So the
module searches for options only where MySQL's grammar allows them: after a table's columns, at the start of a clause of
ALTER TABLE, after another option, and in a partition's definition ("CREATE TABLE Statement", "ALTER TABLE Statement" in
the manual).
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from cdc.model.client_text import NO_BLANKS, Blanks
from cdc.model.names import folded
from cdc.sql.tokens import Span, SqlReader, Token, spans, tokens

__all__ = [
    "Difference",
    "Option",
    "column_references",
    "differences",
    "follows_the_engine",
    "table_options",
    "with_folded_names",
]

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
            reader.at = at + 2  # skips the partition's name
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
    """Skips a bracket that comes next, its content, and the bracket that closes it. Returns whether a bracket came."""
    depth = int(reader.mark("("))
    found = depth > 0
    while depth and reader.at < len(reader.items):
        depth += (reader.items[reader.at] == _OPEN) - (reader.items[reader.at] == _CLOSE)
        reader.at += 1
    return found


# Finds foreign keys that some servers ignore.
#
# MySQL before 9.0 ignores foreign keys in column definitions (``a INT REFERENCES t (id)``). All versions ignore all
# foreign keys of a table whose engine does not support them.

_TWO_WORDS = ("SET", "NO")  # SET NULL, SET DEFAULT, NO ACTION


def column_references(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> list[tuple[int, int]]:
    """Returns the start and end of each foreign key in a column definition, in the order of the text; empty for a
    statement that is not CREATE TABLE or ALTER TABLE.
    """
    if "REFERENCES" not in text.upper():
        return []
    found = list(spans(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks))
    words = [span.token.word() for span in found]
    if words[:2] not in (["CREATE", "TABLE"], ["ALTER", "TABLE"]):
        return []
    clauses = []
    begins = [0]  # for each open bracket, where the definition or clause inside of it begins
    for at, span in enumerate(found):
        mark = _mark(found, at)
        if mark == "(":
            begins.append(at + 1)
        elif mark == ")" and len(begins) > 1:
            begins.pop()
        elif mark == ",":
            begins[-1] = at + 1
        elif words[at] == "REFERENCES" and ("FOREIGN", "KEY") not in pairwise(words[begins[-1] : at]):
            clauses.append((span.start, found[_last(found, words, at)].end))
    return clauses


def follows_the_engine(
    text: str, *, ansi_quotes: bool, backslash_escapes: bool = True, blanks: Blanks = NO_BLANKS
) -> bool:
    """Whether a CREATE TABLE or ALTER TABLE has foreign keys and names no engine. Always false for CREATE TABLE IF NOT
    EXISTS, since the table may have existed already.
    """
    if "REFERENCES" not in text.upper():
        return False
    read = tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    words = [token.word() for token in read]
    if words[:2] not in (["CREATE", "TABLE"], ["ALTER", "TABLE"]) or words[2:4] == ["IF", "NOT"]:
        return False
    options = table_options(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes, blanks=blanks)
    return "REFERENCES" in words and not any(option.name == "ENGINE" for option in options)


def _mark(found: Sequence[Span], at: int) -> str:
    return found[at].token.text if at < len(found) and found[at].token.kind == "mark" else ""


def _last(found: Sequence[Span], words: Sequence[str], at: int) -> int:
    """Returns the index of the clause's last token; the clause begins at the index ``at``."""
    at += 3 if _mark(found, at + 2) == "." else 1
    if _mark(found, at + 1) == "(":
        while _mark(found, at) != ")" and at < len(found) - 1:
            at += 1
    while True:
        ahead = list(words[at + 1 : at + 4])
        if ahead[:1] == ["MATCH"]:
            at += 2
        elif ahead[:1] == ["ON"]:
            at += 4 if ahead[2:] and ahead[2] in _TWO_WORDS else 3
        else:
            return min(at, len(found) - 1)


# Compares the output of SHOW CREATE TABLE of two servers, and writes the ALTER TABLE that makes one table like the
# other.

_NAME = r"`(?:[^`]|``)+`"
_COLUMN = re.compile(_NAME)
_KEY = re.compile(rf"(?:UNIQUE |FULLTEXT |SPATIAL )?KEY ({_NAME})")
_CONSTRAINT = re.compile(rf"CONSTRAINT ({_NAME})")
# In the line of a constraint, ``_NAMES`` finds the constraint's own name, and the table to which a foreign key refers.
_CONSTRAINT_LINE = re.compile(r"^  CONSTRAINT .*$", re.MULTILINE)
_NAMES = re.compile(rf"(?<=CONSTRAINT ){_NAME}|(?<=REFERENCES ){_NAME}(?:\.{_NAME})?")
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")
_ENGINE = re.compile(r"ENGINE=\w+ ?")
# Tablespaces are not compared, because the leader's tablespaces do not exist on the follower
# (cdc.consumer.source.follower_statements).
_TABLESPACE = re.compile(rf"/\*!\d+ TABLESPACE {_NAME} \*/ ?")
_QUOTED = re.compile(r"'(?:[^'\\]|''|\\.)*'")
_OPTION = re.compile(r"(\w+)=")
# The values that reset an option which the leader's table does not have.
_DEFAULTS = {
    "COMMENT": "''", "COMPRESSION": "''", "KEY_BLOCK_SIZE": "0", "ROW_FORMAT": "DEFAULT",
    "STATS_AUTO_RECALC": "DEFAULT", "STATS_PERSISTENT": "DEFAULT", "STATS_SAMPLE_PAGES": "DEFAULT",
}  # fmt: skip
_PRIMARY, _ALL_OPTIONS = "PRIMARY KEY", "the table's options"
# SHOW CREATE TABLE contains the PARTITION BY clause in an executable comment.
_PARTITIONS = re.compile(r"/\*!\d+ (PARTITION BY .*)\*/", re.DOTALL)


class Difference(NamedTuple):
    """A difference, described in ``what``, and the part of an ALTER TABLE that removes it; this part is empty if no
    ALTER can.
    """

    what: str
    change: str


def differences(here: str, there: str, *, any_engine: bool = False) -> list[Difference]:
    """Returns how the table ``here`` differs from the table ``there``. Both arguments are outputs of SHOW CREATE TABLE.

    The order of columns and keys, the next AUTO_INCREMENT number and the tablespace do not count as differences. If
    ``any_engine`` is true, the engine does not count either.
    """
    ours, theirs = (_parts(text, any_engine=any_engine) for text in (here, there))
    found = [_difference(name, ours.get(name), theirs.get(name)) for name in ours | theirs]
    # A key or constraint is dropped before its columns, and added after them.
    return sorted((each for each in found if each is not None), key=lambda each: _rank(each.change))


def with_folded_names(text: str) -> str:
    """Returns the output of SHOW CREATE TABLE with the names in constraints in lower case, for a comparison with a
    server that stores names of tables in lower case.

    Such a server shows the names of referenced tables in lower case, and derives its constraint names (``pet_ibfk_1``)
    from the table's name. The case of a constraint's name has no meaning.
    """
    return _CONSTRAINT_LINE.sub(lambda line: _NAMES.sub(lambda name: folded(name[0]), line[0]), text)


def _rank(change: str) -> int:
    if change.startswith(("DROP CONSTRAINT", "DROP PRIMARY", "DROP KEY")) and ", ADD" not in change:
        return 0
    return 1 if "COLUMN" in change.split("`")[0] else 2


def _parts(text: str, *, any_engine: bool) -> dict[str, str]:
    """Maps the names of columns, keys and constraints to their definitions, and _ALL_OPTIONS to the table's options."""
    head, _, rest = text.partition("(\n")
    body, end, options = rest.rpartition("\n)")
    if not (head and end):
        return {_ALL_OPTIONS: text}
    found = dict(_named(line) for line in body.split("\n"))
    options = _TABLESPACE.sub("", _COUNTER.sub("", options)).strip()
    return found | {_ALL_OPTIONS: _ENGINE.sub("", options) if any_engine else options}


def _named(line: str) -> tuple[str, str]:
    text = line.strip().removesuffix(",")
    if column := _COLUMN.match(text):
        return f"column {column[0]}", text
    if key := _KEY.match(text):
        return f"key {key[1]}", text
    if constraint := _CONSTRAINT.match(text):
        return f"constraint {constraint[1]}", text
    return (_PRIMARY if text.startswith(_PRIMARY) else text), text


def _difference(name: str, here: str | None, there: str | None) -> Difference | None:
    if here == there:
        return None
    kind, _, quoted = name.partition(" ")
    if name == _ALL_OPTIONS:
        return Difference(f"{name} are {here}, on the leader {there}", _changed_options(here or "", there or ""))
    if kind == "column":
        return _of_column(quoted, here, there)
    drop = "DROP PRIMARY KEY" if name == _PRIMARY else f"DROP {kind.upper()} {quoted}"
    steps = [*([drop] if here is not None else []), *([f"ADD {there}"] if there is not None else [])]
    return Difference(_told(name, here, there), ", ".join(steps))


def _changed_options(here: str, there: str) -> str:
    ours, theirs = ({*_OPTION.findall(_QUOTED.sub("''", text))} for text in (here, there))
    reset = [f"{option}={_DEFAULTS[option]}" for option in sorted(ours - theirs) if option in _DEFAULTS]
    if _PARTITIONS.search(here) and not _PARTITIONS.search(there):
        reset.append("REMOVE PARTITIONING")
    options = " ".join(_PARTITIONS.sub("", there).split())
    partitions = _PARTITIONS.search(there)
    return " ".join([options, *reset, *([" ".join(partitions[1].split())] if partitions else [])])


def _of_column(name: str, here: str | None, there: str | None) -> Difference:
    what = _told(f"column {name}", here and here.removeprefix(name), there and there.removeprefix(name))
    if there is None:
        return Difference(what, f"DROP COLUMN {name}")
    return Difference(what, f"{'ADD' if here is None else 'MODIFY'} COLUMN {there}")


def _told(name: str, here: str | None, there: str | None) -> str:
    if here is None:
        return f"{name} is missing"
    if there is None:
        return f"{name} is not on the leader"
    return f"{name} is {here.strip()}, on the leader {there.strip()}"
