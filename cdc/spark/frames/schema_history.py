"""Represents the schema history of a leader's stream (DDL, table copies, column types), also as JSON. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cdc.errors import UserError
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import BEGINS_COPY, ENDS_COPY, Act, Name, table_name
from cdc.sql.tokens import Token, tokens

__all__ = [
    "NOTHING",
    "Columns",
    "CopyIncomplete",
    "Histories",
    "History",
    "NotTold",
    "Statement",
    "Told",
    "existing",
    "from_tree",
    "generated_columns",
    "to_tree",
    "untold",
    "upto",
    "with_more",
    "without_copies",
    "words_of",
]

_LIKE = 12  # number of words up to LIKE in CREATE TEMPORARY TABLE IF NOT EXISTS d.t (LIKE …
_WORDS = 4  # the first words of a definition, which contain the column's name: CHANGE COLUMN old new

Columns = tuple[tuple[str, str], ...]
"""Names and types of a table's columns, in order."""


class NotTold(UserError):
    """Raised if no record contains a table's columns yet: the table has no rows, or an old version of cdc wrote the
    stream without types.
    """


class CopyIncomplete(UserError):
    """Raised for a table that is being copied into the stream: the stream does not contain all of its rows yet."""


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a statement, and the session settings that it depends on. ``exact`` is true if the bytes of the
    statement can be restored from ``text``."""

    text: str
    sql_mode: frozenset[str]
    charset: str
    explicit_timestamps: bool
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Told:
    """The columns of a table as record ``sequence`` contains them; ``key`` is None for a table without a key."""

    name: Name
    sequence: int
    columns: Columns
    key: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class History:
    """All ``acts`` (effects of statements) in order, the ``statements`` by sequence, and ``told``, the columns of
    tables that records contain. ``silent_cascades`` is true if the server does not log the changes made by its foreign
    keys, as before MySQL 9.6."""

    acts: tuple[Act, ...]
    statements: Mapping[int, Statement]
    told: tuple[Told, ...]
    silent_cascades: bool

    def upto(self, sequence: int) -> list[Act]:
        """Returns the acts up to and including ``sequence``."""
        return [act for act in self.acts if act.sequence <= sequence]


class Histories:
    """Splits a leader's history into parts; tables that may have got names or rows from one another are in the same
    part. So each of many tables can be examined without reading the whole history for each.
    """

    def __init__(self, history: History) -> None:
        self._whole = history
        self._part_of = _parts(history.acts)
        self._acts: dict[Name, list[Act]] = {}  # the acts of each part; a part is named by one of its tables
        self._of_databases: dict[str, list[Act]] = {}
        self._told: dict[Name, list[Told]] = {}
        for act in history.acts:
            if name := table_name(act.uri):
                self._acts.setdefault(self._part(name), []).append(act)
            else:
                self._of_databases.setdefault(Uri.parse(act.uri).database, []).append(act)
        for told in history.told:
            self._told.setdefault(self._part(told.name), []).append(told)
        self._databases: dict[Name, set[str]] = {}
        for name in self._part_of:
            self._databases.setdefault(self._part(name), set()).add(name[0])

    @property
    def silent_cascades(self) -> bool:
        """Whether the server does not log the changes made by its foreign keys."""
        return self._whole.silent_cascades

    def of(self, name: Name) -> History:
        """Returns the part of the history that ``versions.plan`` needs for the table ``name``."""
        part = self._part(name)
        databases = sorted({"*", name[0]} | self._databases.get(part, set()))
        of_databases = (act for database in databases for act in self._of_databases.get(database, ()))
        acts = sorted([*self._acts.get(part, ()), *of_databases], key=lambda act: (act.sequence, act.place))
        whole = self._whole
        return History(tuple(acts), whole.statements, tuple(self._told.get(part, ())), whole.silent_cascades)

    def _part(self, name: Name) -> Name:
        return self._part_of.get(name, name)


def _parts(acts: Iterable[Act]) -> dict[Name, Name]:
    """Groups the tables: tables that one statement names, or renames to one another, are in one group. Maps each
    table's name to the name of one table in its group.
    """
    parts: dict[Name, Name] = {}
    members: dict[Name, list[Name]] = {}
    of_statement: dict[int, Name] = {}

    def join(one: Name, other: Name) -> None:
        small, large = sorted((parts.setdefault(one, one), parts.setdefault(other, other)), key=size)
        if small != large:
            moved = members.pop(small, [small])
            members.setdefault(large, [large]).extend(moved)
            parts.update(dict.fromkeys(moved, large))

    def size(part: Name) -> int:
        return len(members.get(part, ()))

    for act in acts:
        if not (name := table_name(act.uri)):
            continue
        join(name, name)
        if act.to and (new := table_name(act.to)):
            join(name, new)
        if act.action == "AlterTable":  # EXCHANGE PARTITION alters two tables
            join(of_statement.setdefault(act.sequence, name), name)
    return parts


def existing(history: History, sequence: int) -> dict[Name, int]:
    """Maps each table that exists after ``sequence`` to the sequence of the first statement or record that names the
    table since its creation.
    """
    found: dict[Name, int] = {}
    views: set[Name] = set()  # RENAME TABLE renames views, too
    events: list[tuple[int, int, Act | Told]] = [(act.sequence, act.place, act) for act in history.upto(sequence)]
    events += [(told.sequence, 0, told) for told in history.told if told.sequence <= sequence]
    for number, _, event in sorted(events, key=lambda each: each[:2]):
        if isinstance(event, Told):
            found.setdefault(event.name, number)
            continue
        name = table_name(event.uri)
        if event.action == "DropDatabase":
            database = Uri.parse(event.uri).database
            found = {each: first for each, first in found.items() if each[0] != database}
            views = {each for each in views if each[0] != database}
        elif event.action in ("DropTable", "DropView") and name:
            found.pop(name, None)
            views.discard(name)
        elif event.action == "CreateView" and name:
            views.add(name)
        elif event.action == "RenameTable" and name and event.to and (new := table_name(event.to)):
            if name in views:
                views = {*views, new} - {name}
            else:
                found[new] = found.pop(name, number)
        elif event.action in ("CreateTable", "AlterTable", "TruncateTable") and name:
            found.setdefault(name, number)
    return found


def untold(history: History, sequence: int, last: Mapping[Name, int]) -> list[Name]:
    """Lists the tables that have rows as of ``sequence`` but no description left in the stream: retention has deleted
    the records with their columns or their creation.

    ``last`` maps each name under which rows were logged to the sequence of its newest rows up to ``sequence``.
    """
    ended: dict[Name | str, int] = {}
    for act in history.upto(sequence):
        name = table_name(act.uri)
        if act.action == "DropDatabase":
            ended[Uri.parse(act.uri).database] = act.sequence
        elif name and act.action in ("DropTable", "RenameTable"):
            ended[name] = act.sequence
    there = existing(history, sequence)
    return sorted(
        name for name, newest in last.items()
        if name not in there and newest > max(ended.get(name, -1), ended.get(name[0], -1))
    )  # fmt: skip


def generated_columns(history: History, tables: Collection[str]) -> frozenset[str] | None:
    """Returns the case-folded names of columns that may be generated, for tables with these names; None if no statement
    creates such a table, so that its generated columns are not known.

    The names are taken from the statements, since records do not show that a value was computed. The result may contain
    too many names, since other words of a definition are taken for names, too.
    """
    if not _is_created(history, tables):
        return None
    wanted, found, about = {each.casefold() for each in tables}, set[str](), list[list[Token]]()
    for _, statement in sorted(history.statements.items(), reverse=True):
        words = words_of(statement)
        names = {each.text.casefold() for each in words if each.kind in ("word", "quoted")}
        if wanted.isdisjoint(names):
            continue
        about.append(words)
        if any(each.word() == "LIKE" for each in words[:_LIKE]):
            wanted |= names  # the new table gets the columns that the other table had before
    for words in reversed(about):
        found |= set(_computed(words))
        found |= {new for old, new in _renamed(words) if old in found}
    return frozenset(found)


def _is_created(history: History, tables: Collection[str]) -> bool:
    """Whether the history contains a definition of a table with one of these names, or of the table that such a table
    was created LIKE.
    """
    wanted = {each.casefold() for each in tables}
    for act in reversed(history.acts):
        name = table_name(act.uri) if act.action == "CreateTable" else None
        if name is None or name[1].casefold() not in wanted:
            continue
        like = table_name(act.like) if act.like else None
        if like is None:
            return True
        wanted.add(like[1].casefold())
    return False


def words_of(statement: Statement) -> list[Token]:
    """Splits the text of a statement into tokens, without comments."""
    modes = statement.sql_mode
    quotes, escapes = "ANSI_QUOTES" in modes, "NO_BACKSLASH_ESCAPES" not in modes
    return list(tokens(statement.text, ansi_quotes=quotes, backslash_escapes=escapes))


def _computed(words: Sequence[Token]) -> Iterator[str]:
    """Yields the first words of each column definition that contains AS and a bracket, as a generated column does."""
    opened = [0]  # the index at which the current definition begins, for each level of brackets
    for at, token in enumerate(words):
        if token == Token("mark", "("):
            if at and words[at - 1].word() == "AS":
                yield from (each.text.casefold() for each in words[opened[-1] : at - 1][:_WORDS])
            opened.append(at + 1)
        elif token == Token("mark", ")") and len(opened) > 1:
            opened.pop()
        elif token == Token("mark", ","):
            opened[-1] = at + 1
        elif len(opened) == 1 and token.word() in ("ADD", "MODIFY", "CHANGE"):
            opened[-1] = at  # the first clause, after the table's name


def _renamed(words: Sequence[Token]) -> Iterator[tuple[str, str]]:
    for at, token in enumerate(words[: len(words) - 4]):
        if token.word() == "RENAME" and words[at + 1].word() == "COLUMN" and words[at + 3].word() == "TO":
            yield words[at + 2].text.casefold(), words[at + 4].text.casefold()


# Writes the schema history of a stream as JSON and reads it, so that a later run needs to read only new records.

NOTHING = History((), {}, (), False)


def to_tree(history: History) -> dict[str, Any]:
    """Converts the history to a tree of dictionaries and lists for ``json.dumps``."""
    return {
        "acts": [asdict(act) for act in history.acts],
        "statements": {
            str(sequence): {**asdict(each), "sql_mode": sorted(each.sql_mode)}
            for sequence, each in history.statements.items()
        },
        "told": [asdict(each) for each in history.told],
        "silent": history.silent_cascades,
    }


def from_tree(tree: dict[str, Any]) -> History:
    """Converts a tree from ``to_tree`` to a history. Raises KeyError, TypeError or ValueError for any other tree."""
    statements = {
        int(sequence): Statement(**{**each, "sql_mode": frozenset(each["sql_mode"])})
        for sequence, each in tree["statements"].items()
    }
    return History(
        tuple(Act(**each) for each in tree["acts"]),
        statements,
        tuple(_told(each) for each in tree["told"]),
        # Earlier versions of cdc wrote this under another key. That key is not read: a repair could make it wrong.
        bool(tree.get("silent")),
    )


def with_more(history: History, more: History) -> History:
    """Joins ``history`` with ``more``, the history of the records that follow."""
    return History(
        (*history.acts, *more.acts),
        {**history.statements, **more.statements},
        (*history.told, *more.told),
        history.silent_cascades or more.silent_cascades,
    )


def without_copies(history: History, *, upto: int) -> History:
    """Returns the history without the table copies that began at or before ``upto``: some records of these copies, or
    of later changes, are missing.
    """
    acts = tuple(act for act in history.acts if act.sequence > upto or act.action not in (BEGINS_COPY, ENDS_COPY))
    return replace(history, acts=acts) if upto >= 0 else history


def upto(history: History, sequence: int) -> History:
    """Returns the history of the records up to and including ``sequence``."""
    statements = {number: each for number, each in history.statements.items() if number <= sequence}
    told = tuple(each for each in history.told if each.sequence <= sequence)
    return History(tuple(history.upto(sequence)), statements, told, history.silent_cascades)


def _told(tree: dict[str, Any]) -> Told:
    database, table = tree["name"]
    columns = tuple((name, kind) for name, kind in tree["columns"])
    key = None if tree["key"] is None else tuple(tree["key"])
    return Told((database, table), int(tree["sequence"]), columns, key)
