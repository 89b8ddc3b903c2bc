"""Compares both servers' statements, and finds **schema drift**: objects that different statements defined, tables that
only one side emptied, and objects that a skipped event may have changed. Pure.

The audit does not interpret SQL. An object's definition is the list of statements since the object was created; if the
lists of both servers differ, the object counts as different. So an ALTER that another ALTER reverted is drift until the
object is created again, while statements before a DROP are ignored.

If the follower ran a statement for the leader, the statement's GTID determines the leader's sequence
(``model.gtid``), so that the statements of both servers can be matched. All other statements are the
follower's own. A statement that an operator skipped and then ran by hand, with the same text on the same objects,
counts as run.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.renames import Renames
from cdc.config.table_globs import copy_command
from cdc.model.gtid import StatementSequences
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import (
    BEGINS_COPY,
    ENDS_COPY,
    TEXT,
    Act,
    Beginning,
    Name,
    Segment,
    beginnings,
    lineage,
    table_name,
)
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import Token, excerpt, tokens

__all__ = [
    "CAUSE",
    "EMPTIED",
    "NEVER",
    "Definition",
    "Definitions",
    "Id",
    "Key",
    "SchemaDrift",
    "Unmatched",
    "definitions",
    "definitions_after",
    "emptied_drift",
    "is_skip",
    "like_source",
    "renamed_statement",
    "same_statement",
    "skipped_event_drift",
    "words",
]

# Follows one server's statements, and lists for each object the statements that defined it.
#
# An object's definition is the list of statements since the object was created. A table that is created LIKE another
# table starts with the other table's list. So a table keeps its whole list if gh-ost creates a new table LIKE it,
# alters the new table, and gives the new table its name.
#
# This module also finds the table whose definition a statement CREATE TABLE … LIKE copies. And it decides whether the
# texts of two statements are the same, so that a skipped statement that an operator ran by hand is recognized.
#
# SQL is not interpreted here, so only these differences are ignored: white space and comments, upper and lower case
# outside of strings, backquotes, and the follower's names of renamed databases.

_NO_NAMES: Mapping[str, str] = {}
_BARE_DOT = Token("mark", ".")


def same_statement(leader: Act, follower: Act, renames: Renames) -> bool:
    """Whether both statements, which affect objects of the same names in the same way, have the same text.

    ``leader`` and ``follower`` are the statements' first effects, which contain the statements' texts. A text contains
    the names that its own server uses; URIs contain the leader's names. A text that was truncated is never the same.
    """
    truncated = max(len(leader.text), len(follower.text)) >= TEXT
    return not truncated and _words(leader, {}) == _words(follower, renames.leaders)


def words(statement: str, names: Mapping[str, str] = _NO_NAMES, *, of_database: bool = False) -> list[Token]:
    """Splits a statement into tokens that are equal for two statements that differ only in white space, comments,
    backquotes, or the case of words and names.

    ``names`` maps the names of databases to other names, which replace them. ``of_database`` is true if all names in
    the statement are names of databases.
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

    Records contain this URI in ``like``. For records of earlier versions of cdc the URI is parsed from the statement's
    text: ``names`` maps the server's names of databases to the leader's names, and a table name without a database
    belongs to the database of the new table.
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

    ``ids`` maps the statements' sequences to their ids, which are the same for a leader's statement and for the
    follower's statement that repeats it. ``names`` maps the databases in the statements' texts to the leader's names.
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


_LISTED = 3  # number of statements in the evidence about one object
_NO_RENAMES = Renames({})

Statements = Mapping[int, tuple[Act, ...]]
"""Maps the sequence of each statement of one server, in order, to the effects of the statement."""


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A statement that only one side ran; ``evidence`` describes it. ``skipped`` is true if an operator skipped the
    statement on the follower."""

    side: str
    sequence: int
    acts: tuple[Act, ...]
    skipped: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """An object that the sides define differently. ``kind`` is Table, View, Database, …; for a database ``name`` is
    None.

    ``statements`` are the texts of all statements that may have made it different.
    """

    kind: str
    database: str
    name: str | None
    cause: str
    evidence: str
    statements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Definitions:
    """The objects that differ, sorted by name, and all statements that only one side ran, in order."""

    drift: list[SchemaDrift]
    unmatched: list[Unmatched]


def definitions(
    leader: Iterable[Act],
    follower: Iterable[Act],
    *,
    sequences: StatementSequences,
    not_run: Mapping[int, str],
    rows: Collection[object],
    renames: Renames = _NO_RENAMES,
) -> Definitions:
    """Compares the objects that both sides' statements define.

    ``leader`` are the statements of the leader up to the compared sequence; ``sequences`` finds the statements among
    them that the follower ran. ``not_run`` contains the statements that the follower did not run: the keys are their
    sequences, the values are their states in the follower's ledger. ``rows`` are the (database, table) of all rows.
    URIs contain the leader's names of databases; the texts of the follower's statements contain the names that result
    from ``renames``.
    """
    skipped = {sequence for sequence, state in not_run.items() if state == "skipped"}
    to_run = (act for act in leader if act.sequence not in not_run or act.sequence in skipped)
    ours = _statements(act for act in to_run if not act.action.endswith(LEADER_ONLY))
    theirs = _statements(follower)
    ids = _ids_of_follower(theirs, {each: ours[each] for each in sorted(skipped) if each in ours}, sequences, renames)
    unmatched = [*_unmatched(ours, theirs, ids, skipped)]
    by_leader = definitions_after(ours, {sequence: sequence for sequence in ours}, {})
    by_follower = definitions_after(theirs, ids, renames.leaders)
    drift = [
        _drift(key, unmatched, _defining(unmatched, ids, [side.get(key) or () for side in (by_leader, by_follower)]))
        for key in sorted(by_leader.keys() | by_follower.keys(), key=str)
        if _differ(by_leader.get(key, NEVER), by_follower.get(key, NEVER), key, unmatched, rows)
    ]
    return Definitions(drift, unmatched)


def renamed_statement(leader: Iterable[Act], follower: Iterable[Act], *, sequences: StatementSequences) -> int | None:
    """Finds the first statement of the leader, in the follower's order, that the follower ran on objects with other
    names than the leader. Returns its sequence, or None if there is no such statement.
    """
    ours, theirs = _statements(leader), _statements(follower)
    for acts in theirs.values():
        number = _id(acts, sequences)
        if isinstance(number, int) and number in ours and _effects(ours[number]) != _effects(acts):
            return number
    return None


def _statements(acts: Iterable[Act]) -> Statements:
    """Groups ``acts`` by statement, without statements on the consumer's own database."""
    found: dict[int, tuple[Act, ...]] = {}
    for act in sorted(acts):
        if Uri.parse(act.uri).database != CHECKPOINT_DATABASE:
            found[act.sequence] = (*found.get(act.sequence, ()), act)
    return found


def _ids_of_follower(
    statements: Statements, skipped: Statements, sequences: StatementSequences, renames: Renames
) -> Mapping[int, Id]:
    """Maps the sequence of each of the follower's statements to the statement's id: the sequence of the leader's
    statement that it repeats, or a text for a statement that only the follower ran.

    If a statement of the follower's own has the same text and objects as a statement of the leader that was
    ``skipped``, it gets the id of the skipped statement.
    """
    ids = {sequence: _id(acts, sequences) for sequence, acts in statements.items()}
    for number, acts in skipped.items():
        for sequence, own in statements.items():
            alike = isinstance(ids[sequence], str) and _effects(own) == _effects(acts)
            if alike and same_statement(acts[0], own[0], renames):
                ids[sequence] = number
                break
    return ids


def _id(acts: Sequence[Act], sequences: StatementSequences) -> Id:
    """Returns the id of a follower's statement: the leader's sequence if the follower ran it for the leader, else a
    text.
    """
    found = sequences.of(acts[0].transaction)
    return f"follower {acts[0].sequence}" if found is None else found


def _effects(acts: Iterable[Act]) -> list[tuple[str, object, object]]:
    """Returns the effects of a statement, in which the names of objects do not contain the server's name."""
    return [(act.action, Uri.parse(act.uri)[1:], act.to and Uri.parse(act.to)[1:]) for act in acts]


def _unmatched(
    ours: Statements, theirs: Statements, ids: Mapping[int, Id], skipped: Collection[int]
) -> Iterable[Unmatched]:
    """Yields the statements that only the leader ran, then the statements that only the follower ran."""
    ran = set(ids.values())
    for sequence, acts in ours.items():
        if sequence not in ran:
            is_skipped = sequence in skipped
            evidence = _evidence("left out by the consumer" if is_skipped else "only the leader has", acts[0], sequence)
            yield Unmatched("leader", sequence, acts, is_skipped, evidence)
    for sequence, acts in theirs.items():
        if ids[sequence] not in ours:
            yield Unmatched("follower", sequence, acts, False, _evidence("only the follower has", acts[0]))


def _evidence(what: str, act: Act, sequence: int | None = None) -> str:
    """Describes a statement in one line, with the leader's ``sequence`` or the follower's transaction."""
    when = datetime.fromtimestamp(act.ts_us / 1e6, UTC).isoformat(sep=" ", timespec="seconds")
    where = f"transaction {act.transaction}" if sequence is None else f"sequence {sequence}"
    return f"{what}: {excerpt(act.text)} ({where} at {act.file}:{act.position}, {when[:19]} UTC)"


def _differ(
    ours: Definition, theirs: Definition, key: Key, unmatched: Sequence[Unmatched], rows: Collection[object]
) -> bool:
    if ours == NEVER and theirs is None:
        # Only the follower dropped the object. A DROP … IF EXISTS is logged even if there was nothing to drop.
        drops = [each for each in unmatched if each.side == "follower" and _touches(each, key)]
        has_rows = key[0] in ("Table", "View") and key[1:] in rows
        return has_rows or not all(_is_drop_if_exists(each.acts[0].text) for each in drops)
    return ours != theirs


def _is_drop_if_exists(statement: str) -> bool:
    words = [token.word() for token in islice(tokens(statement, ansi_quotes=False), 4)]
    return words[:1] + words[2:] == ["DROP", "IF", "EXISTS"]


def _defining(
    unmatched: Sequence[Unmatched], ids: Mapping[int, Id], found: Iterable[tuple[Id, ...]]
) -> list[Unmatched]:
    """Returns the unmatched statements that are part of one of the definitions ``found``. Not all of them name the
    object itself: a definition may also contain statements that came into it by CREATE TABLE … LIKE or by a rename.
    """
    wanted = {each for definition in found for each in definition}
    id_of = {"leader": lambda sequence: sequence, "follower": ids.get}
    return [each for each in unmatched if id_of[each.side](each.sequence) in wanted]


def _drift(key: Key, unmatched: Sequence[Unmatched], defining: Sequence[Unmatched]) -> SchemaDrift:
    """Builds the drift of one object. The evidence consists of the unmatched statements that name the object or, if
    there are none, of the ``defining`` statements.
    """
    about = [each for each in unmatched if _touches(each, key)] or list(defining or unmatched)
    cause = "skipped sequence" if about and all(each.skipped for each in about) else "schema drift"
    evidence = [each.evidence for each in about[:_LISTED]] + (["…"] if len(about) > _LISTED else [])
    statements = dict.fromkeys(each.acts[0].text for each in [*about, *defining])
    return SchemaDrift(*key, cause, "; ".join(evidence), tuple(statements))


def _touches(statement: Unmatched, key: Key) -> bool:
    """Whether the statement names the object or its database."""
    names = [Uri.parse(uri)[1:] for act in statement.acts for uri in (act.uri, act.to) if uri]
    return key[1:] in names or (key[1], None) in names


# Finds tables that only one side has emptied (TRUNCATE, DISCARD TABLESPACE), and that may have had rows from before the
# logs.
#
# Comparing rows finds this drift for rows that are in the logs, but not for rows from before the logs, which neither
# fold has. So the statement itself counts as drift until all rows of the table are in both logs: until statements that
# both sides ran drop or empty the table, or the table is copied into the stream.

EMPTIED = "emptied on one side"
"""The cause of the drift of a table that only one side emptied."""

_EMPTIES = "TruncateTable"


def emptied_drift(unmatched: Iterable[Unmatched], acts: Mapping[str, Sequence[Act]]) -> Iterator[SchemaDrift]:
    """Yields the tables that one of the ``unmatched`` statements emptied.

    ``acts`` maps each side to the effects of its statements; the leader's effects include the beginnings and ends of
    copies.
    """
    emptied = [
        (each, name)
        for each in unmatched
        for act in each.acts
        if act.action == _EMPTIES and (name := table_name(act.uri))
    ]
    if not emptied:
        return
    names = {name for _, name in emptied}
    lineages = {side: lineage(names, those) for side, those in acts.items()}
    alone = {side: {each.sequence for each, _ in emptied if each.side == side} for side in acts}
    otherwise = {side: _beginnings_without(alone[side], names, those) for side, those in acts.items()}
    for statement, name in emptied:
        owner = _owner_since(statement.sequence, name, lineages[statement.side])
        if owner is None:
            continue
        [other] = acts.keys() - {statement.side}
        known = (otherwise[statement.side], beginnings(lineages[other]))
        if all(each.get(owner, Beginning.OLDER) is not Beginning.KNOWN for each in known):
            evidence = f"{statement.evidence}; copy the table again: {copy_command(owner)}"
            yield SchemaDrift("Table", *owner, EMPTIED, evidence, (statement.acts[0].text,))


def _beginnings_without(alone: Collection[int], names: Iterable[Name], acts: Iterable[Act]) -> dict[Name, Beginning]:
    """Returns the Beginning that each table would have if the statements at the sequences ``alone`` had emptied no
    table.
    """
    return beginnings(lineage(names, (act for act in acts if act.action != _EMPTIES or act.sequence not in alone)))


def _owner_since(sequence: int, name: Name, segments: Iterable[Segment]) -> Name | None:
    """Returns the present name of the table that was called ``name`` when it was emptied at ``sequence``. Returns None
    if the table was dropped, emptied again or copied since. ``segments`` are the lineage of tables (``ddl.lineage``).
    """
    since = (each for each in segments if (each.database, each.table) == name and each.first == sequence)
    return next((each.owner for each in since), None)


# Finds schema drift from events that an operator let a producer skip (``cdc-producer --skip``).
#
# Neither topic contains the changes of a skipped event, so the rows in both topics are equal while the servers may
# differ. So a skipped event counts as drift until statements drop the object that it names, or replace it by a new
# object. ``CREATE TABLE … LIKE`` creates a new table with the same definition, so a skipped change of a definition
# counts for that table too. ``ALTER TABLE … EXCHANGE PARTITION`` moves rows between two tables without logging them, so
# a skipped event on one table counts for both. Once a table was copied into the stream completely, earlier skipped
# changes of its rows don't matter.

CAUSE = "skipped event"

_SKIP = "Skip"
_Name = tuple[str, str | None]


def is_skip(act: Act) -> bool:
    """Whether ``act`` is an effect of a skipped event: it names an object that the event may have changed."""
    return act.action.startswith(_SKIP)


def skipped_event_drift(skips: Iterable[Act], acts: Sequence[Act], *, side: str) -> Iterator[SchemaDrift]:
    """Yields the objects that one side's skipped events, ``skips``, may have changed; ``acts`` are its statements."""
    ordered = sorted(acts)
    for skip in sorted(skips):
        kind, name = skip.action.removeprefix(_SKIP), _object_of(skip.uri)
        later = [act for act in ordered if act.sequence > skip.sequence]
        for last_name in sorted(_last_names(kind, name, later, copies=skip.text.startswith("Query ")), key=repr):
            evidence = f"{excerpt(skip.text, length=300)} (sequence {skip.sequence} of the {side})"
            yield SchemaDrift(kind, *last_name, CAUSE, evidence)


def _last_names(kind: str, name: _Name, later: Iterable[Act], *, copies: bool) -> set[_Name]:
    """Returns the names that the object ``name`` has after the statements ``later``; with ``copies``, also the names of
    tables that were created LIKE it."""
    names, begun = {name}, set[_Name]()
    altering: tuple[int, _Name] | None = None  # the sequence and the table of the previous ALTER
    for act in later:
        other = _object_of(act.uri)
        if act.action == "AlterTable":
            # Only an exchange of partitions alters two tables.
            if altering and altering[0] == act.sequence and not names.isdisjoint((altering[1], other)):
                names |= {altering[1], other}
            altering = act.sequence, other
        if act.action == "DropDatabase":
            names = {each for each in names if each[0] != other[0]}
        elif act.action == f"Create{kind}":
            if other in names and not _may_exist(act.text):
                names.remove(other)  # the server created a new object, so the name was free
            source = like_source(act, {}) if copies else None
            if source and _object_of(source) in names:
                names.add(other)
        elif act.action == BEGINS_COPY:
            begun.add(other)
        elif act.action == ENDS_COPY and other in begun and not copies:
            names.discard(other)
        elif other in names and act.action == f"Drop{kind}":
            names.remove(other)
        elif other in names and act.action == f"Rename{kind}" and act.to:
            names.remove(other)
            names.add(_object_of(act.to))
    return names


def _may_exist(statement: str) -> bool:
    """Whether the object may have existed before a CREATE statement, which kept or replaced it."""
    words = [token.word() for token in islice(tokens(statement, ansi_quotes=False), 5)]
    return words[1:2] == ["OR"] or words[2:5] == ["IF", "NOT", "EXISTS"] or words[1:2] != ["TABLE"]


def _object_of(uri: str) -> _Name:
    parsed = Uri.parse(uri)
    return parsed.database, parsed.table
