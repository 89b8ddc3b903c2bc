"""Computes table lineage: which table finally owns the rows that were logged under a table name at a sequence. Pure.

Later statements drop, empty and rename tables, so the rows that were logged under a name may now belong to a table of
another name, or may be deleted.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from cdc.model.names import Uri

__all__ = [
    "ALTERS",
    "BEGINS_COPY",
    "CASCADES",
    "END",
    "ENDS_COPY",
    "PARKS",
    "TEXT",
    "UNPARKS",
    "Act",
    "Beginning",
    "Name",
    "Segment",
    "beginnings",
    "exchanged",
    "lineage",
    "named_tables",
    "own_alters",
    "table_name",
    "with_eras",
]  # fmt: skip

Name = tuple[str, str]
"""Database and table."""
# MySQL maps CREATE INDEX and DROP INDEX to ALTER TABLE (manual, both statements), so both may change the key that
# identifies rows.
ALTERS = ("AlterTable", "CreateIndex", "DropIndex")

END = 1 << 62
BEGINS_COPY, ENDS_COPY, PARKS, UNPARKS = "CopyTable", "CopiedTable", "ParkTable", "UnparkTable"
"""Actions that stand for records, not for statements: a table's copy begins with BEGINS_COPY, and is complete with
ENDS_COPY. With PARKS the follower leaves out all later changes of the table, until a copy of it is complete, or until
UNPARKS: its operator has had them applied, or has given them up.
"""
CASCADES = "foreign keys change its rows without a record"
"""The text of a BEGINS_COPY if foreign keys may change rows of the table without a record."""

TEXT = 10_000  # characters of a statement that are kept; the rest is truncated

_IF_NOT_EXISTS = re.compile(r"\bIF\s+NOT\s+EXISTS\b", re.IGNORECASE)


class Beginning(IntEnum):
    """Whether a stream contains a table from the table's beginning, and so contains all its rows.

    OLDER: no statement shows the beginning, so the table may have older rows. PERHAPS: the table was created IF NOT
    EXISTS, so it may be older than the statement. KNOWN: the stream contains the beginning.
    """

    OLDER = 0
    PERHAPS = 1
    KNOWN = 2


@dataclass(frozen=True, slots=True, order=True)
class Act:
    """One effect of a statement: ``action`` (such as DropTable) on the object ``uri``.

    ``sequence`` is the sequence of the statement's record, and ``place`` is the index of the effect in the statement.
    ``to`` is the new name in a rename, and ``like`` is the table whose definition is copied. ``copying`` is true if the
    table that the statement creates is incomplete until its rows are copied. The other fields describe the statement:
    its transaction, its binlog position, its commit time (µs since 1970) and its first TEXT characters.

    For a note of the consumer (PARKS, UNPARKS), ``noted`` is the follower's sequence of the record with the note.
    """

    sequence: int
    place: int
    action: str
    uri: str
    to: str | None = None
    like: str | None = field(default=None, compare=False)
    transaction: str = field(default="", compare=False)
    file: str = field(default="", compare=False)
    position: int = field(default=0, compare=False)
    ts_us: int = field(default=0, compare=False)
    text: str = field(default="", compare=False)
    copying: bool = field(default=False, compare=False)
    noted: int = field(default=-1, compare=False)

    @property
    def is_of_copy(self) -> bool:
        """Whether this is the beginning or the end of a table's copy, or of its parking: no effect of a statement."""
        return self.action in (BEGINS_COPY, ENDS_COPY, PARKS, UNPARKS)


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows that were logged under a table's name from sequence ``first`` up to but not including ``end``.

    ``owner`` is the table to which these rows belong in the end; None if they were deleted. ``era`` is the number of
    earlier ALTERs: only images of the same era have the same columns and can be compared. ``beginning`` describes the
    owner's beginning.
    """

    database: str
    table: str
    first: int
    end: int
    era: int
    owner: Name | None
    beginning: Beginning = field(default=Beginning.OLDER, compare=False)


@dataclass(slots=True, eq=False)
class _Life:
    """The life of a table from its creation to its drop. ``stretches`` are the periods under one name without an ALTER:
    (name, first sequence, end sequence, number of earlier ALTERs)."""

    name: Name | None
    since: int
    beginning: Beginning
    era: int = 0
    stretches: list[tuple[Name, int, int, int]] = field(default_factory=list)

    def close(self, name: Name, sequence: int) -> None:
        """Ends the current stretch before ``sequence``."""
        if self.since < sequence:
            self.stretches.append((name, self.since, sequence, self.era))
        self.since = sequence


class _Lives:
    """The lives of one server's tables. A name's next life starts where its last life ended, not at the next CREATE."""

    def __init__(self, names: Iterable[Name], known: Mapping[Name, Beginning]) -> None:
        # This is a dict, not a list: it keeps the order, too, but removing one of many lives takes no search.
        self.all = {_Life(name, 0, known.get(name, Beginning.OLDER)): None for name in names}
        self.live: dict[Name, _Life] = {life.name: life for life in self.all if life.name}
        self._of_databases: dict[str, list[Name]] = {}
        for name in self.live:
            self._of_databases.setdefault(name[0], []).append(name)

    def of_database(self, database: str) -> Sequence[Name]:
        """Returns the names of all tables in ``database``."""
        return self._of_databases.get(database, ())

    def end(self, name: Name, sequence: int) -> None:
        """Notes that the table was dropped or emptied, or that a copy of all its rows begins: earlier records no longer
        count."""
        life = self.live[name]
        life.close(name, sequence)
        life.name = None
        self._start(name, sequence)

    def rename(self, old: Name, new: Name, sequence: int) -> None:
        """Continues the table's life under a new name, with its rows."""
        self.end(new, sequence)
        life = self.live[old]
        life.close(old, sequence)
        del self.all[self.live[new]]
        life.name, self.live[new] = new, life
        self._start(old, sequence)

    def alter(self, name: Name, sequence: int) -> None:
        """Continues the table's life with other columns."""
        self.live[name].close(name, sequence)
        self.live[name].era += 1

    def begin(self, name: Name, beginning: Beginning) -> None:
        """Notes that the table, or its database, was created."""
        life = self.live[name]
        life.beginning = max(life.beginning, beginning)

    def _start(self, name: Name, sequence: int) -> None:
        self.live[name] = _Life(name, sequence, Beginning.KNOWN)
        self.all[self.live[name]] = None


def lineage(
    tables: Iterable[Name], acts: Iterable[Act], known: Mapping[Name, Beginning] | None = None
) -> list[Segment]:
    """Returns segments that cover every sequence of every table name exactly once, for ``tables`` and all tables that
    ``acts`` name.

    ``acts`` are the effects of one server's statements, up to the sequence at which its stream is compared. ``known``
    maps tables to the beginnings that earlier statements have shown.
    """
    ordered = [act for act in sorted(acts) if act.action.endswith(("Table", "Index", "Database"))]
    lives = _Lives(sorted({*tables, *named_tables(ordered)}), known or {})
    for act in ordered:
        _apply(lives, act)
    segments = []
    for life in lives.all:
        if life.name:
            life.close(life.name, END)
        segments += [
            Segment(*name, first, end, era, life.name, life.beginning) for name, first, end, era in life.stretches
        ]
    return segments


def with_eras(lineage: Sequence[Segment]) -> Iterator[tuple[Segment, int]]:
    """Yields the segments, each with its era counted from the end: 0 if no ALTER of the table followed, else the
    negative number of ALTERs that followed. Counted in this way, the eras of both streams and of a state agree,
    although they may begin at different places.
    """
    now = {each.owner: each.era for each in lineage if each.end == END}
    return ((each, each.era - now.get(each.owner, 0)) for each in lineage)


def beginnings(lineage: Iterable[Segment]) -> dict[Name, Beginning]:
    """Maps each table that may have rows to its beginning."""
    return {each.owner: each.beginning for each in lineage if each.owner}


def own_alters(tables: Iterable[Name], acts: Sequence[Act], is_own: Callable[[Act], bool]) -> dict[Name, list[int]]:
    """Maps each table that still exists to the sequences of those of its ALTERs for which ``is_own`` is true; a
    sequence is there as often as it counts for the table's eras.
    """
    own = Counter((table_name(act.uri), act.sequence) for act in acts if act.action in ALTERS and is_own(act))
    found: dict[Name, list[int]] = {}
    for each in lineage(tables, acts) if own else ():
        if each.owner and (count := own[(each.database, each.table), each.first]):
            found.setdefault(each.owner, []).extend([each.first] * count)
    return found


def exchanged(acts: Iterable[Act], segments: Iterable[Segment]) -> int | None:
    """Returns the sequence of an EXCHANGE PARTITION with which one of the ``segments`` begins; None if no segment
    begins with such a statement.

    After the statement, the table contains rows that were logged for another table. The statement is recognized by its
    two altered tables, since no other statement alters two tables.
    """
    altered: dict[int, set[Name | None]] = {}
    for act in acts:
        if act.action == "AlterTable":
            altered.setdefault(act.sequence, set()).add(table_name(act.uri))
    of_both = {sequence: names for sequence, names in altered.items() if len(names) > 1}
    begun = (each.first for each in segments if (each.database, each.table) in of_both.get(each.first, ()))
    return next(begun, None)


def named_tables(acts: Iterable[Act]) -> frozenset[Name]:
    """Returns the names of all tables and other database objects that the statements ``acts`` affect."""
    return frozenset(name for act in acts for uri in (act.uri, act.to) if uri and (name := table_name(uri)))


def _apply(lives: _Lives, act: Act) -> None:
    name = table_name(act.uri)
    if act.action == "DropDatabase":
        for each in lives.of_database(Uri.parse(act.uri).database):
            lives.end(each, act.sequence)
    elif name and act.action in ("DropTable", "TruncateTable", BEGINS_COPY):
        lives.end(name, act.sequence)
    elif name and act.action == "RenameTable" and act.to and (new := table_name(act.to)) not in (None, name):
        lives.rename(name, new, act.sequence)
    elif name and act.action in ALTERS:
        lives.alter(name, act.sequence)
    elif act.action == "CreateDatabase" and not act.copying and not _IF_NOT_EXISTS.search(act.text):
        for each in lives.of_database(Uri.parse(act.uri).database):
            lives.begin(each, Beginning.KNOWN)
    elif name and act.action == "CreateTable" and not act.copying:
        lives.begin(name, Beginning.PERHAPS if _IF_NOT_EXISTS.search(act.text) else Beginning.KNOWN)


def table_name(uri: str) -> Name | None:
    """Returns the database and the table in a URI, or None if the URI names a database."""
    parsed = Uri.parse(uri)
    return (parsed.database, parsed.table) if parsed.table is not None else None
