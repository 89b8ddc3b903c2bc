"""Follows one server's statements and lists for each object the statements that defined it. Pure.

An object's definition is the list of statements since it was created. A table that is created LIKE another starts with
that table's list, so a change by way of a copy (gh-ost, pt-online-schema-change) keeps the whole list.
"""

from collections.abc import Mapping

from cdc.model.uri import Uri
from cdc.spark.ddl.like_source import like_source
from cdc.spark.ddl.lineage import Act

__all__ = ["NEVER", "Definition", "Id", "Key", "definitions_after"]

NEVER = ("never named",)
"""The definition of an object that no statement names."""
_BEFORE = ("from before the topic",)

Id = int | str
"""A statement: the leader's sequence, or another name for a statement of the follower's own."""
Key = tuple[str, str, str | None]
"""An object: its kind, database and name; a database has no name."""
Definition = tuple[Id, ...] | None
"""The statements that defined an object; None where it was dropped."""


def definitions_after(
    statements: Mapping[int, tuple[Act, ...]], ids: Mapping[int, Id], names: Mapping[str, str]
) -> dict[Key, Definition]:
    """The definition of each object after one server's ``statements``, which are given by sequence, in order.

    ``ids`` has the id of each statement, ``names`` the leader's names of the databases in the statements' texts.
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
        """Change the definitions as ``act`` of the ``statement`` does."""
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
            # CREATE … IF NOT EXISTS leaves an existing table unchanged; only a view is replaced.
            if kind == "View" or self.definitions.get(key) is None:
                self._create(key, (*self._copied(act), statement))
        elif verb != "Truncate":
            self.definitions[key] = (*(self.definitions.get(key) or _BEFORE), statement)

    def _copied(self, act: Act) -> tuple[Id, ...]:
        """The definition with which the object created by ``act`` starts."""
        source = like_source(act, self._names)
        return (self.definitions.get(self._key("Table", source)) or _BEFORE) if source else ()

    def _create(self, key: Key, definition: tuple[Id, ...]) -> None:
        if key not in self.definitions:
            self._created_here.add(key)
        self.definitions[key] = definition

    def _drop(self, key: Key) -> None:
        """Forget an object that these statements created; remember of any other that it was dropped."""
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
    """Verb and kind of object of an action; an index counts as its table."""
    verb = next((verb for verb in ("Create", "Alter", "Drop", "Rename", "Truncate") if action.startswith(verb)), "")
    kind = action[len(verb) :]
    return verb, "Table" if kind == "Index" else kind
