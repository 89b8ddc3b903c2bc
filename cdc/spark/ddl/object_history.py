"""Follows one server's statements, and lists for each object the statements that defined it. Pure.

An object's definition is the list of statements since the object was created. A table that is created LIKE another
table starts with the other table's list. So the whole list is kept if a tool (gh-ost, pt-online-schema-change) changes
a copy of the table.

This module also finds the table whose definition a statement CREATE TABLE … LIKE copies, and decides whether the texts
of two statements are the same, as when an operator runs a skipped statement by hand.

SQL is not interpreted here, so only these differences are ignored: white space and comments, upper and lower case
outside of strings, backquotes, and the follower's names of renamed databases.
"""

from collections.abc import Mapping
from itertools import islice

from cdc.config.renames import Renames
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import TEXT, Act
from cdc.sql.tokens import Token, tokens

__all__ = ["NEVER", "Definition", "Id", "Key", "definitions_after", "like_source", "same_statement", "words"]

_NO_NAMES: Mapping[str, str] = {}
_BARE_DOT = Token("mark", ".")


def same_statement(leader: Act, follower: Act, renames: Renames) -> bool:
    """Whether both statements, which affect objects of the same names in the same way, have the same text.

    ``leader`` and ``follower`` are the first acts of the statements: their URIs contain the leader's names, and their
    texts contain their own server's names. A text that was truncated is never the same.
    """
    truncated = max(len(leader.text), len(follower.text)) >= TEXT
    return not truncated and _words(leader, {}) == _words(follower, renames.leaders)


def words(statement: str, names: Mapping[str, str] = _NO_NAMES, *, of_database: bool = False) -> list[Token]:
    """Splits a statement into tokens, and removes the differences that this module ignores. ``names`` maps the names of
    databases to other names.

    ``of_database`` is true if all names in the statement are names of databases.
    """
    found = list(tokens(statement, ansi_quotes=False))
    compared = []
    for token, following in zip(found, [*found[1:], None], strict=True):
        if token.kind in ("word", "quoted"):
            text = names.get(token.text, token.text) if of_database or following == _BARE_DOT else token.text
            compared.append(Token("name", text.upper()))
        else:
            compared.append(token)
    return compared


def _words(act: Act, names: Mapping[str, str]) -> list[Token]:
    of_database = Uri.parse(act.uri).table is None and act.action.endswith("Database")
    return words(act.text, names, of_database=of_database)


_HEAD = 20  # number of tokens that contain both names of a CREATE TABLE … LIKE
_DOT, _BRACKET = Token("mark", "."), Token("mark", "(")


def like_source(act: Act, names: Mapping[str, str]) -> str | None:
    """Returns the URI of the table after LIKE, with the leader's name of its database; None for a statement without
    LIKE.

    Records contain this URI in ``like``. For older records the URI is parsed from the statement's text: ``names`` maps
    the server's names of databases to the leader's names, and a table name without a database belongs to the database
    of the new table.
    """
    if act.like or act.action != "CreateTable":
        return act.like
    words = list(islice(tokens(act.text, ansi_quotes=False), _HEAD))
    _, words = _name(words[5 if [each.word() for each in words[2:5]] == ["IF", "NOT", "EXISTS"] else 2 :])
    words = words[1:] if words[:1] == [_BRACKET] else words
    if not words or words[0].word() != "LIKE" or len(words) < 2:
        return None
    parts, _ = _name(words[1:])
    created = Uri.parse(act.uri)
    database = names.get(parts[0], parts[0]) if len(parts) == 2 else created.database
    return str(Uri(created.resource, database, parts[-1]))


def _name(words: list[Token]) -> tuple[list[str], list[Token]]:
    """Splits ``words`` into the parts of the name at their start, and the words after the name."""
    if len(words) > 2 and words[1] == _DOT:
        return [words[0].text, words[2].text], words[3:]
    return [each.text for each in words[:1]], words[1:]


NEVER = ("never named",)
"""Stands for the definition of an object that no statement names."""
_BEFORE = ("from before the topic",)

Id = int | str
"""Identifies a statement: the leader's sequence, or a text for a statement that only the follower ran."""
Key = tuple[str, str, str | None]
"""Identifies an object: its kind, its database and its name; the name is None for a database."""
Definition = tuple[Id, ...] | None
"""The ids of the statements that defined an object; None if the object was dropped."""


def definitions_after(
    statements: Mapping[int, tuple[Act, ...]], ids: Mapping[int, Id], names: Mapping[str, str]
) -> dict[Key, Definition]:
    """Determines the definition of each object after one server's ``statements``, which are in the order of their
    sequences.

    ``ids`` maps sequences to the statements' ids; ``names`` maps the databases in the statements' texts to the leader's
    names.
    """
    objects = _Objects(names)
    for sequence, acts in statements.items():
        for act in acts:
            objects.apply(act, ids[sequence])
    return objects.definitions


class _Objects:
    """The objects of one server and their definitions so far."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.definitions: dict[Key, Definition] = {}
        self._created_here: set[Key] = set()

    def apply(self, act: Act, statement: Id) -> None:
        """Applies ``act``, an effect of ``statement``, to the definitions."""
        verb, kind = _split(act.action)
        key = self._key(kind, act.uri)
        if verb == "Drop" and kind == "Database":
            for each in {key, *(each for each in self.definitions if each[1] == key[1])}:
                self._drop(each)
        elif verb == "Drop" and not act.action.endswith("Index"):
            self._drop(key)
        elif verb == "Rename" and act.to:
            definition = self.definitions.get(key, _BEFORE)
            self._drop(key)
            self._create(self._key(key[0], act.to), definition or _BEFORE)
        elif verb == "Create" and not act.action.endswith("Index"):
            # CREATE … IF NOT EXISTS does not change an existing table; only a view may be replaced.
            if kind == "View" or self.definitions.get(key) is None:
                self._create(key, (*self._copied(act), statement))
        elif verb != "Truncate":
            self.definitions[key] = (*(self.definitions.get(key) or _BEFORE), statement)

    def _copied(self, act: Act) -> tuple[Id, ...]:
        """Returns the beginning of the definition of the object that ``act`` creates: the definition of the table after
        LIKE, else nothing.
        """
        source = like_source(act, self._names)
        return (self.definitions.get(self._key("Table", source)) or _BEFORE) if source else ()

    def _create(self, key: Key, definition: tuple[Id, ...]) -> None:
        if key not in self.definitions:
            self._created_here.add(key)
        self.definitions[key] = definition

    def _drop(self, key: Key) -> None:
        """Forgets an object that these statements created; marks any other object as dropped."""
        if key in self._created_here:
            self._created_here.remove(key)
            del self.definitions[key]
        else:
            self.definitions[key] = None

    def _key(self, kind: str, uri: str) -> Key:
        parsed = Uri.parse(uri)
        key = (kind, parsed.database, parsed.table)
        # RENAME TABLE renames views too.
        view = ("View", parsed.database, parsed.table)
        return view if kind == "Table" and key not in self.definitions and self.definitions.get(view) else key


def _split(action: str) -> tuple[str, str]:
    """Returns the verb of an action, and the kind of its object; an index counts as its table."""
    verb = next((verb for verb in ("Create", "Alter", "Drop", "Rename", "Truncate") if action.startswith(verb)), "")
    kind = action[len(verb) :]
    return verb, "Table" if kind == "Index" else kind
