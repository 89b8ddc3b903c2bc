"""Finds the definitions and tables that an entry of ``--accept FILE`` accepts. Pure.

An entry takes drift out of the verdict only if all its conditions hold. Drift that several entries accept counts for
the first of them. ``compare.accepted_rows`` finds the rows.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date

from cdc.config.table_globs import TableGlobs
from cdc.spark.ddl.definitions import SchemaDrift
from cdc.spark.ddl.lineage import TEXT
from cdc.spark.ddl.object_history import words

__all__ = ["DEFINITION", "ROWS", "SKIPPED_EVENT", "Entry", "first_entry"]

ROWS, DEFINITION, SKIPPED_EVENT = "rows", "definition", "skipped event"


@dataclass(frozen=True, slots=True)
class Entry:
    """Accepted drift: ``what`` (``ROWS``, …) of the objects that the glob ``name`` matches.

    Conditions for rows: the drift is one of these ``kinds``, no other than these ``columns`` differ, and the row has
    one of these ``keys`` (values as text). Conditions for a definition: no other than these ``statements`` made it
    different, and the object is of this ``kind``. None is no condition. The entry holds ``until`` the end of that day,
    in UTC. ``number`` is its place in the file, from 1.
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
        """Whether its name matches an object; a database has no ``name`` of its own."""
        if name is None:
            return self.name == database
        if not _names_object(self.name):
            return False
        return TableGlobs.of([self.name], key="accept.name", names_database=True).match(database, name)

    def accepts(self, drift: SchemaDrift) -> bool:
        """Whether the entry accepts that an object is defined differently, or that an event about it was skipped."""
        wanted = SKIPPED_EVENT if drift.cause == SKIPPED_EVENT else DEFINITION
        if wanted not in self.what or not self.names(drift.database, drift.name):
            return False
        if self.kind not in (None, drift.kind):
            return False
        if self.statements is None:
            return True
        # Without a known statement as the reason, something else is the reason.
        listed = [words(statement) for statement in self.statements]
        return bool(drift.statements) and all(len(each) < TEXT and words(each) in listed for each in drift.statements)


def _names_object(name: str) -> bool:
    return "." in name or "`" in name


def first_entry(drift: SchemaDrift, entries: Iterable[Entry]) -> int | None:
    """The number of the first entry that accepts ``drift``; None without one."""
    return next((each.number for each in entries if each.accepts(drift)), None)
