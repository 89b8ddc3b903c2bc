"""Which table a row belongs to in the end: statements drop, empty and rename tables, names alone don't tell. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cdc.model.uri import Uri

__all__ = ["END", "TEXT", "Act", "Name", "Segment", "lifelines", "named"]

Name = tuple[str, str]
END = 1 << 62
TEXT = 10_000  # characters that are kept of a statement


@dataclass(frozen=True, slots=True, order=True)
class Act:
    """One thing a statement did: the record's sequence, its place in the statement, the action and the URIs.

    ``to`` is a new name, ``like`` the table after which another is made.

    What else is known of the statement: its transaction, binlog position, commit time (µs since 1970) and its first
    TEXT characters.
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


@dataclass(frozen=True, slots=True)
class Segment:
    """From ``first`` up to but not including ``end``, the rows logged for a table belong to ``owner`` (None: gone).

    ``era`` numbers the shapes between ALTERs: images of one row are comparable within an era.
    """

    database: str
    table: str
    first: int
    end: int
    era: int
    owner: Name | None


@dataclass(slots=True, eq=False)
class _Life:
    """A table from CREATE to DROP, under all its names: (name, first, end, era) of each stretch."""

    name: Name | None
    since: int
    era: int = 0
    stretches: list[tuple[Name, int, int, int]] = field(default_factory=list)

    def close(self, name: Name, sequence: int) -> None:
        if self.since < sequence:
            self.stretches.append((name, self.since, sequence, self.era))
        self.since = sequence


class _Lives:
    """All lives of one server's tables. CREATE begins nothing: a name's next life starts where its last one ended."""

    def __init__(self, names: Iterable[Name]) -> None:
        self.all = [_Life(name, 0) for name in names]
        self.live: dict[Name, _Life] = {life.name: life for life in self.all if life.name}

    def end(self, name: Name, sequence: int) -> None:
        life = self.live[name]
        life.close(name, sequence)
        life.name = None
        self._begin(name, sequence)

    def rename(self, old: Name, new: Name, sequence: int) -> None:
        self.end(new, sequence)
        life = self.live[old]
        life.close(old, sequence)
        self.all.remove(self.live[new])
        life.name, self.live[new] = new, life
        self._begin(old, sequence)

    def alter(self, name: Name, sequence: int) -> None:
        self.live[name].close(name, sequence)
        self.live[name].era += 1

    def _begin(self, name: Name, sequence: int) -> None:
        self.live[name] = _Life(name, sequence)
        self.all.append(self.live[name])


def lifelines(tables: Iterable[Name], acts: Iterable[Act]) -> list[Segment]:
    """Segments that together cover every sequence of every table in ``tables`` and of those the acts name, once each.

    ``acts`` are the statements of one server up to where its stream is folded.
    """
    ordered = [act for act in sorted(acts) if act.action.endswith(("Table", "Database"))]
    lives = _Lives(sorted({*tables, *named(ordered)}))
    for act in ordered:
        _apply(lives, act)
    segments = []
    for life in lives.all:
        if life.name:
            life.close(life.name, END)
        segments += [Segment(*name, first, end, era, life.name) for name, first, end, era in life.stretches]
    return segments


def named(acts: Iterable[Act]) -> frozenset[Name]:
    """The tables, and what else has a name in a database, that statements name."""
    return frozenset(name for act in acts for uri in (act.uri, act.to) if uri and (name := _name(uri)))


def _apply(lives: _Lives, act: Act) -> None:
    name = _name(act.uri)
    if act.action == "DropDatabase":
        database = Uri.parse(act.uri).database
        for each in [each for each in lives.live if each[0] == database]:
            lives.end(each, act.sequence)
    elif name and act.action in ("DropTable", "TruncateTable"):
        lives.end(name, act.sequence)
    elif name and act.action == "RenameTable" and act.to and (new := _name(act.to)) not in (None, name):
        lives.rename(name, new, act.sequence)
    elif name and act.action == "AlterTable":
        lives.alter(name, act.sequence)


def _name(uri: str) -> Name | None:
    parsed = Uri.parse(uri)
    return (parsed.database, parsed.table) if parsed.table is not None else None
