"""Checks the preconditions of a verdict: finds reasons in the topics and profiles why the audit could not judge."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc.config.filters import Filters, filtered_name
from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.gtid import StatementSequences
from cdc.model.names import Uri
from cdc.spark.ddl.definitions import renamed_statement
from cdc.spark.ddl.lineage import Act
from cdc.spark.ddl.scope import Scope
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.renaming import name_on_leader
from cdc.spark.input.spans import left_out_notes, left_out_rows
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.integrity import Integrity
from cdc.spark.streams.watermark import Watermark
from cdc.sql.effects import LEADER_ONLY

__all__ = ["Preconditions", "unmet"]

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The facts that are checked before the comparison. The keys of ``profiles``, ``contents``, ``acts`` and ``limits``
    are the sides.

    ``acts`` are the effects of statements, and ``sequences`` finds the leader's statements that the follower ran.
    ``limits`` are the sequences before which all records should have been read; a limit is None if it is not known
    (``input.spans.Span``). ``gap`` is (after, up to): the follower's log lacks the leader's sequences in between
    (``watermark.unlogged_gap``). ``late`` is true if the capture began late, and has copied tables of the follower.
    """

    profiles: Mapping[str, Profile]
    sequences: StatementSequences
    scope: Scope
    renames: Renames
    contents: Mapping[str, Contents]
    acts: Mapping[str, Sequence[Act]]
    limits: Mapping[str, int | None]
    watermark: Watermark
    integrity: Integrity
    gap: tuple[int, int] | None
    late: bool = False


def unmet(checked: Preconditions) -> list[str]:
    """Lists all reasons why an audit of these streams could not judge, as texts for the user. The list is empty if the
    audit can judge.

    A missing checkpoint is not reported if another reason explains it: the topic lacks records, or filters leave the
    consumer's tables out of the topic. Gaps in the follower's log are not reported if its topic lacks records.
    """
    profiles, leader = checked.profiles, checked.contents.get(LEADER)
    reasons, whole, own = list[str](), set[str](), checked.scope.schema
    for side, profile in profiles.items():
        of_topic = [*_breaks(profile, side, checked.integrity)]
        of_topic += _incomplete_topic(profile, checked.contents.get(side), checked.limits[side])
        reasons += of_topic
        whole |= set() if of_topic else {side}
    no_notes = list(left_out_notes(profiles[FOLLOWER].filters, own))
    acts = checked.acts.get(LEADER, ())
    reasons += [*no_notes, *left_out_rows(profiles[FOLLOWER].filters), *_own_of_leader(leader, acts, checked.scope)]
    reasons += _left_out_records(profiles[FOLLOWER], leader, acts, checked.scope, checked.renames)
    reasons += _checkpoint(profiles, leader, checked.watermark, whole - ({FOLLOWER} if no_notes else set()))
    if FOLLOWER in whole:
        begins = None if checked.late else checked.watermark.begins
        reasons += _missing_log(profiles[FOLLOWER].kafka.topic, begins, checked.gap)
    if not checked.renames:
        reasons += _unknown_renames(checked.acts, checked.sequences)
    return reasons


def _breaks(profile: Profile, side: str, integrity: Integrity) -> Iterator[str]:
    """Reports each kind of break in the stream of one side."""
    for (of, kind), count in sorted(integrity.counts.items()):
        if of != side:
            continue
        first = next(each for each in integrity.examples if (each.side, each.kind) == (side, kind))
        yield (
            f"topic {profile.kafka.topic} is broken ({kind}, {count} in all): {first.detail} "
            f"(partition {first.partition}, offset {first.offset})"
        )


def _incomplete_topic(profile: Profile, contents: Contents | None, limit: int | None) -> Iterator[str]:
    """Reports a topic that contains records of another server, or whose records expired in part."""
    if contents is None:
        return
    topic = profile.kafka.topic
    others = sorted(contents.resources - {profile.mysql_resource_name})
    if others:
        yield f"topic {topic} holds records of {', '.join(others)}, the profile is of {profile.mysql_resource_name}"
    if contents.first:
        yield f"topic {topic} begins at sequence {contents.first}: retention cut what came before; set retention.ms=-1"
    if limit is not None and contents.end + 1 < limit:
        yield f"topic {topic} ends at sequence {contents.end}, its commit log at {limit - 1}: retention cut the rest"


def _left_out_records(
    follower: Profile, leader: Contents | None, acts: Sequence[Act], scope: Scope, renames: Renames
) -> Iterator[str]:
    """Reports records of the leader's topic that the follower's producer leaves out of its topic by its filters."""
    filters, tables = follower.filters, leader.tables if leader else frozenset()
    left_out = {
        f"{database}.{table}"
        for database, table in tables
        if scope.wants_table(database, table) and not filters.wants_table(renames.new(name_on_leader(database)), table)
    }
    for act in acts:
        if scope.wants(act) and not act.action.endswith(LEADER_ONLY):
            left_out |= _left_out_names(act, filters, renames)
    if left_out:
        names = ", ".join(sorted(left_out)[:_LISTED])
        yield f"the follower profile's filters leave out what the leader topic has: {names}"


def _own_of_leader(leader: Contents | None, acts: Sequence[Act], scope: Scope) -> Iterator[str]:
    """Reports a database of the leader that has the name of the consumer's own database."""
    own = scope.schema
    if scope.lets_in_own and (_has_own(leader, own) or any(_names_database(act, own) for act in acts)):
        yield (
            f"the leader has a database {own}, which the audit takes for the consumer's own: with --consumer give the "
            "profile of cdc-consumer, in which filters.exclude_dbs leaves it out or consumer.schema is another"
        )


def _has_own(leader: Contents | None, own: str) -> bool:
    return leader is not None and (leader.own or any(database == own for database, _ in leader.tables))


def _names_database(act: Act, database: str) -> bool:
    return any(Uri.parse(uri).database == database for uri in (act.uri, act.to) if uri)


def _left_out_names(act: Act, filters: Filters, renames: Renames) -> set[str]:
    """Returns the names in a statement that the filters of the follower's producer leave out."""
    found = set()
    for uri in (Uri.parse(uri) for uri in (act.uri, act.to) if uri):
        database = renames.new(name_on_leader(uri.database))
        if not filters.wants(database, filtered_name(act.action, uri.table)):
            found.add(uri.database if uri.table is None else f"{uri.database}.{uri.table}")
    return found


def _missing_log(topic: str, begins: int | None, gap: tuple[int, int] | None) -> Iterator[str]:
    """Reports a follower's topic that does not contain all transactions that the follower applied."""
    if begins is not None and begins > -1:
        yield (
            f"topic {topic} begins when the follower was at sequence {begins} of the leader already: what it had "
            "applied by then is in no topic; have the capture copy the follower's tables into it: cdc-producer "
            "FOLLOWER_PROFILE --copy '*.*'"
        )
    elif gap:
        yield (
            f"topic {topic} does not show how the follower came from sequence {gap[0]} of the leader to {gap[1]}: "
            "its binlog was off, or its checkpoint was changed by hand"
        )


def _unknown_renames(acts: Mapping[str, Sequence[Act]], sequences: StatementSequences) -> Iterator[str]:
    """Reports a statement that the follower ran on databases of other names, though no renames are known."""
    sequence = renamed_statement(acts.get(LEADER, ()), acts.get(FOLLOWER, ()), sequences=sequences)
    if sequence is not None:
        yield (
            f"the follower ran the leader's sequence {sequence} under other names: give the profile of "
            "cdc-consumer, which has [renames], with --consumer"
        )


def _checkpoint(
    profiles: Mapping[str, Profile], leader: Contents | None, watermark: Watermark, whole: Collection[str]
) -> Iterator[str]:
    """Reports a follower without a checkpoint, or with a checkpoint that is not a position in the leader's topic.

    ``whole`` are the sides whose topics are complete: in other topics, missing records explain both problems.
    """
    resource, end = profiles[LEADER].mysql_resource_name, leader.end if leader else -1
    if watermark.sequence is None or watermark.highest is None:
        if FOLLOWER not in whole:
            return
        yield (
            f"topic {profiles[FOLLOWER].kafka.topic} has no checkpoint of {resource}: "
            "cdc-consumer has not run, its consumer.schema is another (give its profile with --consumer), or the "
            "follower's cdc-producer is behind"
        )
    elif watermark.highest > end and LEADER in whole:
        yield (
            f"the follower is at sequence {watermark.highest}, topic {profiles[LEADER].kafka.topic} ends at {end}: "
            "the follower was fed from another topic, or this one was deleted and created again"
        )
    elif watermark.highest > watermark.sequence:
        yield (
            f"the follower's checkpoint went back from sequence {watermark.highest} to {watermark.sequence}: until it "
            "is there again the follower's rows belong to two states of the leader"
        )
