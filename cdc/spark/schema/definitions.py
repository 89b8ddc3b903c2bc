"""Are the tables (and views, routines, databases) of both servers defined by the same statements? Pure.

The definition of an object is the list of statements that shaped it since it was made; what came before a DROP is of no
account. A statement that the follower ran for the leader has its GTID (``cdc.position.ddl_gtid``), so the leader's
sequence names it on both sides; any other is the follower's own. Where the lists differ the definitions may, and
the audit does not interpret SQL: that is **schema drift**. So a CREATE that a DROP undid is none, but an ALTER that
another one undid is, until the table is made anew. A table that is made LIKE another is as that one was: its list goes
on from there, so that a change which goes round by a copy (gh-ost, pt-online-schema-change) hides nothing.

A statement that an operator skipped and then ran by hand, in the same words on the same objects, counts as run.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.renames import Renames
from cdc.model.gtid import ddl_uuid
from cdc.model.uri import Uri
from cdc.spark.schema.create_like import made_like
from cdc.spark.schema.lineage import Act
from cdc.spark.schema.statement_match import same_words
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.redaction import excerpt
from cdc.sql.tokens import tokens

__all__ = ["Definitions", "SchemaDrift", "Unmatched", "definitions", "renamed_statement"]

_LISTED = 3  # statements in one object's evidence
_NEVER = ("never named",)
_BEFORE = ("from before the topic",)
_NO_RENAMES = Renames({})

Id = int | str
Key = tuple[str, str, str | None]


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A statement that one side alone has; ``skipped``: as an operator would have it. ``evidence`` names it."""

    side: str
    sequence: int
    acts: tuple[Act, ...]
    skipped: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class SchemaDrift:
    """An object (``kind`` Table, View, Database, …; a database has no name) that is not defined alike on both sides."""

    kind: str
    database: str
    name: str | None
    cause: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Definitions:
    """The objects that differ, by name, and all statements that one side alone has, in order."""

    drift: list[SchemaDrift]
    unmatched: list[Unmatched]


class _Objects:
    """What one server's statements left: to each object those that shaped it, None where it is gone."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.shapes: dict[Key, tuple[Id, ...] | None] = {}
        self._made_here: set[Key] = set()

    def take(self, act: Act, number: Id) -> None:
        verb, kind = _split(act.action)
        key = self._key(kind, act.uri)
        if verb == "Drop" and kind == "Database":
            for each in {key, *(each for each in self.shapes if each[1] == key[1])}:
                self._drop(each)
        elif verb == "Drop" and not act.action.endswith("Index"):
            self._drop(key)
        elif verb == "Rename" and act.to:
            shape = self.shapes.get(key, _BEFORE)
            self._drop(key)
            self._make(self._key(key[0], act.to), shape or _BEFORE)
        elif verb == "Create" and not act.action.endswith("Index"):
            # IF NOT EXISTS leaves a table that is there as it is; only a view is replaced.
            if kind == "View" or self.shapes.get(key) is None:
                self._make(key, (*self._source(act), number))
        elif verb != "Truncate":
            self.shapes[key] = (*(self.shapes.get(key) or _BEFORE), number)

    def _source(self, act: Act) -> tuple[Id, ...]:
        """The shape from which that of a new object starts."""
        like = made_like(act, self._names)
        return (self.shapes.get(self._key("Table", like)) or _BEFORE) if like else ()

    def _make(self, key: Key, shape: tuple[Id, ...]) -> None:
        if key not in self.shapes:
            self._made_here.add(key)
        self.shapes[key] = shape

    def _drop(self, key: Key) -> None:
        """What was made here is as if it had never been; what was there before is gone."""
        if key in self._made_here:
            self._made_here.remove(key)
            del self.shapes[key]
        else:
            self.shapes[key] = None

    def _key(self, kind: str, uri: str) -> Key:
        parsed = Uri.parse(uri)
        key = (kind, parsed.database, parsed.table)
        # RENAME TABLE renames views too.
        view = ("View", parsed.database, parsed.table)
        return view if kind == "Table" and key not in self.shapes and self.shapes.get(view) else key


def definitions(
    leader: Iterable[Act],
    follower: Iterable[Act],
    *,
    resource: str,
    settled: Mapping[int, str],
    rows: Collection[object],
    renames: Renames = _NO_RENAMES,
) -> Definitions:
    """Compare what both sides' statements left.

    ``leader`` are the statements of the leader ``resource`` up to where the follower is; ``settled`` says which of them
    the follower did without, and how its ledger calls that; ``rows`` the (database, table) that rows were logged for.
    Objects are under the leader's names, the follower's texts under those that ``renames`` gives its databases.
    """
    skipped = {sequence for sequence, state in settled.items() if state == "skipped"}
    for_them = (act for act in leader if act.sequence not in settled or act.sequence in skipped)
    ours = _statements(act for act in for_them if not act.action.endswith(LEADER_ONLY))
    theirs = _statements(follower)
    numbers = {sequence: _number(acts, resource) for sequence, acts in theirs.items()}
    left_out = {sequence: ours[sequence] for sequence in sorted(skipped) if sequence in ours}
    _stand_in(numbers, theirs, left_out, renames)
    ran = set(numbers.values())
    unmatched = [
        _unmatched("leader", sequence, acts, skipped=sequence in skipped)
        for sequence, acts in ours.items()
        if sequence not in ran
    ]
    unmatched += [
        _unmatched("follower", sequence, acts) for sequence, acts in theirs.items() if numbers[sequence] not in ours
    ]
    left = _left(ours, {sequence: sequence for sequence in ours}, {}), _left(theirs, numbers, renames.leaders)
    drift = [
        _drift(key, unmatched, _shaped_by(unmatched, numbers, [side.get(key) or () for side in left]))
        for key in sorted(left[0].keys() | left[1].keys(), key=str)
        if _differ(left[0].get(key, _NEVER), left[1].get(key, _NEVER), key, unmatched, rows)
    ]
    return Definitions(drift, unmatched)


def renamed_statement(leader: Iterable[Act], follower: Iterable[Act], *, resource: str) -> int | None:
    """The first leader sequence whose statement the follower ran on objects of other names."""
    ours, theirs = _statements(leader), _statements(follower)
    for acts in theirs.values():
        number = _number(acts, resource)
        if isinstance(number, int) and number in ours and _paths(ours[number]) != _paths(acts):
            return number
    return None


def _statements(acts: Iterable[Act]) -> dict[int, tuple[Act, ...]]:
    found: dict[int, tuple[Act, ...]] = {}
    for act in sorted(acts):
        if Uri.parse(act.uri).database != CHECKPOINT_DATABASE:
            found[act.sequence] = (*found.get(act.sequence, ()), act)
    return found


def _number(acts: Sequence[Act], resource: str) -> Id:
    """The leader's sequence of a follower's statement, or a name of the follower's own."""
    source, _, number = acts[0].transaction.rpartition(":")
    return int(number) - 1 if source == ddl_uuid(resource) else f"follower {acts[0].sequence}"


def _stand_in(
    numbers: dict[int, Id],
    theirs: Mapping[int, tuple[Act, ...]],
    skipped: Mapping[int, tuple[Act, ...]],
    renames: Renames,
) -> None:
    """Give a follower's own statement the number of a skipped one that says the same of the same objects."""
    for number, acts in skipped.items():
        for sequence, own in theirs.items():
            alike = isinstance(numbers[sequence], str) and _paths(own) == _paths(acts)
            if alike and same_words(acts[0], own[0], renames):
                numbers[sequence] = number
                break


def _paths(acts: Iterable[Act]) -> list[tuple[str, object, object]]:
    return [(act.action, Uri.parse(act.uri)[1:], act.to and Uri.parse(act.to)[1:]) for act in acts]


def _left(
    statements: Mapping[int, tuple[Act, ...]], numbers: Mapping[int, Id], names: Mapping[str, str]
) -> dict[Key, tuple[Id, ...] | None]:
    """What one server's statements left; ``names`` says how the leader calls the databases in their texts."""
    objects = _Objects(names)
    for sequence, acts in statements.items():
        for act in acts:
            objects.take(act, numbers[sequence])
    return objects.shapes


def _differ(
    ours: tuple[Id, ...] | None,
    theirs: tuple[Id, ...] | None,
    key: Key,
    unmatched: Sequence[Unmatched],
    rows: Collection[object],
) -> bool:
    if ours == _NEVER and theirs is None:
        # IF EXISTS is logged for what is not there, too: then it dropped nothing.
        drops = [each for each in unmatched if each.side == "follower" and _touches(each, key)]
        has_rows = key[0] in ("Table", "View") and key[1:] in rows
        return has_rows or not all(_if_exists(each.acts[0].text) for each in drops)
    return ours != theirs


def _if_exists(drop: str) -> bool:
    words = [token.word() for token in islice(tokens(drop, ansi_quotes=False), 4)]
    return words[:1] + words[2:] == ["DROP", "IF", "EXISTS"]


def _shaped_by(
    unmatched: Sequence[Unmatched], numbers: Mapping[int, Id], shapes: Iterable[tuple[Id, ...]]
) -> list[Unmatched]:
    """Those of the statements that are in the ``shapes``, as where an object was made like another or renamed."""
    found = {number for shape in shapes for number in shape}
    known_by = {"leader": lambda sequence: sequence, "follower": numbers.get}
    return [each for each in unmatched if known_by[each.side](each.sequence) in found]


def _drift(key: Key, unmatched: Sequence[Unmatched], shaped: Sequence[Unmatched]) -> SchemaDrift:
    about = [each for each in unmatched if _touches(each, key)] or list(shaped or unmatched)
    cause = "skipped sequence" if about and all(each.skipped for each in about) else "schema drift"
    told = [each.evidence for each in about[:_LISTED]] + (["…"] if len(about) > _LISTED else [])
    return SchemaDrift(*key, cause, "; ".join(told))


def _touches(statement: Unmatched, key: Key) -> bool:
    names = [Uri.parse(uri)[1:] for act in statement.acts for uri in (act.uri, act.to) if uri]
    return key[1:] in names or (key[1], None) in names


def _unmatched(side: str, sequence: int, acts: tuple[Act, ...], *, skipped: bool = False) -> Unmatched:
    act = acts[0]
    when = datetime.fromtimestamp(act.ts_us / 1e6, UTC).isoformat(sep=" ", timespec="seconds")
    where = f"sequence {sequence}" if side == "leader" else f"transaction {act.transaction}"
    what = "skipped by an operator" if skipped else f"only the {side} has"
    evidence = f"{what}: {excerpt(act.text)} ({where} at {act.file}:{act.position}, {when[:19]} UTC)"
    return Unmatched(side, sequence, acts, skipped, evidence)


def _split(action: str) -> tuple[str, str]:
    """Verb and kind of object; an index belongs to its table."""
    verb = next((verb for verb in ("Create", "Alter", "Drop", "Rename", "Truncate") if action.startswith(verb)), "")
    kind = action[len(verb) :]
    return verb, "Table" if kind == "Index" else kind
