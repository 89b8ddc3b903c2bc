"""Compares both servers' statements, and finds **schema drift**: objects that different statements defined. Pure.

The audit does not interpret SQL. An object's definition is the list of statements since the object was created
(``ddl.object_history``); if the lists of both servers differ, the object counts as different. So an ALTER that another
ALTER reverted is drift until the object is created again, while statements before a DROP are ignored.

If the follower ran a statement for the leader, the statement's GTID determines the leader's sequence
(``model.gtid``), so that the statements of both servers can be matched. All other statements are the
follower's own. A statement that an operator skipped and then ran by hand, with the same text on the same objects,
counts as run.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from cdc.config.filters import CHECKPOINT_DATABASE
from cdc.config.renames import Renames
from cdc.model.gtid import StatementSequences
from cdc.model.names import Uri
from cdc.spark.ddl.lineage import Act
from cdc.spark.ddl.object_history import NEVER, Definition, Id, Key, definitions_after, same_statement
from cdc.sql.effects import LEADER_ONLY
from cdc.sql.tokens import excerpt, tokens

__all__ = ["Definitions", "SchemaDrift", "Unmatched", "definitions", "renamed_statement"]

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
    """Finds a leader statement that the follower ran on objects of other names: the first in the follower's order.
    Returns its sequence, or None if there is no such statement.
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
    """Maps the sequence of each of the follower's statements to the statement's id.

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
            evidence = _evidence("skipped by an operator" if is_skipped else "only the leader has", acts[0], sequence)
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
    """Returns the unmatched statements that are part of one of the definitions ``found``. A statement may also become
    part of a definition by CREATE TABLE … LIKE or by a rename.
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
