"""Decides whether an entry of ``--accept FILE`` accepts the drift of a definition, and whether the entry's name matches
a table. Pure.

An entry removes drift from the verdict only if all its conditions hold. Drift that several entries accept is counted
for the first of them. ``spark.findings`` finds the accepted rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from cdc.config.table_globs import TableGlobs
from cdc.spark.ddl.definitions import EMPTIED, SchemaDrift, words
from cdc.spark.ddl.lineage import TEXT

__all__ = ["DEFINITION", "ROWS", "SKIPPED_EVENT", "Entry", "first_entry"]

ROWS, DEFINITION, SKIPPED_EVENT = "rows", "definition", "skipped event"


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the file. It accepts the sorts of drift in ``what`` (``ROWS``, …), in objects whose names match the
    glob ``name``.

    The conditions for rows are that the drift is one of ``kinds``, that no columns other than ``columns`` differ, and
    that the row's key is one of ``keys`` (values as text). The conditions for a definition are that no statements other
    than ``statements`` made it different, and that the object is of this ``kind``. A condition that is None always
    holds. The entry expires at the end of the day ``until``, in UTC. ``number`` is the entry's place in the file, from
    1.
    """

    number: int
    what: tuple[str, ...]
    name: str
    reason: str
    until: date | None = None
    kinds: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    keys: tuple[Mapping[str, str], ...] | None = None
    statements: tuple[str, ...] | None = None
    kind: str | None = None

    def names(self, database: str, name: str | None) -> bool:
        """Whether the entry's name matches an object; for a database ``name`` is None."""
        if name is None:
            return self.name == database
        if not _names_object(self.name):
            return False
        return TableGlobs.of([self.name], key="accept.name", names_database=True).match(database, name)

    def accepts(self, drift: SchemaDrift) -> bool:
        """Whether the entry accepts ``drift``. The object of ``drift`` is defined differently, was perhaps changed by
        an event that an operator skipped, or is a table that one side has emptied.
        """
        if drift.cause == EMPTIED:
            return self._accepts_all_rows() and self.names(drift.database, drift.name)
        wanted = SKIPPED_EVENT if drift.cause == SKIPPED_EVENT else DEFINITION
        if wanted not in self.what or not self.names(drift.database, drift.name):
            return False
        if self.kind not in (None, drift.kind):
            return False
        if self.statements is None:
            return True
        # If ``drift`` has no statements, something else made the object different, and the entry does not accept it.
        listed = [words(statement) for statement in self.statements]
        return bool(drift.statements) and all(len(each) < TEXT and words(each) in listed for each in drift.statements)

    def _accepts_all_rows(self) -> bool:
        """Whether the entry accepts any drift of the rows of a table, because it has no conditions for rows."""
        return ROWS in self.what and (self.kinds, self.columns, self.keys) == (None, None, None)


def _names_object(name: str) -> bool:
    return "." in name or "`" in name


def first_entry(drift: SchemaDrift, entries: Iterable[Entry]) -> int | None:
    """Returns the number of the first entry that accepts ``drift``, or None if no entry accepts it."""
    return next((each.number for each in entries if each.accepts(drift)), None)
