"""Statements of the binlog: what kind each is, and which objects a DDL statement affects, by full name.

Only the head of a statement names its objects, so the head is read token by token with MySQL's own lexical rules
(manual, "Language Structure": comments, executable comments, quoted identifiers, ANSI_QUOTES). A statement that is not
recognised is said to be unknown, never guessed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Effect", "Token", "classify", "tokens"]


class Effect(NamedTuple):
    """``action`` is Create, Alter, Drop, Rename or Truncate and the kind of object; ``to`` the new (database, name)."""

    action: str
    database: str
    name: str | None = None
    to: tuple[str, str] | None = None


class Token(NamedTuple):
    """``kind``: word, quoted (identifier), string, or mark; the text without its quotes."""

    kind: str
    text: str

    def word(self) -> str:
        """The keyword this may be, in capitals; empty for anything but an unquoted word."""
        return self.text.upper() if self.kind == "word" else ""


_TOKEN = re.compile(
    r"""(?P<space>\s+|--(?=\s|$)[^\n]*|\#[^\n]*|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/)
    |`(?P<backtick>(?:[^`]|``)*)`
    |"(?P<double>(?:[^"\\]|""|\\.)*)"
    |'(?P<single>(?:[^'\\]|''|\\.)*)'
    |(?P<word>[0-9A-Za-z_$\u0080-\uffff]+)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)

# Under NO_BACKSLASH_ESCAPES a backslash is a character like any other.
_PLAIN_TOKEN = re.compile(
    _TOKEN.pattern.replace(r'[^"\\]|""|\\.', '[^"]|""').replace(r"[^'\\]|''|\\.", "[^']|''"), _TOKEN.flags
)


def tokens(text: str, *, ansi_quotes: bool, backslash_escapes: bool = True) -> Iterator[Token]:
    """The statement's tokens; comments are left out, the content of executable ones (``/*!80000 … */``) is not."""
    for match in (_TOKEN if backslash_escapes else _PLAIN_TOKEN).finditer(text):
        kind = match.lastgroup
        content = match.group(kind) if kind else ""
        if kind == "backtick":
            yield Token("quoted", content.replace("``", "`"))
        elif kind == "double":
            yield Token("quoted" if ansi_quotes else "string", content.replace('""', '"'))
        elif kind == "single":
            yield Token("string", content)
        elif kind != "space":
            yield Token(kind or "mark", content)


_TRANSACTION = {"BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "XA"}
_DML = {"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "CALL", "DO", "WITH", "SELECT", "TABLE", "VALUES", "HANDLER"}
_ACCOUNT = {"GRANT", "REVOKE"}
_ADMIN = {"FLUSH", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "CHECKSUM", "CACHE", "INSTALL", "UNINSTALL", "RESET"}
_DEFINITION = {"CREATE", "ALTER", "DROP"}
_OBJECTS = {
    "TABLE": "Table", "DATABASE": "Database", "SCHEMA": "Database", "INDEX": "Index", "VIEW": "View",
    "TRIGGER": "Trigger", "PROCEDURE": "Procedure", "FUNCTION": "Function", "EVENT": "Event",
    "LIBRARY": "Library",
}  # fmt: skip
_ACCOUNT_OBJECTS = {"USER", "ROLE"}
_SERVER_OBJECTS = {"SERVER", "TABLESPACE", "UNDO", "LOGFILE", "RESOURCE", "SPATIAL_REFERENCE", "INSTANCE"}


@dataclass(slots=True)
class _Reader:
    """The tokens of one statement and how far they are read."""

    items: list[Token]
    database: str
    at: int = 0

    def peek(self) -> str:
        return self.items[self.at].word() if self.at < len(self.items) else ""

    def take(self, *words: str) -> bool:
        """Step over ``words`` where they come next."""
        found = [item.word() for item in self.items[self.at : self.at + len(words)]]
        if found != list(words):
            return False
        self.at += len(words)
        return True

    def mark(self, text: str) -> bool:
        if self.at < len(self.items) and self.items[self.at] == Token("mark", text):
            self.at += 1
            return True
        return False

    def identifier(self) -> str:
        if self.at >= len(self.items) or self.items[self.at].kind not in ("word", "quoted"):
            raise ValueError("a name is missing")
        self.at += 1
        return self.items[self.at - 1].text

    def name(self) -> tuple[str, str]:
        """``[database.]name`` with the session's database where none is written."""
        first = self.identifier()
        if self.mark("."):
            return first, self.identifier()
        return self.database, first

    def names(self) -> list[tuple[str, str]]:
        found = [self.name()]
        while self.mark(","):
            found.append(self.name())
        return found

    def skip_to(self, word: str) -> None:
        while self.at < len(self.items) and self.peek() != word:
            self.at += 1
        if not self.take(word):
            raise ValueError(f"{word} is missing")


def classify(
    text: str, *, database: str, ansi_quotes: bool, backslash_escapes: bool = True
) -> tuple[str, tuple[Effect, ...]]:
    """The statement's kind and, for ``ddl``, its effects.

    Kinds: ``begin``, ``commit``, ``rollback``, ``rollback to``, ``savepoint``, ``xa``, ``ddl``, ``account``, ``admin``,
    ``temporary``, ``dml``, ``unknown``.
    """
    items = list(tokens(text, ansi_quotes=ansi_quotes, backslash_escapes=backslash_escapes))
    reader = _Reader(items, database)
    head = reader.peek()
    if head in _TRANSACTION:
        return _transaction(reader), ()
    if head in _DML:
        return "dml", ()
    if head in _ACCOUNT or (head == "SET" and reader.items[1].word() in ("PASSWORD", "DEFAULT", "ROLE")):
        return "account", ()
    if head in _ADMIN:
        return "admin", ()
    try:
        return _definition(reader)
    except (ValueError, IndexError):
        return "unknown", ()


def _transaction(reader: _Reader) -> str:
    head = reader.identifier().upper()
    if head == "ROLLBACK" and (reader.take("TO") or reader.take("WORK", "TO")):
        return "rollback to"
    return "savepoint" if head == "RELEASE" else head.lower()


def _definition(reader: _Reader) -> tuple[str, tuple[Effect, ...]]:
    if reader.take("RENAME", "TABLE") or reader.take("RENAME", "TABLES"):
        return "ddl", tuple(_renames(reader))
    if reader.take("RENAME", "USER"):
        return "account", ()
    if reader.take("TRUNCATE"):
        reader.take("TABLE")
        return "ddl", (Effect("TruncateTable", *reader.name()),)
    verb = reader.peek()
    if verb not in _DEFINITION:
        return "unknown", ()
    reader.at += 1
    kind = _object_kind(reader)
    if kind == "Function" and [item.word() for item in reader.items[-2:]] == ["SONAME", ""]:
        return "admin", ()  # a loadable function belongs to the server, not to a database
    if kind in ("account", "admin", "temporary"):
        return kind, ()
    effects = tuple(_effects(verb.capitalize(), kind, reader))
    return ("ddl", effects) if effects else ("unknown", ())


def _renames(reader: _Reader) -> Iterator[Effect]:
    while True:
        old = reader.name()
        if not reader.take("TO"):
            raise ValueError("TO is missing")
        yield Effect("RenameTable", *old, to=reader.name())
        if not reader.mark(","):
            return


def _object_kind(reader: _Reader) -> str:
    """Step over what stands between the verb and the object's kind, such as DEFINER and ALGORITHM."""
    temporary = False
    while reader.at < len(reader.items):
        word = reader.peek()
        if word == "DEFINER" and reader.items[reader.at + 1] == Token("mark", "="):
            reader.at += 3  # DEFINER = user, and the host or the brackets of CURRENT_USER() may follow
            if reader.mark("@") or reader.mark("("):
                reader.at += 1
            continue
        reader.at += 1
        temporary = temporary or word == "TEMPORARY"
        if word in _OBJECTS:
            return "temporary" if temporary else _OBJECTS[word]
        if word in _ACCOUNT_OBJECTS:
            return "account"
        if word in _SERVER_OBJECTS or (word == "SPATIAL" and reader.peek() == "REFERENCE"):
            return "admin"
    raise ValueError("the kind of object is missing")


def _effects(verb: str, kind: str, reader: _Reader) -> Iterator[Effect]:
    reader.take("IF", "NOT", "EXISTS")
    reader.take("IF", "EXISTS")
    action = verb + kind
    if kind == "Database":
        yield Effect(action, _database(reader))
    elif kind == "Index":
        reader.identifier()
        reader.skip_to("ON")
        yield Effect(action, *reader.name())
    elif verb == "Drop" and kind in ("Table", "View"):
        yield from (Effect(action, *name) for name in reader.names())
    elif verb == "Alter" and kind == "Table":
        yield from _alter_table(reader)
    else:
        yield Effect(action, *reader.name())


def _database(reader: _Reader) -> str:
    """ALTER DATABASE may leave the name out; then an option's word stands in its place."""
    options = {"DEFAULT", "CHARACTER", "CHARSET", "COLLATE", "ENCRYPTION", "READ"}
    if reader.at >= len(reader.items) or reader.peek() in options:
        return reader.database
    return reader.identifier()


def _alter_table(reader: _Reader) -> Iterator[Effect]:
    table = reader.name()
    yield Effect("AlterTable", *table)
    depth = 0
    while reader.at < len(reader.items):
        token = reader.items[reader.at]
        depth += (token == Token("mark", "(")) - (token == Token("mark", ")"))
        reader.at += 1
        if depth:
            continue
        if token.word() == "RENAME" and reader.peek() not in ("COLUMN", "INDEX", "KEY"):
            # RENAME [TO | AS | =] name
            if not (reader.take("TO") or reader.take("AS")):
                reader.mark("=")
            yield Effect("RenameTable", *table, to=reader.name())
        elif token.word() in ("DISCARD", "IMPORT") and _tablespace(reader):
            raise ValueError("the rows of an imported tablespace are in no binlog")
        elif token.word() == "EXCHANGE" and reader.take("PARTITION"):
            reader.skip_to("TABLE")
            yield Effect("AlterTable", *reader.name())


def _tablespace(reader: _Reader) -> bool:
    """Whether DISCARD or IMPORT is followed by [PARTITION names] TABLESPACE."""
    return any(item.word() == "TABLESPACE" for item in reader.items[reader.at :])
