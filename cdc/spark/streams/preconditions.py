"""Preconditions of a verdict: from what both topics and the profiles say, the reasons why an audit could not judge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdc.config.filters import Filters, filtered_name
from cdc.config.profile import Profile
from cdc.config.renames import Renames
from cdc.model.statement_gtid import StatementSequences
from cdc.model.uri import Uri
from cdc.spark.ddl.definitions import renamed_statement
from cdc.spark.ddl.lineage import Act
from cdc.spark.ddl.scope import Scope
from cdc.spark.input.records import FOLLOWER, LEADER
from cdc.spark.input.renaming import name_on_leader
from cdc.spark.streams.contents import Contents
from cdc.spark.streams.integrity import Integrity
from cdc.spark.streams.watermark import Watermark
from cdc.sql.effects import LEADER_ONLY

__all__ = ["Preconditions", "unmet"]

_LISTED = 10


@dataclass(frozen=True, slots=True)
class Preconditions:
    """What is checked before both streams are compared; ``profiles``, ``contents``, ``acts`` and ``limits`` by side.

    ``acts`` are what the statements did, and ``sequences`` tells which of the leader's the follower ran. ``limits`` are
    the sequences before which all records should have been read, None if not known (``input.spans.Span``). ``gap`` are
    the leader sequences (after, up to) for which the follower's log is missing (``watermark.unlogged_gap``).
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


def unmet(checked: Preconditions) -> list[str]:
    """The reasons why an audit of these streams could not judge, for the user; none if it can.

    A later check is left out if an earlier one has found reasons that would explain its own.
    """
    profiles, leader = checked.profiles, checked.contents.get(LEADER)
    reasons = [*_breaks(profiles, checked.integrity)]
    for side, profile in profiles.items():
        reasons += _incomplete_topic(profile, checked.contents.get(side), checked.limits[side])
    reasons += _left_out_records(
        profiles[FOLLOWER], leader, checked.acts.get(LEADER, ()), checked.scope, checked.renames
    )
    if not reasons:
        reasons += _checkpoint(profiles, leader, checked.watermark)
    if not reasons:
        reasons += _missing_log(profiles[FOLLOWER].kafka.topic, checked.watermark, checked.gap)
    if not reasons and not checked.renames:
        reasons += _unknown_renames(checked.acts, checked.sequences)
    return reasons


def _breaks(profiles: Mapping[str, Profile], integrity: Integrity) -> Iterator[str]:
    """Each kind of break in a stream."""
    for (side, kind), count in sorted(integrity.counts.items()):
        first = next(each for each in integrity.examples if (each.side, each.kind) == (side, kind))
        yield (
            f"topic {profiles[side].kafka.topic} is broken ({kind}, {count} in all): {first.detail} "
            f"(partition {first.partition}, offset {first.offset})"
        )


def _incomplete_topic(profile: Profile, contents: Contents | None, limit: int | None) -> Iterator[str]:
    """A topic with records of another server, or without records that expired."""
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
    """Records that the leader's topic has and the follower's can't have, by the filters of its producer."""
    own = scope.schema
    if not follower.filters.wants_database(own):
        yield f"the follower profile's filters leave out database {own}, where the checkpoint is"
    elif not follower.filters.wants_table(own, "ledger"):
        yield f"the follower profile's filters leave out {own}.ledger, which tells the statements that the consumer ran"
    if scope.lets_in_own and (_has_own(leader, own) or any(_names_database(act, own) for act in acts)):
        yield (
            f"the leader has a database {own}, which the audit takes for the consumer's own: with --consumer give the "
            "profile of cdc-consumer, in which filters.exclude_dbs leaves it out or consumer.schema is another"
        )
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


def _has_own(leader: Contents | None, own: str) -> bool:
    return leader is not None and (leader.own or any(database == own for database, _ in leader.tables))


def _names_database(act: Act, database: str) -> bool:
    return any(Uri.parse(uri).database == database for uri in (act.uri, act.to) if uri)


def _left_out_names(act: Act, filters: Filters, renames: Renames) -> set[str]:
    """What a statement names and the follower producer's filters leave out."""
    found = set()
    for uri in (Uri.parse(uri) for uri in (act.uri, act.to) if uri):
        database = renames.new(name_on_leader(uri.database))
        if not filters.wants(database, filtered_name(act.action, uri.table)):
            found.add(uri.database if uri.table is None else f"{uri.database}.{uri.table}")
    return found


def _missing_log(topic: str, watermark: Watermark, gap: tuple[int, int] | None) -> Iterator[str]:
    """A follower's topic that does not have all transactions that it applied."""
    if watermark.begins is not None and watermark.begins > -1:
        yield (
            f"topic {topic} begins when the follower was at sequence {watermark.begins} of the leader already: "
            "what it had applied by then is in no topic"
        )
    elif gap:
        yield (
            f"topic {topic} does not show how the follower came from sequence {gap[0]} of the leader to {gap[1]}: "
            "its binlog was off, or its checkpoint was changed by hand"
        )


def _unknown_renames(acts: Mapping[str, Sequence[Act]], sequences: StatementSequences) -> Iterator[str]:
    """Statements that the follower ran on databases of other names, though no renames are known."""
    sequence = renamed_statement(acts.get(LEADER, ()), acts.get(FOLLOWER, ()), sequences=sequences)
    if sequence is not None:
        yield (
            f"the follower ran the leader's sequence {sequence} under other names: give the profile of "
            "cdc-consumer, which has [renames], with --consumer"
        )


def _checkpoint(profiles: Mapping[str, Profile], leader: Contents | None, watermark: Watermark) -> Iterator[str]:
    """A follower without a checkpoint, or with one that is not a position in the leader's topic."""
    resource, end = profiles[LEADER].mysql_resource_name, leader.end if leader else -1
    if watermark.sequence is None or watermark.highest is None:
        yield (
            f"topic {profiles[FOLLOWER].kafka.topic} has no checkpoint of {resource}: "
            "cdc-consumer has not run, its consumer.schema is another (give its profile with --consumer), or the "
            "follower's cdc-producer is behind"
        )
    elif watermark.highest > end:
        yield (
            f"the follower is at sequence {watermark.highest}, topic {profiles[LEADER].kafka.topic} ends at {end}: "
            "the follower was fed from another topic, or this one was deleted and created again"
        )
    elif watermark.highest > watermark.sequence:
        yield (
            f"the follower's checkpoint went back from sequence {watermark.highest} to {watermark.sequence}: until "
            "it is there again (cdc-consumer --rewind) the follower's rows are of two states"
        )
